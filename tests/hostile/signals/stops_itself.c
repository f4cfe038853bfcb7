/* SIGSTOP, and a child that wakes it. */
#include "frame.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

void between(struct item **items, int step)
{
    (void)items;
    if (step % 200 != 100)
        return;
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        usleep(20000);
        kill(parent, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    waitpid(child, 0, 0);
}
