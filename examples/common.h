/* What the examples share: arguments, deterministic input, checksum, and the time of one call of the hotspot.
 * SPDX-License-Identifier: MIT */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The first calls run with cold caches and fresh pages: they are left out of the median. */
#define WARM_UP_CALLS 2

struct options {
    long size;
    long steps;
    long sweeps; /* how often one call goes over the data */
    int times;   /* -t: print the median time of a call */
};

struct stopwatch {
    double *ns;
    double *chore; /* of each call the slower of the chores before and after it */
    long calls;
    double started, chore_before, patience;
    long calm; /* calls between undisturbed chores */
    long period; /* every so many calls do the same work */
    int times;
};

static inline void fail(const char *program, const char *message)
{
    fprintf(stderr, "%s: %s\n", program, message);
    exit(2);
}

/* PROGRAM [-t] [SIZE [STEPS [SWEEPS]]]. Without SWEEPS a call makes at least `work` visits, so that it is long enough to
 * be timed; 0 < size <= limit. */
static inline struct options read_options(int argc, char **argv, long size, long steps, long work, long limit)
{
    struct options o = {size, steps, 0, getenv("EXAMPLE_TIMES") != NULL};
    long *values[] = {&o.size, &o.steps, &o.sweeps};
    size_t given = 0;
    for (int i = 1; i < argc; i++) {
        char *end;
        if (strcmp(argv[i], "-t") == 0) {
            o.times = 1;
            continue;
        }
        if (given == 3)
            fail(argv[0], "usage: [-t] [SIZE [STEPS [SWEEPS]]]");
        *values[given] = strtol(argv[i], &end, 10);
        if (*end != '\0' || *values[given] <= 0)
            fail(argv[0], "SIZE, STEPS and SWEEPS are positive numbers");
        given++;
    }
    if (o.size > limit)
        fail(argv[0], "SIZE is too large");
    if (o.sweeps == 0)
        o.sweeps = o.size < work ? work / o.size : 1;
    return o;
}

static inline void *checked(void *memory)
{
    if (memory == NULL)
        fail("example", "out of memory");
    return memory;
}

/* `count` items of `bytes` bytes on a cache line of their own. */
static inline void *aligned(size_t count, size_t bytes)
{
    return checked(aligned_alloc(64, (count * bytes + 63) / 64 * 64));
}

/* The next of a fixed sequence of numbers in [0, 1). */
static inline double next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* `bits` is equal only for equal values in the same order; `sum` also where rounding differs. */
struct checksum {
    uint64_t bits;
    double sum;
};

static inline struct checksum mix(struct checksum c, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    c.bits = (c.bits ^ bits ^ bits >> 32) * 1099511628211u; /* FNV-1a; a float's low half is empty */
    c.sum += value < 0 ? -value : value;
    return c;
}

/* Between two sweeps, so that the compiler cannot merge them into one over the data: a call shall do what as many steps
 * of the program would do. It costs no instruction. */
static inline void keep_sweeps_apart(void)
{
    __asm__ volatile("" ::: "memory");
}

