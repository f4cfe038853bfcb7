/* It starts itself once more with a library that is loaded before all others. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    if (argc != 2 || getenv("LD_PRELOAD"))
        return;
    setenv("LD_PRELOAD", argv[1], 1);
    execv("/proc/self/exe", argv);
    perror("execv");
    exit(3);
}
