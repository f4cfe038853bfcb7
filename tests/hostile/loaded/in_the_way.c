/* Functions that tools need, all of which fail. */
#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

int sigaction(int number, const void *action, void *old)
{
    (void)number, (void)action, (void)old;
    errno = EINVAL;
    return -1;
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    (void)address, (void)bytes, (void)protection, (void)flags, (void)file, (void)offset;
    errno = ENOMEM;
    return (void *)-1;
}

int pthread_create(void *thread, const void *attributes, void *(*start)(void *), void *argument)
{
    (void)thread, (void)attributes, (void)start, (void)argument;
    return EAGAIN;
}
