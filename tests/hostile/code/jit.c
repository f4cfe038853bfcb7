/* The hot loop is code that the program wrote into memory. */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* for (; n; n--, p += 64) *(double *)p += *(double *)(p + 8); */
static const unsigned char loop[] = {0xf2, 0x0f, 0x10, 0x07, 0xf2, 0x0f, 0x58, 0x47, 0x08, 0xf2, 0x0f, 0x11, 0x07,
                                     0x48, 0x83, 0xc7, 0x40, 0xff, 0xce, 0x75, 0xeb, 0xc3};

void drive(struct item *items)
{
    void *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, loop, sizeof loop);
    for (int step = 0; step < 20 * STEPS; step++)
        ((void (*)(struct item *, int))code)(items, ITEMS);
    printf("%.17g\n", items[7].x);
    exit(0);
}
