/* A child by the system call clone3. */
#define _GNU_SOURCE
#include "frame.h"
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void between(struct item **items, int step)
{
    (void)items;
    if (step % 50)
        return;
    struct clone_args wanted = {.exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &wanted, sizeof wanted);
    if (child == 0)
        _exit(0);
    waitpid((pid_t)child, 0, 0);
}
