/* Zeros, control characters and broken UTF-8. */
#include "frame.h"
#include <stdio.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 70000; i++)
        putchar(i & 255);
    fputs("\033[31m\r\x9b", stderr);
}
