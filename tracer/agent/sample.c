/* Sampling the instruction pointer by CPU time.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <signal.h>
#include <ucontext.h>

struct la_samples { /* file "samples" */
    volatile uint64_t count;
    uint64_t capacity;
    uint64_t rip[];
};
static struct la_samples *samples;

static void on_tick(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    uint64_t n = __atomic_fetch_add(&samples->count, 1, __ATOMIC_RELAXED);
    if (n < samples->capacity)
        samples->rip[n] = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

void la_sample_maps(void)
{
    char path[4096], chunk[4096];
    long n;
    la_join(path, la_folder, "maps", "");
    int in = la_open("/proc/self/maps", O_RDONLY, 0), out = la_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (in >= 0 && out >= 0)
        while ((n = la_sys(SYS_read, in, chunk, sizeof chunk)) > 0)
            la_write_all(out, chunk, (uint64_t)n);
    if (in >= 0)
        la_close(in);
    if (out >= 0)
        la_close(out);
}

/* A real-time signal near the top: SIGPROF may be the program's own (gprof, a profiler of its own). POSIX timers are
 * not inherited by fork and vanish at exec, so the program's children are left alone. */
void la_sample_start(void)
{
    char path[4096];
    la_join(path, la_folder, "samples", "");
    int fd = la_open(path, O_RDWR, 0);
    if (fd < 0) {
        la_error("cannot open the file for the samples");
        return;
    }
    long bytes = la_sys(SYS_lseek, fd, 0, 2);
    samples = la_mmap(NULL, (uint64_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    la_close(fd);
    if (!samples)
        return;
    samples->capacity = ((uint64_t)bytes - sizeof *samples) / 8;
    la_sample_maps();
    int number = 0;
    for (int candidate = SIGRTMAX - 2; candidate >= SIGRTMIN && !number; candidate--) {
        struct sigaction old;
        if (!sigaction(candidate, NULL, &old) && old.sa_handler == SIG_DFL)
            number = candidate;
    }
    struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = number};
    timer_t timer;
    int id;
    (void)timer;
    if (!number || sigaction(number, &action, NULL) || la_sys(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &event, &id)) {
        la_error("no signal or timer to sample with");
        return;
    }
    struct timespec period = {(time_t)(la_config.interval / 1000000000u), (long)(la_config.interval % 1000000000u)};
    struct itimerspec every = {period, period};
    la_sys6(SYS_timer_settime, id, 0, (long)&every, 0, 0, 0);
}
