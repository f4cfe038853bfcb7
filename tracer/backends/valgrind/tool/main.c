/* Start of the tool: its options and what it asks of Valgrind's core.
 *
 * It records which addresses the N-th call of one function accesses, callees included, folds them on the fly and ends the
 * program when that call is done. Everything before runs as under --tool=none, but for a counter at the function's entry.
 * SPDX-License-Identifier: GPL-2.0-or-later */
#include "tool.h"

struct options options = {.call = 1, .cap = 1ull << 62};
struct hot hot;
enum phase phase = BEFORE;

static Bool number(const HChar *text, const HChar *name, ULong *out)
{
    SizeT n = VG_(strlen)(name);
    HChar *end;
    Long value;

    if (VG_(strncmp)(text, name, n) != 0)
        return False;
    value = VG_(strtoll10)(text + n, &end);
    if (*end || end == text + n || value < 0)
        return False;
    *out = (ULong)value;
    return True;
}

static Bool option(const HChar *text)
{
    return (VG_STR_CLO(text, "--out", options.out)) || (VG_STR_CLO(text, "--entry-file", options.file)) ||
           (VG_STR_CLO(text, "--blocks-file", options.blocks_file)) || number(text, "--entry-offset=", &options.offset) ||
           number(text, "--blocks-at=", &options.blocks) || number(text, "--slots-at=", &options.slots) ||
           number(text, "--call=", &options.call) || number(text, "--cap=", &options.cap) ||
           (VG_BOOL_CLO(text, "--raw", options.raw));
}

static void usage(void)
{
    VG_(printf)("    --out=DIR --entry-file=ELF --entry-offset=N --call=N --cap=N --raw=no|yes\n"
                "    --blocks-file=ELF --blocks-at=N --slots-at=N\n");
}

static void debug_usage(void) { VG_(printf)("    (none)\n"); }

static void after_options(void)
{
    if (!options.out || !options.file || options.call < 1) {
        VG_(umsg)("layout-advise starts this tool; it needs --out, --entry-file and --call\n");
        VG_(exit)(1);
    }
    hot.left = options.call;
    la_buffer_open();
    VG_(atfork)(NULL, NULL, la_in_child);
}

static void at_end(Int status)
{
    (void)status;
    if (phase == BEFORE)
        la_write_result(NEVER, "");
    else if (phase == INSIDE) /* the program ended within the call */
        la_write_result(la_drain() ? WHOLE : TRUNCATED, "");
}

static void before_options(void)
{
    VG_(details_name)("layout-advise");
    VG_(details_version)(NULL);
    VG_(details_description)("the memory accesses of one call");
    VG_(details_copyright_author)("GPL-2.0-or-later; part of layout-advise.");
    VG_(details_bug_reports_to)("the layout-advise project");
    VG_(basic_tool_funcs)(after_options, la_instrument, at_end);
    VG_(needs_command_line_options)(option, usage, debug_usage);
    VG_(track_start_client_code)(la_scheduled);
    /* An unrolled loop has each of its instructions several times, which ruins the folding; and the entry must begin a
     * superblock, for only there is the guest's state complete. */
    VG_(clo_vex_control).iropt_unroll_thresh = 0;
    VG_(clo_vex_control).guest_chase = False;
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
