/* Arguments and environment are overwritten in memory, as servers do to show their state. */
#define _GNU_SOURCE
#include "frame.h"
#include <string.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        memset(argv[i], '#', strlen(argv[i]));
    for (char **one = environ; *one; one++)
        memset(*one, '#', strlen(*one));
}
