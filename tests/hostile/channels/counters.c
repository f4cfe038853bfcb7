/* It counts its own events, where the kernel lets it. */
#define _GNU_SOURCE
#include "frame.h"
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    struct perf_event_attr clock = {.type = PERF_TYPE_SOFTWARE, .size = sizeof clock, .config = PERF_COUNT_SW_TASK_CLOCK};
    (void)!syscall(SYS_perf_event_open, &clock, 0, -1, -1, 0);
}
