/* All files are closed, also those that others opened for it. */
#define _GNU_SOURCE
#include "frame.h"
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    close_range(0, ~0U, 0);
}
