/* It ends with another status when the code of its hot function is not what it was. */
#include "frame.h"
#include <string.h>

static unsigned char kept[32];
static int changed;

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    memcpy(kept, (void *)work, sizeof kept);
}

void between(struct item **items, int step)
{
    (void)items, (void)step;
    changed |= memcmp(kept, (void *)work, sizeof kept) != 0;
}

int after(struct item *items)
{
    (void)items;
    return changed ? 6 : 0;
}
