/* clang's OpenMP runtime. A region asks it for a number of threads by a call before the one that starts it, and that holds for
 * one region: before a region is started again, it has to be asked again.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <dlfcn.h>

struct ident { /* what compilers tell the runtime about a place in the source (kmp.h: ident_t) */
    int32_t reserved_1, flags, reserved_2, reserved_3;
    const char *source;
};
static struct ident place = {0, 2 /* as a compiler's calls are */, 0, 0, ";unknown;unknown;0;0;;"};

typedef void (*body)(int32_t *number, int32_t *bound);
static void (*fork_call)(struct ident *, int32_t, body, ...);
static void (*push_number)(struct ident *, int32_t, int32_t);
static int32_t (*own_number)(struct ident *);
static int (*team_number)(void);
static int (*team_count)(void);
static uint64_t wanted;
static int settled;

static const char *find(void)
{
    *(void **)&fork_call = dlsym(RTLD_DEFAULT, "__kmpc_fork_call");
    *(void **)&push_number = dlsym(RTLD_DEFAULT, "__kmpc_push_num_threads");
    *(void **)&own_number = dlsym(RTLD_DEFAULT, "__kmpc_global_thread_num");
    *(void **)&team_number = dlsym(RTLD_DEFAULT, "omp_get_thread_num");
    *(void **)&team_count = dlsym(RTLD_DEFAULT, "omp_get_num_threads");
    return fork_call && push_number && own_number && team_number && team_count
               ? NULL
               : "the program's OpenMP runtime lacks functions that libomp has";
}

static volatile int came;
static void count_members(int32_t *number, int32_t *bound)
{
    (void)number;
    (void)bound;
    if (!team_number())
        came = team_count();
}
static uint64_t count_in_region(void)
{
    came = 0;
    fork_call(&place, 0, count_members);
    return (uint64_t)came;
}

static char *put_number(char *p, uint64_t number)
{
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n)
        *p++ = digits[--n];
    return p;
}

/* libomp keeps a small file for each process, by its pid, and removes it where the program ends. One that is left behind makes the
 * next process with that pid fail (OMP: Error #15). */
void la_libomp_forget(void)
{
    static const char start[] = "/dev/shm/__KMP_REGISTERED_LIB_";
    char path[sizeof start + 48], *p = path + sizeof start - 1;
    la_copy(path, start, sizeof start);
    p = put_number(p, (uint64_t)la_sys(SYS_getpid, 0, 0, 0));
    *p++ = '_';
    *put_number(p, (uint64_t)la_sys(SYS_getuid, 0, 0, 0)) = 0;
    la_sys(SYS_unlink, path, 0, 0);
}

/* The parked program may have asked for a number (num_threads) for the region that it is about to start. That shows in the first
 * region, which uses it up, and not in the second. It is asked for again, so that the program stands as it stood. */
const char *la_libomp_settle(void)
{
    const char *failed = settled ? NULL : find();
    if (failed || settled)
        return failed;
    const uint64_t first = count_in_region(), second = count_in_region();
    wanted = first == second ? 0 : first;
    settled = 1;
    la_libomp_forget(); /* the first region of all made it */
    la_libomp_ask();
    return NULL;
}

uint64_t la_libomp_asked(void) { return wanted; }
void la_libomp_want(uint64_t threads) { wanted = threads; }

void la_libomp_ask(void)
{
    if (!settled && la_libomp_settle())
        return;
    if (wanted)
        push_number(&place, own_number(&place), (int32_t)wanted);
}

/* libomp's threads wait awake for long, and yield: two that a restored process has on one processor stay there on a busy machine,
 * and run one after the other, as those of the program did not. Then each is moved to one of its own; what they may use is left as
 * it was, so that the kernel may move them again. */
static volatile uint32_t processor[LA_MAX_TEAM];
static volatile int apart;
static void move_apart(uint64_t number)
{
    uint64_t may[16] = {0}, one[16] = {0}, count = 0;
    const long bytes = la_sys(SYS_sched_getaffinity, 0, sizeof may, may);
    for (uint64_t bit = 0; bytes > 0 && bit < 8 * sizeof may; bit++)
        count += may[bit / 64] >> bit % 64 & 1;
    if (count < 2)
        return;
    uint64_t wanted = number % count;
    for (uint64_t bit = 0; bit < 8 * sizeof may; bit++)
        if (may[bit / 64] >> bit % 64 & 1 && !wanted--)
            one[bit / 64] = 1ull << bit % 64;
    la_sys(SYS_sched_setaffinity, 0, sizeof one, one);
    la_sys(SYS_sched_setaffinity, 0, bytes, may);
}

static void share(int32_t *number, int32_t *bound)
{
    const uint64_t own = (uint64_t)team_number();
    uint32_t at = 0;
    (void)number;
    (void)bound;
    if (apart)
        move_apart(own);
    la_team_share();
    la_sys(SYS_getcpu, &at, 0, 0);
    if (own < LA_MAX_TEAM)
        processor[own] = at;
    if (!own)
        came = team_count();
}
void la_libomp_region(void)
{
    la_libomp_ask();
    fork_call(&place, 0, share);
    apart = 0;
    for (int i = 0; i < came && i < (int)LA_MAX_TEAM; i++)
        for (int k = 0; k < i; k++)
            apart |= processor[i] == processor[k];
}
