/* Pinned to one core, with the lowest priority. */
#define _GNU_SOURCE
#include "frame.h"
#include <sched.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    sched_setaffinity(0, sizeof one, &one);
    (void)!nice(19);
}
