/* SIGALRM each millisecond, wherever the program is. */
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
    signal(SIGALRM, count);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 1000}, {0, 1000}}, 0);
}
