/* A gigabyte of output. */
#include "frame.h"
#include <stdio.h>
#include <string.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    static char block[1 << 20];
    memset(block, '.', sizeof block);
    block[sizeof block - 1] = '\n';
    for (int i = 0; i < 1024; i++)
        fwrite(block, 1, sizeof block, stdout);
}
