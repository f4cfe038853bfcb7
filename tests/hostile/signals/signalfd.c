/* Signals are read from a file. */
#include "frame.h"
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

void between(struct item **items, int step)
{
    (void)items, (void)step;
    static int file = -1;
    struct signalfd_siginfo info;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, 0);
    if (file < 0)
        file = signalfd(-1, &set, 0);
    raise(SIGUSR1);
    if (read(file, &info, sizeof info) != sizeof info)
        _exit(4);
}
