/* What memory is at the entries of recorded calls: at each, the pages that were written since the entry before, and which of
 * their words are others than then. The kernel notes these pages (userfaultfd's asynchronous write protection, pagemap's scan;
 * Linux 6.7, admin-guide/mm/pagemap.rst), so that nothing in the program faults into us, and system calls may write, too.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

/* Newer than the headers may be. */
#define FEATURES (1ull << 13 /* pages that are not there yet */ | 1ull << 15 /* asynchronous */)
#define USER_MODE_ONLY 1
struct written_pages {
    uint64_t start, end, categories;
};
struct scan {
    uint64_t size, flags, start, end, walk_end, to, room, most, inverted, all, any, wanted;
};
#define PAGEMAP_SCAN 0xc0606610ul
#define PROTECT_MATCHING 1ull
#define IS_WRITTEN 2ull
#define IS_THERE (8ull | 16ull) /* in memory or swapped out: protecting what is not would fill page tables for all of it */
#define END_OF_USER 0x7ffffffff000ull

enum { WORDS = LA_PAGE / 8, TABLE = 1 << 18, ROWS = 1024 };
static struct la_between_file *file; /* shared with the controller; NULL: not asked for */
static uint64_t *data;               /* in it: where the next record goes, and the end */
static uint64_t *data_end;
static int userfault = -1, pagemap = -1;
/* By page: what it held when it was recorded last. */
static uint64_t *page_at, *shadow;
static uint8_t *is_known;

/* As high as it may be: the program's own files get the numbers that they get without us. */
static int out_of_the_way(int fd)
{
    for (int least = 1000; fd >= 0 && least > 60; least /= 2) {
        long high = la_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least);
        if (high >= 0) {
            la_close(fd);
            return (int)high;
        }
    }
    return fd;
}

static void stop(uint64_t why)
{
    file->why = why;
    la_close(userfault);
    la_close(pagemap);
    userfault = -1;
}

static int is_own(uint64_t start, uint64_t end)
{
    uint64_t image, image_end;
    la_own_image(&image, &image_end);
    return (start >= LA_APART && start < LA_APART_END) || (start < image_end && image < end) ||
           (la_near && start < la_near + la_near_bytes && la_near < end);
}

/* Where the stack is that calls are made on: the program's first, or a thread's (its control block lies at its end). A stack
 * that the program allocated by itself is like other memory. */
static uint64_t stack_from, stack_to;
static void note_stack(const char *line, uint64_t from, uint64_t to, uint64_t rsp)
{
    uint64_t thread;
    __asm__("mov %%fs:0, %0" : "=r"(thread));
    const char *end = la_next_line(line), *name = end - 8;
    const int first = end - line > 8 && la_starts(name, "[stack]");
    if (from <= rsp && rsp < to && (first || (from <= thread && thread < to))) {
        stack_from = from;
        stack_to = to;
    }
}

/* All that is private and writable now: what is registered already stays as it is, new memory counts as written. */
static void watch_memory(uint64_t rsp)
{
    uint64_t room;
    stack_from = stack_to = 0;
    char *text = la_read_file("/proc/self/maps", &room);
    for (const char *p = text; p && *p; p = la_next_line(p)) {
        const char *q = p;
        const uint64_t from = la_hex(&q);
        q++;
        const uint64_t to = la_hex(&q);
        struct uffdio_register wanted = {.range = {from, to - from}, .mode = UFFDIO_REGISTER_MODE_WP};
        if (q[1] == 'r' && q[2] == 'w' && q[4] == 'p' && !is_own(from, to))
            la_sys(SYS_ioctl, userfault, UFFDIO_REGISTER, &wanted);
        note_stack(p, from, to, rsp);
    }
    la_free_file(text, room);
}

static int start_watching(void)
{
    struct uffdio_api api = {.api = UFFD_API, .features = FEATURES};
    userfault = out_of_the_way((int)la_sys(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_MODE_ONLY, 0, 0));
    pagemap = out_of_the_way(la_open("/proc/self/pagemap", O_RDONLY, 0));
    if (userfault < 0 || pagemap < 0 || la_sys(SYS_ioctl, userfault, UFFDIO_API, &api))
        return -1;
    page_at = la_memory(TABLE * 8);
    is_known = la_memory(TABLE);
    shadow = la_memory((LA_BETWEEN_PAGES + 1) * LA_PAGE);
    return page_at && is_known && shadow ? 0 : -1;
}

