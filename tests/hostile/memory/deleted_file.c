/* The array is a private mapping of a file that was deleted. */
#define _GNU_SOURCE
#include "frame.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct item *allocate(size_t count)
{
    int file = open("gone.bin", O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(file, (off_t)(count * sizeof(struct item))))
        _exit(4);
    unlink("gone.bin");
    return mmap(0, count * sizeof(struct item), PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
}
