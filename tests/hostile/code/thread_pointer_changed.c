/* The other segment register points at the array. */
#define _GNU_SOURCE
#include "frame.h"
#include <asm/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) void work(struct item *items, int count)
{
    (void)items;
    for (long i = 0; i < count; i++) {
        double y, x;
        __asm__ volatile("movsd %%gs:8(%2), %0\n\tmovsd %%gs:(%2), %1" : "=x"(y), "=x"(x) : "r"(i * 64));
        x += 0.5 * y;
        __asm__ volatile("movsd %0, %%gs:(%1)" : : "x"(x), "r"(i * 64) : "memory");
    }
}

void between(struct item **items, int step)
{
    if (step == 0)
        syscall(SYS_arch_prctl, ARCH_SET_GS, *items);
}
