/* A child in a process group of its own reads from the terminal, which stops it; it is told to go on and to end. */
#define _GNU_SOURCE
#include "frame.h"
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        char key;
        setpgid(0, 0);
        _exit(read(0, &key, 1) == 1 ? 2 : 3);
    }
    waitpid(child, &status, WUNTRACED);
    if (WIFSTOPPED(status)) {
        printf("stopped by %d\n", WSTOPSIG(status));
        kill(child, SIGKILL);
        kill(child, SIGCONT);
        waitpid(child, &status, 0);
    } else {
        printf("ended\n");
    }
}
