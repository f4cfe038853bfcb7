/* A thousand queued signals with values. */
#include "frame.h"
#include <signal.h>
#include <unistd.h>

static volatile long seen;

static void add(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    seen += info->si_value.sival_int;
}

void between(struct item **items, int step)
{
    (void)items;
    sigaction(SIGRTMIN + 3, &(struct sigaction){.sa_sigaction = add, .sa_flags = SA_SIGINFO}, 0);
    sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = step});
    sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = 1});
}

int after(struct item *items)
{
    (void)items;
    return seen == STEPS * (STEPS + 1) / 2 ? 0 : 4;
}
