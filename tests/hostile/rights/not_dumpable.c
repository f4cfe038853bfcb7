/* Nobody may look at it. */
#include "frame.h"
#include <sys/prctl.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    prctl(PR_SET_DUMPABLE, 0);
}
