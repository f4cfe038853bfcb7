/* What the agent and a mock-up agree on. A mock-up is a shared object that exports
 *
 *   const uint32_t la_abi;                       LA_ABI
 *   const uint32_t la_buffer_count;              at most LA_MAX_BUFFERS
 *   const struct la_buffer_spec la_buffers[];    what the agent has to allocate for it
 *   void la_copy_in(struct la_context *);        old layout -> new buffers
 *   void la_run(struct la_context *);            the hotspot, once; fills context->out
 *   void la_copy_out(struct la_context *);       new buffers -> old layout
 *   const uint32_t la_entered;                   how many numbers a call brings along: indices of what its registers point to
 *   void la_enter(const struct la_context *, int64_t *);  makes them of context->in
 *   void la_run_entered(struct la_context *);    la_run with those at context->entered; all three or none of them
 *   uint8_t *la_place(const struct la_context *, int64_t old);
 *                                                where the byte at an old address is now: NULL where it was, LA_NOWHERE if the
 *                                                new layout is without it. Only where something is put back between calls.
 *   int64_t la_value(const struct la_context *, int64_t old, int64_t value);
 *                                                what a word of the program, at an old address, is in the new layout: there a
 *                                                pointer may be the number of an element. Missing where there are no such.
 *   const uint64_t la_codes;                     beside it: which pointers, and how. Arrays of others are not shared.
 *
 * Or, in the place of la_run, the hotspot's machine code with other addresses in it (mockup/readdressed):
 *
 *   const struct la_code la_code;                what the agent maps and enters as it enters the original
 *   void la_settle(const struct la_context *, uint8_t *code);  the buffers are there: completes the mapped code
 *
 * All memory comes from the agent, but for buffers that are arrays of the mock-up's own (`own`). A mock-up calls pure libm functions (mockup/lift/calls.py has
 * the names); in a parallel region OpenMP's runtime (mockup/machine/openmp_runtime.py), elsewhere the program's machine code
 * where the hotspot does (opaque.h, docs/decisions/0059).
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_ABI_H
#define LAYOUT_ADVISE_ABI_H
#include <stdint.h>

#define LA_ABI 4u
#define LA_MAX_BUFFERS 512u
#define LA_NOWHERE 1u

/* gpr in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8..r15; at the hotspot's first instruction, so
 * gpr[4] (rsp) points at the return address. vector[n] holds zmm n (xmm n in the first 16 bytes). */
struct la_registers {
    uint64_t gpr[16];
    uint64_t rip;
    uint64_t rflags;
    uint64_t fs_base;
    uint32_t mxcsr;
    uint32_t reserved;
    uint8_t vector[32][64];
};

struct la_buffer_spec {
    uint64_t bytes;
    uint64_t align;   /* power of two, at least 64 */
    uint64_t offset;  /* wanted distance from the start of a page, a multiple of 64 */
    uint64_t like;    /* address in the program whose kind of page (huge or not) to use */
    uint8_t *own;     /* an array in the mock-up, from a page's start, of offset + bytes; NULL: the agent allocates */
};

struct la_code {
    uint64_t at, bytes; /* where in memory it belongs */
    uint64_t entry;     /* the address that is entered */
    const uint8_t *image;
};

/* Only the check build writes here. A record is (address in the OLD layout) | site << 48, as in a trace. */
struct la_check {
    uint64_t *records;
    uint64_t capacity;
    uint64_t count;        /* goes on counting beyond capacity */
    uint64_t mismatches;   /* accesses whose new place is not map(old place) */
    uint64_t first_site;   /* of the first mismatch */
    uint64_t first_old;
    uint64_t first_new;
    uint64_t remapped;     /* accesses that went to a new buffer */
};

struct la_context {
    uint32_t abi;
    uint32_t buffer_count;
    struct la_registers in;
    struct la_registers out;
    struct la_check check;
    uint8_t *buffers[LA_MAX_BUFFERS];
    const int64_t *entered; /* entry.S knows the offset */
};
#endif
