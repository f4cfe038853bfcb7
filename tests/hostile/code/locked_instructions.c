/* Atomic operations and fences in the hot loop. */
#include "frame.h"

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        __atomic_fetch_add(&items[i].a, 3, __ATOMIC_SEQ_CST);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        items[i].x += 0.5 * items[i].y;
    }
}
