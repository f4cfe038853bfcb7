/* Its channels do not block, also for those who share them. */
#include "frame.h"
#include <fcntl.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    for (int file = 0; file < 3; file++)
        fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK);
}
