/* Each run computes something else. */
#include "frame.h"
#include <time.h>
#include <stdio.h>
#include <unistd.h>

void between(struct item **items, int step)
{
    (*items)[step].y = (double)(getpid() + clock());
}
