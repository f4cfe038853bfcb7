/* Half of the time is in code that moves from page to page. */
#include "frame.h"
#include <string.h>
#include <sys/mman.h>

static const unsigned char loop[] = {0xf2, 0x0f, 0x10, 0x07, 0xf2, 0x0f, 0x58, 0x47, 0x08, 0xf2, 0x0f, 0x11, 0x07,
                                     0x48, 0x83, 0xc7, 0x40, 0xff, 0xce, 0x75, 0xeb, 0xc3};

void between(struct item **items, int step)
{
    (void)step;
    void *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, loop, sizeof loop);
    ((void (*)(struct item *, int))code)(*items, ITEMS);
    munmap(code, 4096);
}
