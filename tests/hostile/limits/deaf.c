/* It does not end, and heeds no signal that can be ignored. */
#include "frame.h"
#include <signal.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int number = 1; number <= SIGRTMAX; number++)
        signal(number, SIG_IGN);
}

int after(struct item *items)
{
    (void)items;
    for (;;)
        sleep(1);
}
