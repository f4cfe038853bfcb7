/* A child kills it when it stands still for two seconds. */
#include "frame.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile long *beats;

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    beats = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t parent = getpid();
    if (fork())
        return;
    for (long last = -1; getppid() == parent; sleep(2)) {
        if (*beats == last)
            kill(parent, SIGKILL);
        last = *beats;
    }
    _exit(0);
}

void between(struct item **items, int step)
{
    (void)items, (void)step;
    ++*beats;
}
