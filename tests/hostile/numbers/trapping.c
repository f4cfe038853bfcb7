/* Invalid operations and overflows raise SIGFPE; there are none. */
#define _GNU_SOURCE
#include "frame.h"
#include <fenv.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
}
