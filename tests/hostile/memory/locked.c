/* All memory is locked. */
#include "frame.h"
#include <sys/mman.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    mlockall(MCL_CURRENT | MCL_FUTURE);
}
