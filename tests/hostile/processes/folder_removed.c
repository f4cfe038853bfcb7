/* The folder it stands in is removed. */
#include "frame.h"
#include <stdlib.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    char name[] = "goneXXXXXX";
    if (!mkdtemp(name) || chdir(name))
        _exit(4);
    if (chdir("..") || chdir(name))
        _exit(4);
    char path[300] = "../";
    for (int i = 0; name[i]; i++)
        path[3 + i] = name[i];
    rmdir(path);
}
