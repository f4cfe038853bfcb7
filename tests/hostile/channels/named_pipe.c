/* A named pipe, open at both ends. */
#include "frame.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    mkfifo("pipe", 0600);
    if (open("pipe", O_RDWR) < 0)
        _exit(4);
}
