/* The regions of a trial in the running program: the hotspot, and the others, of which the agent knows in other places.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "live.h"

struct la_live_region la_live[LA_LIVE_REGIONS];

uint64_t la_live_number(const struct la_live_region *r) { return (uint64_t)(r - la_live); }

static const struct la_further *further(const struct la_live_region *r)
{
    return r == la_live ? NULL : &la_further[la_live_number(r) - 1];
}

uint64_t la_live_call(const struct la_live_region *r)
{
    if (r == la_live)
        return (uint64_t)(la_status->armed - la_status->counter);
    const struct la_entered *e = &la_status->further[la_live_number(r) - 1];
    return (uint64_t)(e->armed - e->counter);
}

uint64_t la_live_first(const struct la_live_region *r) { return further(r) ? further(r)->first : la_config.first; }
uint64_t la_live_quick(const struct la_live_region *r) { return further(r) ? further(r)->quick : la_config.quick; }
uint64_t la_live_exits(const struct la_live_region *r) { return further(r) ? further(r)->exits : la_config.exits; }
uint64_t la_live_entry(const struct la_live_region *r)
{
    return further(r) ? la_status->further[la_live_number(r) - 1].entry : la_status->entry;
}

static int open_own(const struct la_live_region *r, const char *name, int flags)
{
    char path[4096];
    const char number[2] = {(char)('0' + la_live_number(r)), 0};
    la_join(path, la_folder, name, r == la_live ? "" : number);
    return la_open(path, flags, 0);
}

const char *la_live_read(struct la_live_region *r)
{
    int fd = open_own(r, "live", O_RDONLY);
    long got = fd < 0 ? -1 : la_sys(SYS_read, fd, &r->orders, sizeof r->orders);
    if (fd >= 0)
        la_close(fd);
    if (got != (long)sizeof r->orders || r->orders.magic != LA_MAGIC)
        return "the orders of the trial cannot be read";
    fd = open_own(r, "rows", O_RDWR);
    r->page = fd < 0 ? NULL : la_mmap(NULL, sizeof *r->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    if (fd >= 0)
        la_close(fd);
    return r->page ? NULL : "the table of calls cannot be mapped";
}

static int are_alike(const struct la_variant *a, const struct la_variant *b)
{
    const uint32_t count = a->context->buffer_count;
    if (count != b->context->buffer_count || a->codes != b->codes)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct la_buffer_spec *x = &a->spec[i], *y = &b->spec[i];
        if (x->own || y->own || x->bytes != y->bytes || x->align != y->align || x->offset != y->offset)
            return 0;
    }
    return 1;
}

/* The arrays of a region that has the same layout and was loaded before. Each copies in what it needs itself, and finds what
 * the other one's calls have written. */
static void share_arrays(struct la_live_region *r)
{
    for (struct la_live_region *other = la_live; other < la_live + LA_LIVE_REGIONS; other++) {
        if (other == r || !other->variant || !other->variant->filled || other->orders.arrays != r->orders.arrays)
            continue;
        if (!are_alike(other->variant, r->variant))
            continue;
        for (uint32_t i = 0; i < r->variant->context->buffer_count; i++)
            r->variant->context->buffers[i] = other->variant->context->buffers[i];
        other->sharing |= 1ull << la_live_number(r);
        r->sharing |= 1ull << la_live_number(other);
    }
}

const char *la_live_load(struct la_live_region *r)
{
    static struct {
        struct la_command head;
        char path[4096];
    } command;
    la_copy(command.path, r->orders.path, sizeof command.path);
    struct la_reply reply = la_cmd_load(&command.head);
    if (reply.status)
        return reply.data;
    r->variant = la_variant(*(const uint64_t *)reply.data);
    const char *failed = la_watch_start(r);
    if (!failed && r->orders.arrays)
        share_arrays(r);
    return failed ? failed : la_fill_buffers(r->variant, 0);
}
