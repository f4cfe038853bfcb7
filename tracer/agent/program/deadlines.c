/* Waiting until a time of day: the program's clock is held (clock.c), the kernel's is not, so that moments are translated.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#define SECOND 1000000000ll
/* Smaller seconds are those of another clock (of a condition that goes by the monotonic one): it began when the machine did. */
#define TIME_OF_DAY (1ll << 29)

static const struct timespec *translated(const struct timespec *t, struct timespec *room)
{
    const int64_t behind = t && t->tv_sec >= TIME_OF_DAY ? la_clock_behind() : 0;
    if (!behind)
        return t;
    const int64_t ns = t->tv_nsec + behind % SECOND;
    room->tv_sec = t->tv_sec + behind / SECOND + (ns >= SECOND ? 1 : ns < 0 ? -1 : 0);
    room->tv_nsec = ns >= SECOND ? ns - SECOND : ns < 0 ? ns + SECOND : ns;
    return room;
}

/* The next library's function; of pthread_cond_timedwait an older one has the same name. */
static void *next_of(const char *name, const char *version)
{
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
    return found ? found : dlsym(RTLD_NEXT, name);
}

#define FORWARD(type, name, version, ...)                                      \
    static type(*real);                                                        \
    struct timespec room;                                                      \
    if (!real)                                                                 \
        real = (type(*))(uintptr_t)next_of(name, version);                     \
    return real ? real(__VA_ARGS__) : ENOSYS

typedef int timed_condition(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int clock_condition(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
typedef int timed_mutex(pthread_mutex_t *, const struct timespec *);
typedef int timed_rwlock(pthread_rwlock_t *, const struct timespec *);
typedef int timed_semaphore(sem_t *, const struct timespec *);
typedef int sleeping(clockid_t, int, const struct timespec *, struct timespec *);

LA_EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
    FORWARD(timed_condition, "pthread_cond_timedwait", "GLIBC_2.3.2", c, m, translated(t, &room));
}
LA_EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t which, const struct timespec *t)
{
    FORWARD(clock_condition, "pthread_cond_clockwait", NULL, c, m, which, translated(t, &room));
}
LA_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *t)
{
    FORWARD(timed_mutex, "pthread_mutex_timedlock", NULL, m, translated(t, &room));
}
LA_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *t)
{
    FORWARD(timed_rwlock, "pthread_rwlock_timedrdlock", NULL, l, translated(t, &room));
}
LA_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *t)
{
    FORWARD(timed_rwlock, "pthread_rwlock_timedwrlock", NULL, l, translated(t, &room));
}
LA_EXPORT int sem_timedwait(sem_t *s, const struct timespec *t)
{
    FORWARD(timed_semaphore, "sem_timedwait", NULL, s, translated(t, &room));
}
LA_EXPORT int clock_nanosleep(clockid_t which, int flags, const struct timespec *t, struct timespec *left)
{
    FORWARD(sleeping, "clock_nanosleep", "GLIBC_2.17", which, flags, flags & TIMER_ABSTIME ? translated(t, &room) : t, left);
}
