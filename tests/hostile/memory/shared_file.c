/* The array is a file, which a run changes. */
#define _GNU_SOURCE
#include "frame.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct item *allocate(size_t count)
{
    int file = open("array.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(file, (off_t)(count * sizeof(struct item))))
        _exit(4);
    return mmap(0, count * sizeof(struct item), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}
