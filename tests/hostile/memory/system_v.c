/* The array is shared memory of System V. */
#include "frame.h"
#include <sys/ipc.h>
#include <sys/shm.h>

struct item *allocate(size_t count)
{
    int id = shmget(IPC_PRIVATE, count * sizeof(struct item), IPC_CREAT | 0600);
    void *place = shmat(id, 0, 0);
    shmctl(id, IPC_RMID, 0);
    return place == (void *)-1 ? 0 : place;
}
