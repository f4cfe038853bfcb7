/* SIGPIPE between the calls. */
#include "frame.h"
#include <signal.h>
#include <unistd.h>

static volatile int seen;

static void count(int number)
{
    seen += number;
}

void between(struct item **items, int step)
{
    (void)items, (void)step;
    int ends[2];
    signal(SIGPIPE, count);
    if (pipe(ends))
        _exit(4);
    close(ends[0]);
    if (write(ends[1], "x", 1) == 1)
        _exit(5);
    close(ends[1]);
}
