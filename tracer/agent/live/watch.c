/* Which of the structures' memory the program has written since the last look.
 *
 * Whole pages: the kernel notes it (userfaultfd's asynchronous write protection, PAGEMAP_SCAN; Linux 6.7), also for what system
 * calls write, and nobody is stopped for it. A look at pages forgets what was written there: it is told to all regions whose
 * structures lie there. Bytes on pages that hold other things too are compared with a copy, each region with its own.
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

struct piece { /* whole pages of the structures of one or several regions */
    uint64_t from, to, regions; /* bit n: region n */
};
enum { MOST_PIECES = 2 * LA_LIVE_RANGES * LA_LIVE_REGIONS };
static struct piece pieces[MOST_PIECES];
static uint64_t piece_count;
static int pagemap = -1, watching = -1;

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

static void add_edge(struct la_live_region *r, uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    struct la_live_edge *e = &r->edges[r->edge_count++];
    e->at = from;
    e->bytes = to - from;
    la_copy(e->copy, (const void *)from, e->bytes);
}

/* From here on no piece of pages lies on both sides. */
static void cut_at(uint64_t border)
{
    const uint64_t known = piece_count;
    for (uint64_t i = 0; i < known && piece_count < MOST_PIECES; i++)
        if (pieces[i].from < border && border < pieces[i].to) {
            pieces[piece_count++] = (struct piece){border, pieces[i].to, pieces[i].regions};
            pieces[i].to = border;
        }
}

/* Whole pages of a region's: those that are watched for another one get one owner more. */
static int add_pages(struct la_live_region *r, uint64_t from, uint64_t to)
{
    cut_at(from);
    cut_at(to);
    const uint64_t own = 1ull << la_live_number(r), known = piece_count;
    while (from < to) {
        uint64_t end = to;
        struct piece *same = NULL;
        for (uint64_t i = 0; i < known && !same; i++) {
            if (pieces[i].from == from)
                same = &pieces[i];
            else if (from < pieces[i].from && pieces[i].from < end)
                end = pieces[i].from;
        }
        if (same) {
            same->regions |= own;
            from = same->to;
            continue;
        }
        if (piece_count == MOST_PIECES)
            return -1;
        pieces[piece_count++] = (struct piece){from, end, own};
        from = end;
    }
    return 0;
}

static int divide(struct la_live_region *r, uint64_t from, uint64_t to)
{
    const uint64_t first = la_up(from, LA_PAGE), last = la_down(to, LA_PAGE);
    if (first >= last) { /* less than two pages */
        const uint64_t border = first < to ? first : to;
        add_edge(r, from, border);
        add_edge(r, border, to);
        return 0;
    }
    add_edge(r, from, first);
    add_edge(r, last, to);
    return add_pages(r, first, last);
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

static void note_written(uint64_t regions)
{
    for (uint64_t n = 0; n < LA_LIVE_REGIONS; n++)
        la_live[n].dirty |= regions >> n & 1;
}

/* Tells all regions but those of `quiet` what was written of the pages of `regions`; -1: the kernel does not tell. */
static int look_at_pages(uint64_t regions, uint64_t quiet)
{
    for (uint64_t i = 0; i < piece_count; i++) {
        const int written = pieces[i].regions & regions ? scan_pages(pieces[i].from, pieces[i].to) : 0;
        if (written < 0)
            return -1;
        if (written)
            note_written(pieces[i].regions & ~quiet);
    }
    return 0;
}

/* What lies on pages that are watched already for another region is registered once more, which changes nothing. */
static const char *watch_pages(const struct la_live_region *r)
{
    const uint64_t own = 1ull << la_live_number(r);
    if (watching < 0) {
        watching = open_userfaultfd();
        pagemap = high(la_open("/proc/self/pagemap", O_RDONLY, 0));
    }
    if (watching < 0 || pagemap < 0)
        return "this kernel does not tell which pages were written (Linux 6.7, and userfaultfd permitted)";
    for (uint64_t i = 0; i < piece_count; i++) {
        struct registration wanted = {pieces[i].from, pieces[i].to - pieces[i].from, REGISTER_WP, 0};
        if (!(pieces[i].regions & own))
            continue;
        if (la_sys(SYS_ioctl, watching, REGISTER_IOCTL, &wanted) || scan_pages(pieces[i].from, pieces[i].to) < 0)
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

const char *la_watch_start(struct la_live_region *r)
{
    const struct la_live_orders *o = &r->orders;
    r->edges = la_memory(la_up(2 * o->ranges * sizeof *r->edges + 1, LA_PAGE));
    if (!r->edges)
        return "no memory to watch the structures";
    for (uint64_t i = 0; i < o->ranges; i++)
        if (!is_there(o->range[i][0], o->range[i][1]))
            return "the memory of a structure is not there yet at the first of the calls";
    if (look_at_pages(~0ull, 0)) /* before the new region's pages are as if nothing had been written */
        return "the kernel cannot watch the memory of a structure";
    for (uint64_t i = 0; i < o->ranges; i++)
        if (divide(r, o->range[i][0], o->range[i][1]))
            return "too many structures for one trial";
    r->dirty = 0;
    return piece_count ? watch_pages(r) : NULL;
}

static int differs(const struct la_live_edge *e)
{
    const uint8_t *now = (const uint8_t *)e->at;
    for (uint64_t i = 0; i < e->bytes; i++)
        if (now[i] != e->copy[i])
            return 1;
    return 0;
}

/* Whether they do since the last time that this was asked. */
static int edges_differ(struct la_live_region *r)
{
    int found = 0;
    for (uint64_t i = 0; i < r->edge_count; i++)
        if (differs(&r->edges[i])) {
            la_copy(r->edges[i].copy, (const void *)r->edges[i].at, r->edges[i].bytes);
            found = 1;
        }
    return found;
}

static int look(struct la_live_region *r)
{
    if (look_at_pages(1ull << la_live_number(r), 0))
        return -1;
    r->dirty |= edges_differ(r);
    return r->dirty;
}

int la_live_stale(struct la_live_region *r)
{
    const int stale = look(r);
    r->page->stale = stale > 0;
    return stale;
}

void la_watch_expect(struct la_live_region *r)
{
    for (uint64_t n = 0; n < LA_LIVE_REGIONS; n++)
        if ((r->sharing >> n & 1) && look(&la_live[n]) < 0)
            la_live[n].dirty = 1;
}

void la_watch_settle(struct la_live_region *r)
{
    look_at_pages(1ull << la_live_number(r), r->sharing);
    edges_differ(r);
    for (uint64_t n = 0; n < LA_LIVE_REGIONS; n++)
        if (r->sharing >> n & 1)
            edges_differ(&la_live[n]);
    r->dirty = 0;
}
