/* A grandchild in a session of its own, which sleeps for a while. */
#include "frame.h"
#include <sys/wait.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            close(0), close(1), close(2);
            sleep(600);
        }
        _exit(0);
    }
    waitpid(child, 0, 0);
}
