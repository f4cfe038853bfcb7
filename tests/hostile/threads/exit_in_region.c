/* A thread that ends in the hot loop. */
#include "frame.h"
#include <pthread.h>

static __thread int leaves;

static void *run(void *items)
{
    leaves = 1;
    work(items, ITEMS);
    return 0;
}

void between(struct item **items, int step)
{
    pthread_t thread;
    if (step % 20 == 0 && !pthread_create(&thread, 0, run, *items))
        pthread_join(thread, 0);
}

void inside(struct item *items, int i)
{
    (void)items;
    if (leaves && i > 8000)
        pthread_exit(0);
}
