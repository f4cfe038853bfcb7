/* No more than 8 MB of data. */
#include "frame.h"
#include <sys/resource.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    setrlimit(RLIMIT_DATA, &(struct rlimit){8 << 20, 8 << 20});
}
