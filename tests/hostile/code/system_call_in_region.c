/* The hot loop makes system calls by itself. */
#include "frame.h"

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        items[i].x += 0.5 * items[i].y;
        if (i % 1000 == 0) {
            long result = 39; /* getpid */
            __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
            items[i].a = result != 0;
        }
    }
}
