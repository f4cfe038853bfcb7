/* When to record: from the entry of the chosen call until its frame is gone.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "tool.h"

Addr entry;
Addr entry_registers[20];
static ThreadId traced;
static ULong own_top;

/* Is `code` in the hotspot's file? Then the entry's address is known. Asked for every new superblock until then. */
void la_find_entry(Addr code)
{
    static Addr low = 1, high = 0; /* the segment asked about last */
    static struct vg_stat file;
    static Bool known;
    const NSegment *segment;

    if (code >= low && code <= high)
        return;
    segment = VG_(am_find_nsegment)(code);
    if (!segment)
        return;
    low = segment->start;
    high = segment->end;
    if (!known) {
        if (sr_isError(VG_(stat)(options.file, &file)))
            return;
        known = True;
    }
    if (segment->kind == SkFileC && segment->dev == file.dev && segment->ino == file.ino &&
        options.offset >= (ULong)segment->offset && options.offset - segment->offset <= segment->end - segment->start)
        entry = segment->start + (options.offset - segment->offset);
}

static void keep_registers(ThreadId tid)
{
    VexGuestArchState state;
    VG_(get_shadow_regs_area)(tid, (UChar *)&state, 0, 0, sizeof state);
    const ULong gpr[16] = {state.guest_RAX, state.guest_RCX, state.guest_RDX, state.guest_RBX, state.guest_RSP, state.guest_RBP,
                           state.guest_RSI, state.guest_RDI, state.guest_R8,  state.guest_R9,  state.guest_R10, state.guest_R11,
                           state.guest_R12, state.guest_R13, state.guest_R14, state.guest_R15};
    for (UInt i = 0; i < 16; i++)
        entry_registers[i] = gpr[i];
    entry_registers[16] = entry;
    entry_registers[18] = state.guest_FS_CONST;
}

/* The chosen call begins. The superblock that asked leaves at once, and all translations are made anew. */
void la_begin(ULong stack)
{
    if (phase != BEFORE)
        return;
    phase = INSIDE;
    traced = VG_(get_running_tid)();
    hot.top = own_top = stack;
    keep_registers(traced);
    la_write_entry();
}

/* A superblock found no room in the buffer, or stands above the hotspot's frame. */
void la_full(ULong stack)
{
    if (phase == OFF) {
        la_forget();
        return;
    }
    if (VG_(get_running_tid)() != traced) {
        la_forget();
        return;
    }
    if (!la_drain()) {
        la_write_result(TRUNCATED, "");
        VG_(exit)(0);
    }
    if (stack > own_top) {
        la_write_result(WHOLE, "");
        VG_(exit)(0);
    }
}

/* Another thread gets the processor: what is in the buffer belongs to the one before. */
void la_scheduled(ThreadId tid, ULong blocks)
{
    static ThreadId before;
    (void)blocks;
    if (phase != INSIDE || tid == before) {
        before = tid;
        return;
    }
    if (before == traced) {
        if (!la_drain()) {
            la_write_result(TRUNCATED, "");
            VG_(exit)(0);
        }
    } else {
        la_forget();
    }
    hot.top = tid == traced ? own_top : ~0ull >> 1;
    before = tid;
}

void la_in_child(ThreadId tid)
{
    (void)tid;
    phase = OFF;
    hot.top = ~0ull >> 1;
    la_forget();
}
