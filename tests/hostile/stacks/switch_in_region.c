/* The hot loop switches stacks. */
#include "frame.h"
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t outer, inner;

static void run(void)
{
    for (;;)
        swapcontext(&inner, &outer);
}

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    getcontext(&inner);
    inner.uc_stack.ss_sp = malloc(65536);
    inner.uc_stack.ss_size = 65536;
    makecontext(&inner, run, 0);
}

void inside(struct item *items, int i)
{
    (void)items, (void)i;
    swapcontext(&outer, &inner);
}
