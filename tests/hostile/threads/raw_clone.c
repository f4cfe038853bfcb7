/* A thread that the C library does not know. */
#define _GNU_SOURCE
#include "frame.h"
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int running = 1;

static int run(void *unused)
{
    (void)unused;
    while (__atomic_load_n(&running, __ATOMIC_RELAXED))
        syscall(SYS_sched_yield);
    syscall(SYS_exit, 0);
    return 0;
}

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    char *stack = malloc(65536);
    clone(run, stack + 65536, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, 0);
}

int after(struct item *items)
{
    (void)items;
    __atomic_store_n(&running, 0, __ATOMIC_RELAXED);
    return 0;
}
