/* A handler for each signal, and each raised in turn. */
#include "frame.h"
#include <signal.h>

static volatile long seen;

static void count(int number)
{
    seen += number;
}

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int number = 1; number <= SIGRTMAX; number++)
        signal(number, count);
}

void between(struct item **items, int step)
{
    (void)items;
    int number = step % 64 + 1;
    if (number != SIGKILL && number != SIGSTOP && number != 32 && number != 33)
        raise(number);
}
