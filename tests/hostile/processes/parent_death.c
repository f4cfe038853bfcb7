/* It wants to die with its parent. */
#include "frame.h"
#include <signal.h>
#include <sys/prctl.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}