/* Its place in the table of pages; new pages get the next one. ROOM: there is none. */
#define NO_ROOM (~0ull)
static uint64_t place_of(uint64_t page)
{
    static uint32_t number[TABLE];
    uint64_t slot = page / LA_PAGE * 0x9e3779b97f4a7c15ull >> 46;
    for (; page_at[slot]; slot = (slot + 1) % TABLE)
        if (page_at[slot] == page)
            return number[slot];
    if (file->pages == LA_BETWEEN_PAGES)
        return NO_ROOM;
    page_at[slot] = page;
    number[slot] = (uint32_t)file->pages;
    file->page[file->pages++] = page;
    return number[slot];
}

/* One page: its address, which of its words are others, these; also where none is: the call wrote what was put back since. Of
 * the stack only what is above `rsp`: the rest is left over from frames
 * that are gone, and so are ours. Returns 0 where there is no more room. */
static int note_page(uint64_t page, uint64_t rsp, int on_stack)
{
    const uint64_t place = place_of(page);
    if (place == NO_ROOM || data_end - data < 2 * WORDS)
        return 0;
    const int alive = !on_stack || page > rsp;
    if (on_stack && page + LA_PAGE <= rsp + 8) {
        is_known[place] = 0;
        return 1;
    }
    uint64_t *const known = shadow + place * WORDS, *const mask = data + 1, *word = data + 1 + WORDS / 64;
    const uint64_t *const now = (const uint64_t *)page;
    la_fill(mask, 0, WORDS / 8);
    for (uint64_t k = 0; k < WORDS; k++) {
        if (!alive && page + 8 * k <= rsp)
            continue;
        if (!is_known[place] || known[k] != now[k]) {
            mask[k / 64] |= 1ull << k % 64;
            *word++ = known[k] = now[k];
        }
    }
    is_known[place] = (uint8_t)alive;
    *data = page | (alive ? 0 : LA_BETWEEN_PART);
    data = word;
    return 1;
}

static int note_written(uint64_t rsp, int first)
{
    static struct written_pages row[ROWS];
    struct scan s = {.size = sizeof s, .flags = PROTECT_MATCHING, .end = END_OF_USER, .to = (uint64_t)row, .room = ROWS,
                     .all = IS_WRITTEN, .any = IS_THERE, .wanted = IS_WRITTEN};
    for (; s.start < s.end; s.start = s.walk_end) {
        const long rows = la_sys(SYS_ioctl, pagemap, PAGEMAP_SCAN, &s);
        if (rows < 0)
            return -1;
        for (long i = 0; i < rows && !first; i++)
            for (uint64_t p = row[i].start; p < row[i].end; p += LA_PAGE)
                if (!note_page(p, rsp, stack_from <= p && p < stack_to))
                    return 0;
    }
    return 1;
}

void la_between_map(void)
{
    char path[4096];
    la_join(path, la_folder, "between", "");
    int fd = la_open(path, O_RDWR, 0);
    if (fd < 0)
        return;
    uint64_t bytes = (uint64_t)la_sys(SYS_lseek, fd, 0, SEEK_END);
    file = la_mmap((void *)la_apart(bytes), bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    la_close(fd);
    if (file) {
        data = (uint64_t *)(file + 1);
        data_end = (uint64_t *)((uint8_t *)file + bytes);
    }
}

/* At the entry of the n-th recorded call, from 0. */
void la_between_note(uint64_t n, uint64_t rsp)
{
    if (!file || (n && userfault < 0))
        return;
    const uint64_t begun = la_clock(CLOCK_MONOTONIC);
    if (!n && start_watching()) {
        stop(LA_BETWEEN_UNKNOWN);
        return;
    }
    watch_memory(rsp);
    const int done = note_written(rsp, !n);
    file->spent_ns += la_clock(CLOCK_MONOTONIC) - begun;
    if (done <= 0 || (!n && data_end - data < 4 * WORDS)) {
        stop(done < 0 ? LA_BETWEEN_UNKNOWN : LA_BETWEEN_ROOM);
        return;
    }
    if (!n)
        return;
    *data++ = LA_BETWEEN_END;
    file->end[n - 1] = (uint64_t)(data - (uint64_t *)(file + 1));
    file->gaps = n;
    if (file->spent_ns > file->most_ns || n == LA_BETWEEN_GAPS)
        stop(LA_BETWEEN_TIME);
}
