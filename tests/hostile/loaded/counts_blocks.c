/* malloc with a count, as a program's own library brings it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

static long blocks;
static void *(*next)(size_t);

void *malloc(size_t bytes)
{
    if (!next)
        next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    blocks++;
    return next(bytes);
}

__attribute__((destructor)) static void at_the_end(void)
{
    static const char line[] = "blocks were counted\n";
    if (blocks && write(2, line, sizeof line - 1) < 0)
        _exit(1);
}
