/* A listening socket, a connected pair, a pipe to itself. */
#include "frame.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int pair[2], ends[2];

void before(int argc, char **argv)
{
    (void)argc, (void)argv;
    int server = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    (void)!bind(server, (struct sockaddr *)&any, sizeof any);
    listen(server, 5);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pipe(ends))
        _exit(4);
}

void between(struct item **items, int step)
{
    char one = (char)step;
    (void)items;
    if (write(pair[0], &one, 1) != 1 || read(pair[1], &one, 1) != 1 || write(ends[1], &one, 1) != 1 ||
        read(ends[0], &one, 1) != 1)
        _exit(5);
}
