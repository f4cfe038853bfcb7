/* A loop over two of eight members, and the hooks as they are where a program does not have its own. */
#include "frame.h"

#include <stdio.h>
#include <stdlib.h>

#define OPTIONAL __attribute__((weak, noinline))

OPTIONAL void before(int argc, char **argv)
{
    (void)argc, (void)argv;
}

OPTIONAL struct item *allocate(size_t count)
{
    return calloc(count, sizeof(struct item));
}

OPTIONAL void between(struct item **items, int step)
{
    (void)items, (void)step;
}

OPTIONAL void drive(struct item *items)
{
    for (int step = 0; step < STEPS; step++) {
        between(&items, step);
        work(items, ITEMS);
    }
    int status = 0;
    double sum = 0;
    for (int i = 0; i < ITEMS; i++)
        sum += items[i].x;
    printf("sum %.17g\n", sum);
    status = after(items);
    fflush(stdout);
    exit(status);
}

OPTIONAL int after(struct item *items)
{
    (void)items;
    return 0;
}

OPTIONAL __attribute__((noclone)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++) {
        items[i].x += 0.5 * items[i].y;
#ifdef INSIDE
        if (i % 4096 == 0)
            inside(items, i);
#endif
    }
}

OPTIONAL int main(int argc, char **argv)
{
    before(argc, argv);
    struct item *items = allocate(ITEMS);
    if (!items)
        return 9;
    for (int i = 0; i < ITEMS; i++)
        items[i].y = i % 1000;
    drive(items);
    return 0;
}
