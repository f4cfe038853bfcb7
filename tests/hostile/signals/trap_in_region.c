/* Breakpoints of its own, in the hot loop. */
#include "frame.h"
#include <signal.h>

static volatile int seen;

static void count(int number)
{
    seen += number;
}

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    signal(SIGTRAP, count);
}

void inside(struct item *items, int i)
{
    (void)items, (void)i;
    __asm__ volatile("int3");
}
