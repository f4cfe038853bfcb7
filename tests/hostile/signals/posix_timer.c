/* A timer of 5 kHz with a real-time signal. */
#include "frame.h"
#include <signal.h>
#include <time.h>

static volatile long seen;

static void count(int number)
{
    seen += number;
}

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    timer_t timer;
    signal(SIGRTMIN, count);
    timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN}, &timer);
    timer_settime(timer, 0, &(struct itimerspec){{0, 200000}, {0, 200000}}, 0);
}
