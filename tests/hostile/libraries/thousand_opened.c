/* It opens a thousand libraries, a few of them while it works, and calls into each. */
#include "frame.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char *folder;
static long total;

static void load(int number)
{
    char name[512];
    snprintf(name, sizeof name, "%s/libraries/small%d.so", folder, number);
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        exit(3);
    }
    total += ((long (*)(long))dlsym(library, "small"))(number);
}

void before(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : ".";
    for (int number = 0; number < 940; number++)
        load(number);
}

void between(struct item **items, int step)
{
    (void)items;
    if (step % 10 == 5)
        load(940 + step / 10);
}

int after(struct item *items)
{
    (void)items;
    printf("total %ld\n", total);
    return 0;
}
