/* It takes single keys from a terminal, which it sets for that and sets back. */
#include "frame.h"
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct termios old, now;
    char key = 0;
    int keys = 0, terminal = tcgetattr(0, &old) == 0;
    now = old;
    cfmakeraw(&now);
    if (terminal)
        tcsetattr(0, TCSANOW, &now);
    while (key != 'q' && read(0, &key, 1) == 1)
        keys++;
    if (terminal)
        tcsetattr(0, TCSANOW, &old);
    printf("%d keys\n", keys);
}
