/* Three hundred children, one after another. */
#include "frame.h"
#include <sys/wait.h>
#include <unistd.h>

void between(struct item **items, int step)
{
    (void)items;
    if (step % 2)
        return;
    pid_t child = fork();
    if (child == 0)
        _exit(3);
    waitpid(child, 0, 0);
}
