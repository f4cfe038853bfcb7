/* Sampling the instruction pointer by CPU time.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <signal.h>
#include <ucontext.h>

struct la_samples { /* file "samples" */
    volatile uint64_t count;
    uint64_t capacity;
    volatile uint64_t cpu; /* ns of CPU time of the whole process at the newest sample */
    uint64_t rip[];
};
static struct la_samples *samples;

#define LA_STACK_WORDS 512
struct la_sampled { /* what unwinding begins with; as many of file "sampled" as there are samples, or as it holds */
    uint64_t rip, rsp, rbp;
    uint64_t words[LA_STACK_WORDS]; /* of the stack from rsp on; 0 where it ends */
};
static struct la_sampled *sampled;
static uint64_t places, draw = 1;

/* Each sample is as likely kept as any other (reservoir sampling, Vitter's algorithm R): the n-th takes the place of one of
 * those before with the probability places / n. */
static void keep_stack(uint64_t n, const greg_t *registers)
{
    uint64_t place = n;
    if (n >= places) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        place = (draw >> 11) % (n + 1);
    }
    if (place >= places)
        return;
    struct la_sampled *one = sampled + place;
    one->rip = (uint64_t)registers[REG_RIP];
    one->rsp = (uint64_t)registers[REG_RSP];
    one->rbp = (uint64_t)registers[REG_RBP];
    /* by the kernel: a stack of the program's own may end there */
    struct { uint64_t base, bytes; } to = {(uint64_t)one->words, sizeof one->words}, from = {one->rsp, sizeof one->words};
    long got = la_sys6(SYS_process_vm_readv, la_sys(SYS_getpid, 0, 0, 0), (long)&to, 1, (long)&from, 1, 0);
    for (uint64_t i = got > 0 ? (uint64_t)got / 8 : 0; i < LA_STACK_WORDS; i++)
        one->words[i] = 0;
}

static void on_tick(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    const greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t n = __atomic_fetch_add(&samples->count, 1, __ATOMIC_RELAXED);
    if (n < samples->capacity)
        samples->rip[n] = (uint64_t)registers[REG_RIP];
    samples->cpu = la_clock(CLOCK_PROCESS_CPUTIME_ID);
    if (sampled)
        keep_stack(n, registers);
}

static void *mapped_file(const char *name, uint64_t *bytes)
{
    char path[4096];
    la_join(path, la_folder, name, "");
    int fd = la_open(path, O_RDWR, 0);
    if (fd < 0)
        return NULL;
    *bytes = (uint64_t)la_sys(SYS_lseek, fd, 0, 2);
    void *found = la_mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    la_close(fd);
    return found;
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
    uint64_t bytes = 0;
    samples = mapped_file("samples", &bytes);
    if (!samples) {
        la_error("cannot open the file for the samples");
        return;
    }
    samples->capacity = (bytes - sizeof *samples) / 8;
    sampled = mapped_file("sampled", &bytes);
    places = bytes / sizeof *sampled;
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
