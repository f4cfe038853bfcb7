/* No locked memory, no queued signals, no message queues. */
#include "frame.h"
#include <sys/resource.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_SIGPENDING, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_MSGQUEUE, &(struct rlimit){0, 0});
}
