/* The hot loop forks. */
#include "frame.h"
#include <sys/wait.h>
#include <unistd.h>

void inside(struct item *items, int i)
{
    static int calls;
    (void)items;
    if (i || calls++ % 100)
        return;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, 0, 0);
}
