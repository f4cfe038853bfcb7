/* A handler on a stack of its own. */
#include "frame.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile long seen;

static void count(int number)
{
    seen += number;
}

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    sigaltstack(&(stack_t){.ss_sp = malloc(65536), .ss_size = 65536}, 0);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = count, .sa_flags = SA_ONSTACK}, 0);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 1000}, {0, 1000}}, 0);
}
