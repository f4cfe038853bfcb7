/* The first thread ends, another one works. */
#include "frame.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *run(void *items)
{
    for (int step = 0; step < STEPS; step++)
        work(items, ITEMS);
    printf("%.17g\n", ((struct item *)items)[7].x);
    exit(0);
}

void drive(struct item *items)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, items);
    pthread_exit(0);
}
