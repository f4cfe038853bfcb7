/* Where the program stands in the files that it reads. Forks share that with each other, and a call that reads on (a line, the
 * next block of a stream) would find itself elsewhere each time it is run: forks get file descriptions of their own, and before
 * each timed call all are where they were at the entry.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <fcntl.h>
#include <sys/stat.h>

enum { LAST = 255, MOST = 64 };
static struct {
    int fd, flags;
    int64_t at;
} file[MOST];
static int files;

/* Regular files that can be read: what is only written is no business of a call that is done again. */
void la_files_park(void)
{
    struct stat s;
    files = 0;
    for (int fd = 0; fd <= LAST && files < MOST; fd++) {
        const int64_t at = la_sys(SYS_lseek, fd, 0, SEEK_CUR);
        if (at < 0 || la_sys(SYS_fstat, fd, &s, 0) || !S_ISREG(s.st_mode))
            continue;
        const long flags = la_sys(SYS_fcntl, fd, F_GETFL, 0);
        if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY)
            continue;
        file[files].fd = fd;
        file[files].flags = (int)flags & (O_ACCMODE | O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME);
        file[files++].at = at;
    }
}

void la_files_back(void)
{
    for (int i = 0; i < files; i++)
        la_sys(SYS_lseek, file[i].fd, file[i].at, SEEK_SET);
}

static void name_of(char *path, int fd)
{
    static const char folder[] = "/proc/self/fd/";
    la_copy(path, folder, sizeof folder);
    char *end = path + sizeof folder - 1;
    end += fd >= 100 ? 3 : fd >= 10 ? 2 : 1;
    *end = 0;
    do {
        *--end = (char)('0' + fd % 10);
        fd /= 10;
    } while (fd);
}

/* In a fork. What cannot be opened again (rights that were given up since) stays shared. */
void la_files_own(void)
{
    char path[32];
    for (int i = 0; i < files; i++) {
        const int fd = file[i].fd;
        const long closes = la_sys(SYS_fcntl, fd, F_GETFD, 0);
        name_of(path, fd);
        const int own = la_open(path, file[i].flags | O_CLOEXEC, 0);
        if (own < 0)
            continue;
        if (closes >= 0)
            la_sys(SYS_dup3, own, fd, closes & FD_CLOEXEC ? O_CLOEXEC : 0);
        la_close(own);
    }
    la_files_back();
}
