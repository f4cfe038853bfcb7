/* It asks on the terminal itself, whatever its standard input is, as for passwords. */
#include "frame.h"
#include <stdio.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    char line[100] = "nothing\n";
    FILE *terminal = fopen("/dev/tty", "r+");
    printf("%s", terminal && fgets(line, sizeof line, terminal) ? line : "no terminal\n");
}
