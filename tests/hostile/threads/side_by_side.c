/* Two threads in the hot function at once, each with its half. */
#include "frame.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *run(void *items)
{
    for (int step = 0; step < STEPS; step++)
        work(items, ITEMS / 2);
    return 0;
}

void drive(struct item *items)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, items);
    run(items + ITEMS / 2);
    pthread_join(thread, 0);
    printf("%.17g\n", items[7].x);
    exit(0);
}
