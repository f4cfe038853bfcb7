/* Breakpoints of its own, between the calls. */
#include "frame.h"
#include <signal.h>

static volatile int seen;

static void count(int number)
{
    seen += number;
}

void between(struct item **items, int step)
{
    (void)items, (void)step;
    signal(SIGTRAP, count);
    __asm__ volatile("int3");
}

int after(struct item *items)
{
    (void)items;
    return seen == STEPS * SIGTRAP ? 0 : 4;
}
