/* A session and a group of its own. */
#include "frame.h"
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    setsid();
    setpgid(0, 0);
}
