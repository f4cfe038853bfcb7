/* It ends itself by SIGKILL. */
#include "frame.h"
#include <signal.h>
#include <stdio.h>

int after(struct item *items)
{
    (void)items;
    fflush(stdout);
    return raise(SIGKILL);
}
