/* A thousand open files. */
#include "frame.h"
#include <fcntl.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int i = 0; i < 1000; i++)
        if (open("/proc/self/exe", O_RDONLY) < 0)
            break;
}
