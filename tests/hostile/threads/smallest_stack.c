/* The hot function on the smallest stack that a thread may have. */
#include "frame.h"
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *run(void *items)
{
    for (int step = 0; step < STEPS; step++)
        work(items, ITEMS);
    return 0;
}

void drive(struct item *items)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t)sysconf(_SC_THREAD_STACK_MIN));
    if (pthread_create(&thread, &small, run, items))
        exit(4);
    pthread_join(thread, 0);
    printf("%.17g\n", items[7].x);
    exit(0);
}
