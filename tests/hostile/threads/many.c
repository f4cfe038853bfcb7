/* Two hundred threads that wait. */
#include "frame.h"
#include <pthread.h>
#include <unistd.h>

static void *wait(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < 200; i++)
        if (pthread_create(&thread, &small, wait, 0))
            _exit(4);
}
