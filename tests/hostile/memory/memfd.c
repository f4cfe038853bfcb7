/* The array is mapped twice, from memory that has no name. */
#define _GNU_SOURCE
#include "frame.h"
#include <sys/mman.h>
#include <unistd.h>

struct item *allocate(size_t count)
{
    int file = memfd_create("array", MFD_CLOEXEC);
    if (ftruncate(file, (off_t)(count * sizeof(struct item))))
        _exit(4);
    mmap(0, count * sizeof(struct item), PROT_READ, MAP_SHARED, file, 0);
    return mmap(0, count * sizeof(struct item), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}
