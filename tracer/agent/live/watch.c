/* Which of the structures' memory the program has written since the last look.
 *
 * Whole pages: the kernel notes it (userfaultfd's asynchronous write protection, PAGEMAP_SCAN; Linux 6.7), also for what system
 * calls write, and nobody is stopped for it. Bytes on pages that hold other things too are compared with a copy.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "live.h"

/* <linux/userfaultfd.h> and <linux/fs.h> of the kernel that introduced them */
struct api { uint64_t api, features, ioctls; };
struct registration { uint64_t start, bytes, mode, ioctls; };
struct page_region { uint64_t start, end, categories; };
struct scan { uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, inverted, mask, any, wanted; };
enum { USER_MODE_ONLY = 1, WP_UNPOPULATED = 1 << 13, WP_ASYNC = 1 << 15, REGISTER_WP = 2, PAGE_IS_WRITTEN = 2, SCAN_BOTH = 3 };
enum { PAGE_IS_THERE = 8 | 16 }; /* in memory or swapped out: protecting what is not would fill page tables for all of it */
#define UFFD_API 0xaaull
#define API_IOCTL 0xc018aa3ful      /* _IOWR(0xAA, 0x3F, struct api) */
#define REGISTER_IOCTL 0xc020aa00ul /* _IOWR(0xAA, 0x00, struct registration) */
#define SCAN_IOCTL 0xc0606610ul     /* _IOWR('f', 16, struct scan) */
#define HIGH_FD 900

struct edge {
    uint64_t at, bytes;
    uint8_t copy[LA_PAGE];
};
static struct edge *edges;
static uint64_t edge_count, page_count, pages[LA_LIVE_RANGES][2];
static int pagemap = -1;

static int high(int fd)
{
    if (fd < 0)
        return fd;
    const int moved = (int)la_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (moved < 0)
        return fd;
    la_close(fd);
    return moved;
}

static int open_userfaultfd(void)
{
    long fd = la_sys(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK, 0, 0);
    if (fd < 0)
        fd = la_sys(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY, 0, 0);
    struct api api = {UFFD_API, WP_ASYNC | WP_UNPOPULATED, 0};
    if (fd >= 0 && la_sys(SYS_ioctl, fd, API_IOCTL, &api)) {
        la_close((int)fd);
        fd = -1;
    }
    return high((int)fd);
}

static void add_edge(uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    struct edge *e = &edges[edge_count++];
    e->at = from;
    e->bytes = to - from;
    la_copy(e->copy, (const void *)from, e->bytes);
}

static void divide(uint64_t from, uint64_t to)
{
    const uint64_t first = la_up(from, LA_PAGE), last = la_down(to, LA_PAGE);
    if (first >= last) { /* less than two pages */
        const uint64_t border = first < to ? first : to;
        add_edge(from, border);
        add_edge(border, to);
        return;
    }
    add_edge(from, first);
    add_edge(last, to);
    pages[page_count][0] = first;
    pages[page_count++][1] = last;
}

/* Whether any page of the range was written; from now on none is. -1: the kernel does not tell. */
static int scan_pages(uint64_t from, uint64_t to)
{
    struct page_region found[16];
    int written = 0;
    while (from < to) {
        struct scan s = {.size = sizeof s, .flags = SCAN_BOTH, .start = from, .end = to, .vec = (uint64_t)found,
                         .vec_len = 16, .mask = PAGE_IS_WRITTEN, .any = PAGE_IS_THERE, .wanted = PAGE_IS_WRITTEN};
        const long n = la_sys(SYS_ioctl, pagemap, SCAN_IOCTL, &s);
        if (n < 0 || s.walk_end <= from)
            return -1;
        written |= n > 0;
        from = s.walk_end;
    }
    return written;
}

static const char *watch_pages(void)
{
    const int fd = open_userfaultfd();
    pagemap = high(la_open("/proc/self/pagemap", O_RDONLY, 0));
    if (fd < 0 || pagemap < 0)
        return "this kernel does not tell which pages were written (Linux 6.7, and userfaultfd permitted)";
    for (uint64_t i = 0; i < page_count; i++) {
        struct registration r = {pages[i][0], pages[i][1] - pages[i][0], REGISTER_WP, 0};
        if (la_sys(SYS_ioctl, fd, REGISTER_IOCTL, &r) || scan_pages(pages[i][0], pages[i][1]) < 0)
            return "the kernel cannot watch the memory of a structure";
    }
    return NULL;
}

/* What a call of a batch touches may be allocated by one before it, after the first call of all. */
static int is_there(uint64_t from, uint64_t to)
{
    static uint8_t resident[4096];
    for (uint64_t at = la_down(from, LA_PAGE); at < to; at += sizeof resident * LA_PAGE) {
        const uint64_t rest = la_up(to - at, LA_PAGE), most = sizeof resident * LA_PAGE;
        if (la_sys(SYS_mincore, at, rest < most ? rest : most, resident))
            return 0;
    }
    return 1;
}

const char *la_watch_start(void)
{
    edges = la_memory(la_up(2 * la_live.ranges * sizeof *edges + 1, LA_PAGE));
    if (!edges)
        return "no memory to watch the structures";
    for (uint64_t i = 0; i < la_live.ranges; i++)
        if (!is_there(la_live.range[i][0], la_live.range[i][1]))
            return "the memory of a structure is not there yet at the first of the calls";
    for (uint64_t i = 0; i < la_live.ranges; i++)
        divide(la_live.range[i][0], la_live.range[i][1]);
    return page_count ? watch_pages() : NULL;
}

static int differs(const struct edge *e)
{
    const uint8_t *now = (const uint8_t *)e->at;
    for (uint64_t i = 0; i < e->bytes; i++)
        if (now[i] != e->copy[i])
            return 1;
    return 0;
}

static int look(void)
{
    int stale = 0;
    for (uint64_t i = 0; i < page_count; i++) {
        const int written = scan_pages(pages[i][0], pages[i][1]);
        if (written < 0)
            return -1;
        stale |= written;
    }
    for (uint64_t i = 0; i < edge_count; i++)
        if (differs(&edges[i])) {
            la_copy(edges[i].copy, (const void *)edges[i].at, edges[i].bytes);
            stale = 1;
        }
    return stale;
}

int la_live_stale(void)
{
    const int stale = look();
    la_live_page->stale = stale > 0;
    return stale;
}

void la_watch_settle(void) { look(); }
