/* The hot loop's memory is taken away, and given back by the handler of SIGSEGV. */
#include "frame.h"
#include <signal.h>
#include <sys/mman.h>

static void *start;

static void give_back(int number)
{
    (void)number;
    mprotect(start, 1 << 20, PROT_READ | PROT_WRITE);
}

struct item *allocate(size_t count)
{
    signal(SIGSEGV, give_back);
    return start = mmap(0, count * sizeof(struct item), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void between(struct item **items, int step)
{
    (void)items;
    if (step % 50 == 0)
        mprotect(start, 1 << 20, PROT_NONE);
}
