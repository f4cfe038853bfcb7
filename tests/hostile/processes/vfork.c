/* vfork and exec. */
#define _GNU_SOURCE
#include "frame.h"
#include <sys/wait.h>
#include <unistd.h>

void between(struct item **items, int step)
{
    (void)items;
    if (step % 50)
        return;
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)0);
        _exit(4);
    }
    waitpid(child, 0, 0);
}
