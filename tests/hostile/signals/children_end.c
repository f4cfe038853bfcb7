/* SIGCHLD all the time. */
#include "frame.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(int number)
{
    (void)number;
    while (waitpid(-1, 0, WNOHANG) > 0)
        ;
}

void between(struct item **items, int step)
{
    (void)items;
    signal(SIGCHLD, reap);
    if (step % 20 == 0 && fork() == 0)
        _exit(0);
}
