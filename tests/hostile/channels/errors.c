/* 10 MB on the error channel. */
#include "frame.h"
#include <stdio.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 100000; i++)
        fprintf(stderr, "%099d\n", i);
}
