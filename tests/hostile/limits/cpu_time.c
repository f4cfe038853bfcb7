/* Three seconds of processor time. */
#include "frame.h"
#include <sys/resource.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    setrlimit(RLIMIT_CPU, &(struct rlimit){3, 4});
}
