/* It ends with another status where it is traced. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int after(struct item *items)
{
    (void)items;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "TracerPid:", 10) && atoi(line + 10))
            return 6;
    return 0;
}
