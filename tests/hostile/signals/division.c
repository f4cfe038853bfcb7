/* Divisions by zero, left by siglongjmp. */
#include "frame.h"
#include <setjmp.h>
#include <signal.h>

static sigjmp_buf back;
static volatile int zero;

static void leave(int number)
{
    siglongjmp(back, number);
}

void between(struct item **items, int step)
{
    (void)items;
    signal(SIGFPE, leave);
    if (!sigsetjmp(back, 1))
        zero = step / zero;
}
