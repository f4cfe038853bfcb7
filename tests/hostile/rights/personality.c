/* Another personality, and itself executed anew for it. */
#define _GNU_SOURCE
#include "frame.h"
#include <sys/personality.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    if (argc > 1)
        return;
    personality(ADDR_COMPAT_LAYOUT | READ_IMPLIES_EXEC);
    execl("/proc/self/exe", argv[0], "again", (char *)0);
}
