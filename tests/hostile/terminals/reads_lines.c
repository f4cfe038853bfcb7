/* It reads lines from a terminal until the end of the input is typed. */
#include "frame.h"
#include <stdio.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    char line[100];
    printf("%s\n", isatty(0) ? "a terminal" : "no terminal");
    while (fgets(line, sizeof line, stdin))
        printf("got %s", line);
}
