/* Each iteration calls one of four functions by a pointer. */
#include "frame.h"

static double half(double v) { return v * 0.5; }
static double quarter(double v) { return v * 0.25; }
static double same(double v) { return v; }
static double none(double v) { return v * 0; }
static double (*volatile ways[])(double) = {half, quarter, same, none};

__attribute__((noinline)) void work(struct item *items, int count)
{
    for (int i = 0; i < count; i++)
        items[i].x += ways[i & 3](items[i].y);
}
