/* It keeps a copy of the hot function's first bytes and writes it back before each call. */
#include "frame.h"
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static char kept[16];

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    memcpy(kept, (void *)work, sizeof kept);
    mprotect((char *)((uintptr_t)work & ~4095UL), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
}

void between(struct item **items, int step)
{
    (void)items, (void)step;
    memcpy((void *)work, kept, sizeof kept);
}
