/* The program's clocks. While runs are compared they stand still, but for a step at each look: what a call reads of them is
 * then the same in the original and in its mock-ups. At all other times they are the system's.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

enum { CLOCKS = 12, STEP_NS = 1000, SECOND_NS = 1000000000 };

static int (*next_clock)(clockid_t, struct timespec *);
static int (*next_day)(struct timeval *, void *);
static time_t (*next_time)(time_t *);
static struct timespec at_park[CLOCKS];
static uint64_t looks;
static volatile int still;

__attribute__((constructor)) static void find(void)
{
    *(void **)&next_clock = dlsym(RTLD_NEXT, "clock_gettime");
    *(void **)&next_day = dlsym(RTLD_NEXT, "gettimeofday");
    *(void **)&next_time = dlsym(RTLD_NEXT, "time");
}

void la_clocks_parked(void)
{
    for (int id = 0; id < CLOCKS; id++)
        la_sys(SYS_clock_gettime, id, (long)&at_park[id], 0);
}

void la_clocks_stand(int stand)
{
    looks = 0;
    still = stand;
}

static struct timespec look(clockid_t id)
{
    struct timespec now = at_park[id >= 0 && id < CLOCKS ? id : 0];
    uint64_t ns = (uint64_t)now.tv_nsec + STEP_NS * __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED);
    now.tv_sec += (time_t)(ns / SECOND_NS);
    now.tv_nsec = (long)(ns % SECOND_NS);
    return now;
}

LA_EXPORT int clock_gettime(clockid_t id, struct timespec *to)
{
    if (__builtin_expect(still, 0)) {
        *to = look(id);
        return 0;
    }
    return next_clock ? next_clock(id, to) : (int)la_sys(SYS_clock_gettime, id, (long)to, 0);
}

LA_EXPORT int gettimeofday(struct timeval *restrict to, void *restrict zone)
{
    if (__builtin_expect(still, 0)) {
        struct timespec now = look(CLOCK_REALTIME);
        *to = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
        return 0;
    }
    return next_day ? next_day(to, zone) : (int)la_sys(SYS_gettimeofday, (long)to, (long)zone, 0);
}

LA_EXPORT time_t time(time_t *to)
{
    if (__builtin_expect(still, 0)) {
        time_t now = look(CLOCK_REALTIME).tv_sec;
        if (to)
            *to = now;
        return now;
    }
    return next_time ? next_time(to) : (time_t)la_sys(SYS_time, (long)to, 0, 0);
}