/* CPU time of the thread; wall time where there are several. */
static inline double now_ns(void)
{
    struct timespec t;
#ifdef _OPENMP
    clock_gettime(CLOCK_MONOTONIC, &t);
#else
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
#endif
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* How long some 80,000 instructions take that fill every place in which the core can start one (half of them do nothing:
 * there are fewer units for additions): longer while something else uses the other half of the core. */
static inline double chore_ns(void)
{
    struct timespec from, to;
    long a = 0, b = 0, c = 0, d = 0, turns = 5000;
    clock_gettime(CLOCK_MONOTONIC, &from);
    /* aligned, so that it is the same in each version wherever its code lies */
    __asm__ volatile(".p2align 6\n0:\n"
                     "add $1, %0\n nop\n add $1, %1\n nop\n add $1, %2\n nop\n add $1, %3\n nop\n"
                     "add $1, %0\n nop\n add $1, %1\n nop\n add $1, %2\n nop\n dec %4\n jnz 0b\n"
                     : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(turns)
                     :
                     : "cc");
    clock_gettime(CLOCK_MONOTONIC, &to);
    return 1e9 * (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec);
}

/* The chore's time on an undisturbed machine, if EXAMPLE_CHORE tells it. */
static inline double known_chore(void)
{
    const char *text = getenv("EXAMPLE_CHORE");
    return text != NULL ? strtod(text, NULL) : 0;
}

#define DISTURBED 1.1   /* chores that take so many times the known one are */
#define PATIENCE_NS 3e8 /* so long a process waits in all for undisturbed moments ... */
#define ENOUGH_CALM 30  /* ... until it has so many calls in them, of each kind */

static inline struct stopwatch new_stopwatch(const struct options *o)
{
    struct stopwatch w = {NULL, NULL, 0, 0, 0, PATIENCE_NS, 0, 1, o->times};
    w.ns = checked(malloc((size_t)o->steps * sizeof(double)));
    w.chore = checked(malloc((size_t)o->steps * sizeof(double)));
    return w;
}

static inline void start(struct stopwatch *w)
{
    if (w->times) {
        const double limit = DISTURBED * known_chore();
        while ((w->chore_before = chore_ns()) > limit && w->calm < ENOUGH_CALM * w->period && limit > 0 && w->patience > 0)
            w->patience -= w->chore_before;
    }
    w->started = now_ns();
}

static inline void stop(struct stopwatch *w)
{
    w->ns[w->calls] = now_ns() - w->started;
    if (w->times) {
        const double after = chore_ns();
        w->chore[w->calls] = after > w->chore_before ? after : w->chore_before;
        w->calm += w->chore[w->calls] <= DISTURBED * known_chore();
    }
    w->calls++;
}

static inline int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The `part`-th of the times of all calls that do the same work as the call `which` (all calls where the period is 1), of the
 * calm ones where there are some; -1 where there is none. Uses `space`. */
static inline double quantile(const struct stopwatch *w, long which, double limit, double part, double *space)
{
    for (int calm_only = 1; calm_only >= 0; calm_only--) {
        long n = 0;
        for (long i = which; i < w->calls; i += w->period)
            if (!calm_only || w->chore[i] <= limit)
                space[n++] = w->ns[i];
        if (n > 0) {
            qsort(space, (size_t)n, sizeof *space, compare_doubles);
            return space[(long)((double)(n - 1) * part)];
        }
    }
    return -1;
}

/* Mean over the calls that differ. */
static inline double typical(const struct stopwatch *w, long skipped, double limit, double part)
{
    double *space = checked(malloc((size_t)w->calls * sizeof(double))), sum = 0;
    long n = 0;
    for (long k = 0; k < w->period; k++) {
        const double ns = quantile(w, skipped + k, limit, part, space);
        if (ns >= 0) {
            sum += ns;
            n++;
        }
    }
    free(space);
    return n > 0 ? sum / (double)n : 0;
}

/* The last lines of every example: checksum, and with -t the median and the first decile of the warm calls: the decile is
 * what a call takes when nothing else disturbs the machine. Where EXAMPLE_CHORE is given and some calls lay between
 * undisturbed chores, only these count. Where calls differ these are means over a period of calls. */
static inline void finish(const struct options *o, struct stopwatch *w, struct checksum checksum)
{
    const long skipped = w->calls > WARM_UP_CALLS ? WARM_UP_CALLS : 0;
    printf("checksum %.9e bits %016llx\n", checksum.sum, (unsigned long long)checksum.bits);
    if (o->times) {
        const double limit = DISTURBED * known_chore();
        long calm = 0;
        for (long i = skipped; i < w->calls; i++) {
            calm += w->chore[i] <= limit;
        }
        printf("median_ns %.1f\n", typical(w, skipped, limit, 0.5));
        printf("undisturbed_ns %.1f\n", typical(w, skipped, limit, 0.1));
        qsort(w->chore + skipped, (size_t)(w->calls - skipped), sizeof *w->chore, compare_doubles);
        printf("chore_ns %.1f\ncalm_calls %ld\n", w->chore[skipped + (w->calls - skipped) / 10], calm);
    }
    free(w->chore);
    free(w->ns);
}
#endif
