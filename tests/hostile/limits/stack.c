/* 64 KiB of stack. */
#include "frame.h"
#include <sys/resource.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    setrlimit(RLIMIT_STACK, &(struct rlimit){65536, 65536});
}
