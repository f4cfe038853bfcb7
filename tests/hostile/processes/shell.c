/* Shells between the calls. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>

void between(struct item **items, int step)
{
    (void)items;
    if (step % 100 == 0) {
        if (system("exit 0"))
            exit(4);
        FILE *out = popen("echo x", "r");
        if (fgetc(out) != 'x' || pclose(out))
            exit(5);
    }
}
