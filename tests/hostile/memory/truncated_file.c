/* A mapped file is truncated; the part of it that the loop uses is still there. */
#define _GNU_SOURCE
#include "frame.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct item *allocate(size_t count)
{
    size_t used = (count * sizeof(struct item) + 4095) & ~4095UL;
    int file = open("cut.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(file, (off_t)(2 * used)))
        _exit(4);
    void *place = mmap(0, 2 * used, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (ftruncate(file, (off_t)used))
        _exit(4);
    close(file);
    return place;
}
