/* What the programs of this folder share: records of 64 bytes, and the steps at which one of them misbehaves. */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>

struct item {
    double x, y, z, w;
    long a, b, c, d;
};

#ifdef __cplusplus
extern "C" {
#endif

enum { ITEMS = 20000, STEPS = 600 };

void before(int argc, char **argv);         /* first of all */
struct item *allocate(size_t count);        /* zeroed */
void between(struct item **items, int step); /* before each call of work() */
void inside(struct item *items, int i);     /* within its loop, in builds with -DINSIDE */
void drive(struct item *items);             /* calls work() STEPS times, with between() */
void work(struct item *items, int count);   /* the hot region */
int after(struct item *items);              /* the exit status */

#ifdef __cplusplus
}
#endif
#endif
