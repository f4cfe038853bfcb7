/* A library that takes itself out of the environment once it is there. */
#include <stdlib.h>

__attribute__((constructor)) static void begin(void)
{
    unsetenv("LD_PRELOAD");
}
