/* A ring of io_uring, where the kernel gives one. */
#define _GNU_SOURCE
#include "frame.h"
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct io_uring_params wanted = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 8, &wanted);
    if (ring >= 0)
        mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
}
