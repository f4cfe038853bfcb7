/* It gives up all rights. */
#define _GNU_SOURCE
#include "frame.h"
#include <grp.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    if (geteuid() == 0 && (setgroups(0, 0) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
        _exit(4);
}
