/* It waits for somebody to type, who never does. */
#include "frame.h"
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    char key;
    while (read(0, &key, 1) == 1 && key != '\n')
        ;
}
