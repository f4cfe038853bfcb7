/* A child traces it for as long as it runs. */
#include "frame.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    int ready[2], status;
    char one;
    pid_t parent = getpid();
    if (pipe(ready))
        _exit(4);
    if (fork()) {
        close(ready[1]);
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
        if (read(ready[0], &one, 1) != 1)
            _exit(5);
        return;
    }
    int traced = !ptrace(PTRACE_SEIZE, parent, 0, 0);
    if (write(ready[1], "x", 1) != 1 || !traced)
        _exit(0);
    while (waitpid(parent, &status, 0) == parent && WIFSTOPPED(status))
        ptrace(PTRACE_CONT, parent, 0, WSTOPSIG(status));
    _exit(0);
}
