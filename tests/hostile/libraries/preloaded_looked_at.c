/* It has a library of its own loaded before all others, and prints the list of these. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    const char *list = getenv("LD_PRELOAD");
    const char *name = list ? strrchr(list, '/') : NULL;
    printf("%s, separators: %d\n", name ? name + 1 : "none", list && strchr(list, ':') != NULL);
}
