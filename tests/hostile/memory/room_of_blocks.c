/* It asks the allocator how much room its blocks have, gives them back in every way, and uses all ways to get them. */
#include "frame.h"
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "a text of more than a hundred characters, so that the block that holds a copy of it is seen to "
                           "have room for as many";
static long room;

static void *seen(void *block)
{
    room += malloc_usable_size(block) >= 100;
    return block;
}

void between(struct item **items, int step)
{
    (void)items, (void)step;
    void *aligned = NULL;
    free(seen(malloc(100 + (size_t)step)));
    free(seen(calloc(10, 100)));
    free(seen(realloc(seen(malloc(200)), 3000 + (size_t)step)));
    free(seen(aligned_alloc(64, 640)));
    if (!posix_memalign(&aligned, 256, 500))
        free(seen(aligned));
    free(seen(memalign(128, 300)));
    free(seen(strdup(text)));
}

int after(struct item *items)
{
    room += malloc_usable_size(items) >= ITEMS * sizeof *items;
    printf("room %ld\n", room);
    free(items);
    return 0;
}
