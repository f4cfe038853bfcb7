/* It replaces its own file by a script. */
#include "frame.h"
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    char path[PATH_MAX + 1] = "";
    if (readlink("/proc/self/exe", path, PATH_MAX) <= 0 || unlink(path))
        return;
    FILE *file = fopen(path, "w");
    fputs("#!/bin/sh\necho replaced\n", file);
    fclose(file);
    chmod(path, 0755);
}
