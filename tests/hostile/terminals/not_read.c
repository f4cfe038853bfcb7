/* Its standard input is a terminal on which nobody types, and which it does not read. */
#include "frame.h"
#include <stdio.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("%s\n", ttyname(0) ? "a terminal" : "no terminal");
}
