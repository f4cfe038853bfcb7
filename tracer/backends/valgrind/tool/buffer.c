/* The record buffer, the references in it, and its way into the folding code piece by piece (drain.c has the faster ways).
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "tool.h"

#define BUFFER_WORDS (1u << 13) /* stays in the second-level cache */

struct reference **references;
ULong reference_count, taken, foreign, piece_count;
struct piece *pieces;
UInt most_references;
ULong *buffer;
static ULong reference_room, piece_room;
static UInt *table; /* hash of references: number + 1 */
static ULong table_slots;
static struct nlr_memory memory;
static ULong raw[4096];
static UInt raw_used;

static void *take(void *owner, uint64_t bytes)
{
    (void)owner;
    return VG_(calloc)("la.nlr", 1, bytes);
}

static void give(void *owner, void *old, uint64_t bytes)
{
    (void)owner, (void)bytes;
    VG_(free)(old);
}

void la_buffer_open(void)
{
    memory = (struct nlr_memory){.take = take, .give = give, .left = 1ull << 30};
    buffer = VG_(malloc)("la.buffer", (BUFFER_WORDS + SLACK_WORDS) * sizeof *buffer);
    la_order_open();
    hot.next = (Addr)buffer;
    hot.limit = (Addr)(buffer + BUFFER_WORDS);
    hot.top = ~0ull >> 1;
}

static ULong slot_of(Addr pc, UInt ordinal, UInt kind, UInt bytes)
{
    ULong key = (pc << 12) ^ (ordinal << 6) ^ (kind << 4) ^ bytes;
    return (key * 0x9e3779b97f4a7c15ull >> 20) & (table_slots - 1);
}

static void enter(UInt number)
{
    const struct reference *r = references[number];
    ULong i = slot_of(r->pc, r->ordinal, r->kind, r->bytes);
    while (table[i])
        i = (i + 1) & (table_slots - 1);
    table[i] = number + 1;
}

struct reference *la_reference(Addr pc, UInt ordinal, UInt kind, UInt bytes, Bool guarded)
{
    if (reference_count * 2 >= table_slots) {
        VG_(free)(table);
        table_slots = table_slots ? table_slots * 2 : 1024;
        table = VG_(calloc)("la.table", table_slots, sizeof *table);
        for (ULong k = 0; k < reference_count; k++)
            enter((UInt)k);
    }
    for (ULong i = slot_of(pc, ordinal, kind, bytes); table[i]; i = (i + 1) & (table_slots - 1)) {
        struct reference *r = references[table[i] - 1];
        if (r->pc == pc && r->ordinal == ordinal && r->kind == kind && r->bytes == bytes) {
            r->guarded |= guarded;
            return r;
        }
    }
    if (reference_count == reference_room) {
        reference_room = reference_room ? reference_room * 2 : 256;
        references = VG_(realloc)("la.references", references, reference_room * sizeof *references);
    }
    struct reference *fresh = VG_(calloc)("la.reference", 1, sizeof *fresh);
    fresh->pc = pc;
    fresh->ordinal = ordinal;
    fresh->kind = kind;
    fresh->bytes = bytes;
    fresh->guarded = guarded;
    fresh->number = (UInt)reference_count;
    nlr_open(&fresh->stream, &memory);
    references[reference_count] = fresh;
    enter((UInt)reference_count);
    reference_count++;
    return fresh;
}

UInt la_piece(const struct access *access, UInt count, UInt words)
{
    if (piece_count == piece_room) {
        piece_room = piece_room ? piece_room * 2 : 256;
        pieces = VG_(realloc)("la.pieces", pieces, piece_room * sizeof *pieces);
    }
    struct piece fresh = {.references = count, .words = words};
    fresh.first = access[0].reference->pc;
    fresh.last = access[count - 1].reference->pc;
    fresh.access = VG_(malloc)("la.piece", count * sizeof *access);
    for (UInt i = 0; i < count; i++) {
        fresh.access[i] = access[i];
        fresh.guarded |= access[i].reference->guarded;
    }
    if (count > most_references)
        most_references = count;
    pieces[piece_count] = fresh;
    return (UInt)piece_count++;
}

void la_raw_flush(void)
{
    la_append("records", raw, raw_used * sizeof *raw);
    raw_used = 0;
}

void la_one(struct reference *r, ULong address)
{
    if (!address)
        return;
    taken++;
    nlr_add(&r->stream, address);
    if (options.raw) {
        if (r->number >> 16) {
            la_write_result(BROKEN, "too many references for raw records");
            VG_(exit)(0);
        }
        if (raw_used == sizeof raw / sizeof *raw)
            la_raw_flush();
        raw[raw_used++] = address | (ULong)r->number << 48;
    }
}

/* One piece; False when the cap is reached in it. */
Bool la_row(const ULong *word)
{
    static struct access done[SLACK_WORDS];
    const struct piece *p = pieces + word[0];
    UInt count = 0;

    if (!options.raw && !p->guarded && taken + p->references <= options.cap) {
        for (const struct access *a = p->access, *end = a + p->references; a < end; a++)
            nlr_add(&a->reference->stream, word[a->word] + a->delta);
        taken += p->references;
        la_order_piece((UInt)word[0]);
        return True;
    }
    const struct access *a = p->access, *end = a + p->references;
    for (; a < end && taken < options.cap; a++) {
        la_one(a->reference, word[a->word] + a->delta);
        if (word[a->word] + a->delta)
            done[count++] = *a;
    }
    Bool whole = a == end; /* la_order_part moves the pieces */
    la_order_part((UInt)word[0], done, count);
    return whole;
}

/* Throws the records away: they are another thread's, or those of a forked process. */
void la_forget(void)
{
    foreign += (hot.next - (Addr)buffer) / sizeof *buffer;
    hot.next = (Addr)buffer;
}
