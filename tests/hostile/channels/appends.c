/* Each run makes a file longer, and prints how long it is. */
#include "frame.h"
#include <stdio.h>

int after(struct item *items)
{
    (void)items;
    FILE *log = fopen("log", "a");
    fputs("run\n", log);
    return fclose(log);
}
