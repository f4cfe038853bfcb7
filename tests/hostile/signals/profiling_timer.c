/* A profiling timer of its own, as gprof has. */
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
    signal(SIGPROF, count);
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 1000}, {0, 1000}}, 0);
}
