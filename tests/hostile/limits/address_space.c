/* No more addresses than 100 MB. */
#include "frame.h"
#include <sys/resource.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    setrlimit(RLIMIT_AS, &(struct rlimit){100 << 20, 100 << 20});
}
