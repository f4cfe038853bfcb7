/* A thread is cancelled in the hot loop. */
#include "frame.h"
#include <pthread.h>
#include <sched.h>

static volatile int entered;
static __thread int waits;

static void *run(void *items)
{
    waits = 1;
    work(items, ITEMS);
    return 0;
}

void between(struct item **items, int step)
{
    pthread_t thread;
    entered = 0;
    if (step % 100 || pthread_create(&thread, 0, run, *items))
        return;
    while (!entered)
        sched_yield();
    pthread_cancel(thread);
    pthread_join(thread, 0);
}

void inside(struct item *items, int i)
{
    (void)items;
    if (waits && i > 8000)
        for (entered = 1;;)
            pthread_testcancel();
}
