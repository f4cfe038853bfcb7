/* It reads its input to the end. */
#include "frame.h"
#include <stdio.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    long count = 0;
    while (getchar() != EOF)
        count++;
    printf("read %ld\n", count);
}
