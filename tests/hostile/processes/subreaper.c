/* Orphans come to it, and stay zombies. */
#include "frame.h"
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int c = 0; c < 20; c++) {
        pid_t child = fork();
        if (child == 0) {
            if (fork() == 0)
                usleep(1000);
            _exit(0);
        }
        if (c % 2)
            waitpid(child, 0, 0);
    }
}
