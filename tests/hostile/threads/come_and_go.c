/* A new thread for each call. */
#include "frame.h"
#include <pthread.h>

static void *run(void *items)
{
    return items;
}

void between(struct item **items, int step)
{
    (void)step;
    pthread_t thread;
    if (!pthread_create(&thread, 0, run, *items))
        pthread_join(thread, 0);
}
