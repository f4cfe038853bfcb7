/* A timer of the process's own time. */
#include "frame.h"
#include <signal.h>
#include <sys/time.h>

static volatile long seen;

static void count(int number)
{
    seen += number;
}

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    signal(SIGVTALRM, count);
    setitimer(ITIMER_VIRTUAL, &(struct itimerval){{0, 1000}, {0, 1000}}, 0);
}
