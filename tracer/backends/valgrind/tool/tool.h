/* What the parts of the Valgrind tool share. The tool is a program of its own: it is linked with Valgrind's core, and
 * therefore, unlike the rest of layout-advise, under Valgrind's licence.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef LAYOUT_ADVISE_TOOL_H
#define LAYOUT_ADVISE_TOOL_H
#include "pub_tool_basics.h"
#include "pub_tool_aspacemgr.h"
#include "pub_tool_guest.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"

#include "nlr.h"

/* BEFORE: only the hotspot's entry carries code of ours. INSIDE: from the entry of the chosen call on every superblock
 * records. OFF: in a process that the program forked; its records are thrown away. */
enum phase { BEFORE, INSIDE, OFF };
enum kind { READ = 0, WRITE = 1, BOTH = 2 };
enum outcome { NEVER = 0, WHOLE = 1, TRUNCATED = 2, BROKEN = 3 };

/* One memory access of one instruction, with the addresses it touched. */
struct reference {
    Addr pc;
    UInt ordinal; /* counts the accesses of the instruction, in the order in which they are made */
    UInt kind;
    UInt bytes;
    UInt guarded; /* the address may be 0: no access */
    UInt number;
    ULong stamp;  /* the last pattern that it was seen in */
    ULong start, stride, advance, times; /* in that one: where it begins, from place to place, from row to row; places */
    struct nlr_stream stream;
};

/* A reference of a piece: its address is `delta` more than a word of the piece. */
struct access {
    struct reference *reference;
    UInt word;
    ULong delta;
};

/* A value as the sum of a temporary (or none) and a constant. */
struct place {
    IRTemp root;
    ULong delta;
};

/* What runs between two side exits of a superblock: in the buffer it is its number, then a word for all references whose
 * addresses differ by constants. */
struct piece {
    UInt references;
    UInt words;   /* in the buffer, its number included: at least two */
    UInt guarded; /* one of the references is; each of those has a word of its own, 0 where there was no access */
    UInt variant; /* what ran of it when not all did: another piece, and so on; 0: none */
    Addr first, last; /* instructions that make its first and its last access */
    struct access *access;
};

/* Addresses that generated code uses. */
struct hot {
    ULong next;  /* where the next word goes in the buffer */
    ULong limit; /* beyond it a superblock may not begin */
    ULong top;   /* a stack pointer above it: the hotspot has been left */
    ULong left;  /* calls before the chosen one, and that one */
};

struct options {
    const HChar *out; /* a folder */
    const HChar *file;
    const HChar *blocks_file; /* the preloaded library that keeps the table of heap blocks */
    ULong offset;             /* of the hotspot's first instruction in `file` */
    ULong blocks, slots;      /* addresses of la_blocks and la_blocks_slots in `blocks_file` */
    ULong call;
    ULong cap;
    Bool raw;
};

extern struct options options;
extern struct hot hot;
extern enum phase phase;

/* instrument.c */
IRSB *la_instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents,
                    const VexArchInfo *host, IRType guest_word, IRType host_word);

/* places.c */
void la_values_begin(const IRTypeEnv *types);
void la_watch_value(const IRTypeEnv *types, const IRStmt *s); /* each statement, in order */
struct place la_place_of(const IRExpr *e);

/* buffer.c */
#define SLACK_WORDS 8192u /* the most that one superblock may record */
extern struct reference **references;
extern ULong reference_count, taken, foreign;
void la_buffer_open(void);
struct reference *la_reference(Addr pc, UInt ordinal, UInt kind, UInt bytes, Bool guarded);
UInt la_piece(const struct access *access, UInt count, UInt words);
extern struct piece *pieces;
extern ULong piece_count;
extern UInt most_references; /* of a piece */
extern ULong *buffer;
void la_one(struct reference *reference, ULong address);
Bool la_row(const ULong *word); /* one piece; False: the cap is reached */
void la_forget(void);
void la_raw_flush(void);

/* drain.c */
Bool la_drain(void); /* False: the cap is reached */

/* order.c */
enum order { NO_ORDER = 0, ORDERED = 1, IRREGULAR = 2, LONG = 3, VARIED = 4 };
/* Pieces that ran one after another: `piece`, and before it those of `parent`. */
struct stretch {
    UInt parent, piece, length;
    UInt next_piece, next; /* what it was last continued with, and what that is; 0: not yet */
    ULong name;            /* what it is in the order of execution */
    ULong seen;            /* how many had ended when it did so last */
};
extern enum order la_ordered; /* or why it is not known */
extern struct nlr_stream la_order;
extern struct stretch *stretches; /* the first is empty */
extern UInt stretch_count;
void la_order_open(void);
void la_order_piece(UInt piece);
void la_order_part(UInt piece, const struct access *chosen, UInt count);
void la_order_rows(const ULong *word, ULong width, ULong rows);
void la_order_look(void);
void la_order_end(void);

/* window.c */
void la_find_entry(Addr code);
extern Addr entry;
extern Addr entry_registers[20]; /* gpr in encoding order, rip, rflags (not kept: 0), fs base */
void la_begin(ULong stack);
void la_full(ULong stack);
void la_scheduled(ThreadId tid, ULong blocks);
void la_in_child(ThreadId tid);

/* output.c */
void la_write_result(enum outcome outcome, const HChar *why);
void la_write_entry(void);
Int la_create(const HChar *name);
void la_append(const HChar *name, const void *data, ULong bytes);
#endif
