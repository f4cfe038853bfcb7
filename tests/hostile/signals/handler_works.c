/* The hot function runs in a signal handler. */
#include "frame.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct item *all;

static void handle(int number)
{
    (void)number;
    work(all, ITEMS);
}

void drive(struct item *items)
{
    all = items;
    signal(SIGUSR1, handle);
    for (int step = 0; step < STEPS; step++)
        raise(SIGUSR1);
    printf("%.17g\n", items[7].x);
    fflush(stdout);
    exit(0);
}
