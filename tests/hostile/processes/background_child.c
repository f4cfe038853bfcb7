/* A child that holds the output and does not end. */
#include "frame.h"
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    if (fork() == 0)
        for (;;)
            pause();
}
