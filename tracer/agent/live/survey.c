/* Whether the mock-up does a call to its end is tried in a copy of the process, which is thrown away; the program itself makes
 * the original's call. The copy sends no signal when it ends and is seen by no wait of the program's.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "live.h"
#include <signal.h>

enum { LONGEST_CALL_S = 2 };
static int status;  /* of the copy, as wait4 gives it */
static int copied;

int la_survey_is_over(const struct la_live_region *r)
{
    static uint64_t begun_at;
    const uint64_t now = la_clock(CLOCK_MONOTONIC);
    begun_at = begun_at ? begun_at : now;
    return now - begun_at > r->orders.survey_ns;
}

/* In the copy: the mock-up's call, and the end. What stops it is the copy's death only. */
static void call_and_end(struct la_live_region *r)
{
    static const uint64_t ordinary[4], none;
    const int deadly[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGALRM};
    for (unsigned i = 0; i < sizeof deadly / sizeof *deadly; i++)
        la_sys6(SYS_rt_sigaction, deadly[i], (long)ordinary, 0, sizeof none, 0, 0);
    la_sys6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, sizeof none, 0, 0);
    la_sys(SYS_alarm, LONGEST_CALL_S, 0, 0);
    la_live_mockup_call(r);
    la_sys(SYS_exit_group, 0, 0, 0);
}

void la_survey_call(struct la_live_region *r)
{
    status = 0;
    copied = 0;
    if (la_live_copy_in(r) < 0)
        return;
    const long copy = la_sys6(SYS_clone, 0, 0, 0, 0, 0, 0);
    if (copy == 0)
        call_and_end(r);
    if (copy < 0)
        return;
    copied = 1;
    while (la_sys6(SYS_wait4, copy, (long)&status, 0x40000000 /* __WALL */, 0, 0, 0) == -4)
        ;
}

uint64_t la_survey_role(void)
{
    if (!copied)
        return 0;
    return !status ? LA_ROW_MOCKUP : (status & 0x7f) == SIGILL ? LA_ROW_STOPPED : LA_ROW_FAULTED;
}
