/* posix_spawn. */
#define _GNU_SOURCE
#include "frame.h"
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

void between(struct item **items, int step)
{
    (void)items;
    pid_t child;
    char *words[] = {"true", 0};
    if (step % 50 == 0 && !posix_spawn(&child, "/bin/true", 0, 0, words, environ))
        waitpid(child, 0, 0);
}
