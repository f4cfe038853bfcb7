/* Twenty thousand mappings, which the kernel cannot merge. */
#include "frame.h"
#include <sys/mman.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    char *place = mmap(0, 40000 * 4096UL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < 40000; i += 2)
        mprotect(place + i * 4096, 4096, PROT_READ);
}
