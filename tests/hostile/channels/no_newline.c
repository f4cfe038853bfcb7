/* One line of 3 MB without an end. */
#include "frame.h"
#include <stdio.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 3000000; i++)
        putchar('x');
}
