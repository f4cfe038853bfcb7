/* The hot function is left by siglongjmp. */
#include "frame.h"
#include <setjmp.h>

static sigjmp_buf back;
static int leaves;

void drive(struct item *items);

void between(struct item **items, int step)
{
    leaves = step % 10 == 0;
    if (leaves && !sigsetjmp(back, 1))
        work(*items, ITEMS);
    leaves = 0;
}

void inside(struct item *items, int i)
{
    (void)items;
    if (leaves && i > 8000)
        siglongjmp(back, 1);
}
