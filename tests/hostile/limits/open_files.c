/* Five open files. */
#include "frame.h"
#include <sys/resource.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){5, 5});
}
