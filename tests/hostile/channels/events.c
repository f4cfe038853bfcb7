/* epoll, inotify, an event counter and a timer as files. */
#include "frame.h"
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>
#include <unistd.h>

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    int all = epoll_create1(0), count = eventfd(0, 0), watch = inotify_init(), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    inotify_add_watch(watch, "/", IN_MODIFY);
    timerfd_settime(timer, 0, &(struct itimerspec){{0, 1000000}, {0, 1000000}}, 0);
    int files[] = {count, watch, timer};
    for (int i = 0; i < 3; i++)
        epoll_ctl(all, EPOLL_CTL_ADD, files[i], &(struct epoll_event){.events = EPOLLIN, .data.fd = files[i]});
}
