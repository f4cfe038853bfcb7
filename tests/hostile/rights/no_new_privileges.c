/* No new privileges. */
#include "frame.h"
#include <sys/prctl.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}
