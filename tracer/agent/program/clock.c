/* The time of day and random numbers, the same at each start of the program: many programs seed their generators with them,
 * and have to do the same each time they are started.
 *
 * The first look at the clock gives the time that the launcher says. From there the clock goes on: by small steps while the
 * program starts (several looks one after the other are then the same each time, too), afterwards as time passes, so that
 * programs that wait for a time end and durations are right. Once the program is parked, each look is one step later: what
 * a call stores of it is the same each time the call is repeated. The kernel knows nothing of this: moments to wait for are
 * translated (deadlines.c).
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <dlfcn.h>
#include <errno.h>
#include <sys/random.h>
#include <sys/time.h>

#define STEP_NS 1000ull
#define START_NS 10000000ull /* the program starts for so long, from the first look at the clock on */
#define SECOND 1000000000ull
#define CLOCKS 12

static int (*kernels)(clockid_t, struct timespec *);
static volatile uint64_t first_look, told, draws; /* monotonic ns; the last time told */
static volatile uint64_t parked, stood[CLOCKS], looks[CLOCKS];

int la_kernels_clock(int which, struct timespec *t)
{
    if (!kernels)
        kernels = (int (*)(clockid_t, struct timespec *))(uintptr_t)dlsym(RTLD_NEXT, "clock_gettime");
    return kernels ? kernels(which, t) : (int)la_sys(SYS_clock_gettime, which, t, 0);
}

static int is_held(int which)
{
    return la_config.held_ns && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE || which == CLOCK_TAI);
}

/* Threads may look at once: the time never goes back. */
static uint64_t held_now(void)
{
    const uint64_t now = la_clock(CLOCK_MONOTONIC);
    uint64_t nobody = 0, old = __atomic_load_n(&told, __ATOMIC_SEQ_CST), next;
    if (!first_look)
        __atomic_compare_exchange_n(&first_look, &nobody, now, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    const uint64_t passed = now > first_look ? now - first_look : 0;
    do {
        const uint64_t stepped = old ? old + STEP_NS : la_config.held_ns;
        next = passed < START_NS || la_config.held_ns + passed < old ? stepped : la_config.held_ns + passed;
    } while (!__atomic_compare_exchange_n(&told, &old, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return next;
}

/* A parked program's clocks, as they stood when it was parked: each look is a step. */
static uint64_t standing(int which) { return stood[which] + STEP_NS * __atomic_add_fetch(&looks[which], 1, __ATOMIC_SEQ_CST); }

void la_clock_park(void)
{
    if (!la_config.held_ns)
        return;
    for (int which = 0; which < CLOCKS; which++) {
        looks[which] = 0;
        stood[which] = is_held(which) ? held_now() : la_clock(which);
    }
    parked = 1;
}
void la_clock_go_on(void) { parked = 0; }

int64_t la_clock_behind(void)
{
    if (!la_config.held_ns || parked)
        return 0;
    return (int64_t)(la_clock(CLOCK_REALTIME) - held_now());
}

LA_EXPORT int clock_gettime(clockid_t which, struct timespec *t)
{
    uint64_t now;
    if (parked && which >= 0 && which < CLOCKS)
        now = standing(which);
    else if (is_held(which))
        now = held_now();
    else
        return la_kernels_clock(which, t);
    t->tv_sec = (time_t)(now / SECOND);
    t->tv_nsec = (long)(now % SECOND);
    return 0;
}

LA_EXPORT int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;
    if (zone)
        la_sys(SYS_gettimeofday, 0, zone, 0);
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
    return 0;
}

LA_EXPORT time_t time(time_t *to)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to)
        *to = now.tv_sec;
    return now.tv_sec;
}

LA_EXPORT int timespec_get(struct timespec *t, int base)
{
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, t) ? base : 0;
}

/* Splitmix64 (Steele, Lea, Flood 2014) of a counter. */
static uint64_t drawn(void)
{
    uint64_t z = __atomic_add_fetch(&draws, 0x9e3779b97f4a7c15ull, __ATOMIC_SEQ_CST);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static void draw_bytes(void *to, size_t n)
{
    for (size_t done = 0; done < n; done += 8) {
        const uint64_t z = drawn();
        la_copy((char *)to + done, &z, n - done < 8 ? n - done : 8);
    }
}

LA_EXPORT ssize_t getrandom(void *to, size_t n, unsigned flags)
{
    if (!la_config.held_ns) {
        const long got = la_sys(SYS_getrandom, to, n, flags);
        if (got >= 0)
            return got;
        errno = (int)-got;
        return -1;
    }
    draw_bytes(to, n);
    return (ssize_t)n;
}

LA_EXPORT int getentropy(void *to, size_t n)
{
    if (n > 256) {
        errno = EIO;
        return -1;
    }
    return getrandom(to, n, 0) == (ssize_t)n ? 0 : -1;
}

/* glibc's since 2.36; the compiler's header need not know them. */
LA_EXPORT uint32_t arc4random(void);
LA_EXPORT void arc4random_buf(void *to, size_t n);
LA_EXPORT uint32_t arc4random_uniform(uint32_t below);
LA_EXPORT uint32_t arc4random(void)
{
    uint32_t x = 0;
    getrandom(&x, sizeof x, 0);
    return x;
}
LA_EXPORT void arc4random_buf(void *to, size_t n) { getrandom(to, n, 0); }
LA_EXPORT uint32_t arc4random_uniform(uint32_t below) { return (uint32_t)((uint64_t)arc4random() * below >> 32); }

/* std::random_device::operator(), which asks the processor first (libstdc++'s functions for it, of both its interfaces). */
LA_EXPORT unsigned _ZNSt13random_device9_M_getvalEv(void *device);
LA_EXPORT unsigned _ZNSt13random_device16_M_getval_pretr1Ev(void *device);
LA_EXPORT unsigned _ZNSt13random_device9_M_getvalEv(void *device)
{
    (void)device;
    return arc4random();
}
LA_EXPORT unsigned _ZNSt13random_device16_M_getval_pretr1Ev(void *device)
{
    (void)device;
    return arc4random();
}
