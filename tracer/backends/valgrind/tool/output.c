/* What the tool leaves in its folder: `result` (64-bit words, see tracer/backends/tool/result.py), `maps`, `blocks`, `after` (the
 * blocks when the call is done), and `records` in raw mode. Files are opened, written and closed at once: the program may close
 * any descriptor.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "tool.h"

#define MAGIC 0x324c41565641414cull /* "LAAVVAL2" */

#define PART 2048u

static ULong held[4096];
static UInt held_used;

static void path_of(HChar *out, SizeT room, const HChar *name)
{
    VG_(snprintf)(out, (Int)room, "%s/%s", options.out, name);
}

/* Everything is given up: the files go first, which makes room for the message in the log. */
static void give_up(const HChar *what, Int error)
{
    static const HChar *const files[] = {"records", "result", "blocks", "after", "maps"};
    HChar path[4200];

    for (UInt i = 0; i < sizeof files / sizeof *files; i++) {
        path_of(path, sizeof path, files[i]);
        VG_(unlink)(path);
    }
    VG_(umsg)("cannot write %s: error %d\n", what, error);
    VG_(exit)(3);
}

static void write_all(Int fd, const void *data, ULong bytes)
{
    const HChar *p = data;
    while (bytes) {
        Int n = VG_(write)(fd, p, bytes > (1u << 30) ? (Int)(1u << 30) : (Int)bytes);
        if (n <= 0)
            give_up("what was traced", -n);
        p += n;
        bytes -= (ULong)n;
    }
}

static Int open_at(const HChar *name, Int flags)
{
    HChar path[4200];
    path_of(path, sizeof path, name);
    SysRes r = VG_(open)(path, VKI_O_WRONLY | VKI_O_CREAT | flags, 0600);
    if (sr_isError(r))
        give_up(name, (Int)sr_Err(r));
    return (Int)sr_Res(r);
}

Int la_create(const HChar *name) { return open_at(name, VKI_O_TRUNC); }

void la_append(const HChar *name, const void *data, ULong bytes)
{
    Int fd = open_at(name, VKI_O_APPEND);
    write_all(fd, data, bytes);
    VG_(close)(fd);
}

static void flush(Int fd)
{
    write_all(fd, held, held_used * sizeof *held);
    held_used = 0;
}

static void word(Int fd, ULong value)
{
    if (held_used == sizeof held / sizeof *held)
        flush(fd);
    held[held_used++] = value;
}

static void copy_maps(void)
{
    static HChar text[1 << 16];
    Int got, fd = la_create("maps");
    SysRes r = VG_(open)("/proc/self/maps", VKI_O_RDONLY, 0);
    if (!sr_isError(r)) {
        while ((got = VG_(read)((Int)sr_Res(r), text, sizeof text)) > 0)
            write_all(fd, text, (ULong)got);
        VG_(close)((Int)sr_Res(r));
    }
    VG_(close)(fd);
}

/* Where the library that keeps the heap blocks was loaded: its first segment has file offset 0 and address 0. */
static Addr blocks_base(void)
{
    static Addr starts[4096];
    struct vg_stat file;
    Int count = VG_(am_get_segment_starts)(SkFileC, starts, 4096);

    if (!options.blocks_file || sr_isError(VG_(stat)(options.blocks_file, &file)))
        return 0;
    for (Int i = 0; i < count; i++) {
        const NSegment *s = VG_(am_find_nsegment)(starts[i]);
        if (s && s->dev == file.dev && s->ino == file.ino && s->offset == 0)
            return s->start;
    }
    return 0;
}

static void copy_blocks(const HChar *name, Addr base)
{
    Int fd = la_create(name);
    if (base) {
        const ULong *table = *(ULong *const *)(base + options.blocks);
        ULong slots = *(const ULong *)(base + options.slots);
        for (ULong i = 0; table && i < slots; i++)
            for (UInt k = 0; table[4 * i] && k < 4; k++)
                word(fd, table[4 * i + k]);
        flush(fd);
    }
    VG_(close)(fd);
}

void la_write_entry(void)
{
    copy_maps();
    copy_blocks("blocks", blocks_base());
}

static void write_nodes(Int fd, const struct nlr_stream *s)
{
    const struct nlr_node *node = s->evicted_nodes || !s->stack ? s->evicted : s->stack->node;
    ULong count = s->evicted_nodes || !s->stack ? s->evicted_nodes : s->stack->nodes;

    word(fd, count);
    for (ULong i = 0; i < count; i++) {
        word(fd, node[i].arity);
        word(fd, node[i].depth);
        word(fd, node[i].constant);
        for (UInt k = 0; k < NLR_DEPTH; k++)
            word(fd, node[i].coef[k]);
    }
}

static void write_set(Int fd, const struct nlr_stream *s)
{
    static ULong part[PART];
    ULong bytes = nlr_bitmap_bytes(s);

    word(fd, s->minimum);
    word(fd, s->maximum);
    word(fd, s->unit);
    word(fd, bytes);
    if (!bytes)
        return;
    for (ULong at = 0; at < bytes; at += sizeof part) { /* in parts: a set is kept as its bits nowhere */
        ULong words = bytes - at < sizeof part ? (bytes - at + 7) / 8 : PART;
        nlr_bitmap(s, at, words * 8, (UChar *)part);
        for (ULong i = 0; i < words; i++)
            word(fd, part[i]);
    }
}

/* The order of execution: its nodes, whose points are names of stretches, these, and the references of each piece. */
static void write_order(Int fd)
{
    la_order_end();
    word(fd, la_ordered);
    if (la_ordered != ORDERED)
        return;
    write_nodes(fd, &la_order);
    word(fd, stretch_count);
    for (UInt i = 0; i < stretch_count; i++) {
        word(fd, stretches[i].name);
        word(fd, stretches[i].parent);
        word(fd, stretches[i].piece);
    }
    word(fd, piece_count);
    for (ULong i = 0; i < piece_count; i++) {
        word(fd, pieces[i].references);
        for (UInt k = 0; k < pieces[i].references; k++)
            word(fd, pieces[i].access[k].reference->number);
    }
}

void la_write_result(enum outcome outcome, const HChar *why)
{
    HChar text[64] = {0};
    Addr base = phase == INSIDE && outcome == WHOLE ? blocks_base() : 0;

    if (base) /* the call is done: which blocks has it left? */
        copy_blocks("after", base);
    Int fd = la_create("result");
    if (options.raw)
        la_raw_flush();
    VG_(strncpy)(text, why, sizeof text - 1);
    word(fd, MAGIC);
    word(fd, outcome);
    word(fd, options.call - hot.left);
    word(fd, taken);
    word(fd, foreign);
    for (UInt i = 0; i < 20; i++)
        word(fd, entry_registers[i]);
    for (UInt i = 0; i < sizeof text; i += 8) {
        ULong value;
        VG_(memcpy)(&value, text + i, 8);
        word(fd, value);
    }
    word(fd, reference_count);
    for (ULong i = 0; i < reference_count; i++) {
        struct reference *r = references[i];
        nlr_finish(&r->stream);
        word(fd, r->pc);
        word(fd, r->ordinal);
        word(fd, r->kind);
        word(fd, r->bytes);
        word(fd, r->stream.state);
        word(fd, r->stream.count);
        if (r->stream.state == NLR_FOLDING)
            write_nodes(fd, &r->stream);
        else
            write_set(fd, &r->stream);
    }
    write_order(fd);
    flush(fd);
    VG_(close)(fd);
}
