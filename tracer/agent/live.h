/* What the parts of a trial in the running program share. Layouts mirror tracer/live/orders.py.
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_LIVE_H
#define LAYOUT_ADVISE_LIVE_H
#include "agent.h"

/* which calls are the mock-up's; LOADED: none, but it is loaded as for the others */
enum { LA_LIVE_NONE, LA_LIVE_ALL, LA_LIVE_ONE, LA_LIVE_OTHER, LA_LIVE_SURVEY, LA_LIVE_LOADED };
enum { LA_LIVE_RANGES = 64, LA_LIVE_LEFT_OUT = 4096, LA_LIVE_ROWS = 1 << 17 };

struct la_live_orders { /* file "live", written by the launcher */
    uint64_t magic, mode, seed;
    uint64_t writes;  /* the mock-up writes to the structures: they are copied back after each of its calls */
    uint64_t flush;   /* what was copied in is flushed from the caches before the call */
    uint64_t survey_ns; /* a survey ends after so long */
    uint64_t last;    /* later calls are the original's; 0: none is too late */
    uint64_t guarded; /* bit n: register n has to be from low[n] to high[n] */
    uint64_t outside; /* bit n: register n must not point into the ranges */
    uint64_t low[16], high[16];
    uint64_t ranges, range[LA_LIVE_RANGES][2]; /* of the structures: start, end */
    uint64_t blocks, block[LA_LIVE_RANGES][3]; /* of the heap: address, bytes, order */
    uint64_t left_out, leave[LA_LIVE_LEFT_OUT]; /* calls that are the original's, in order */
    char path[4096]; /* of the mock-up */
};

enum { LA_ROW_ORIGINAL = 1, LA_ROW_MOCKUP = 2, LA_ROW_CONVERTED = 4, LA_ROW_PASSED = 8, LA_ROW_STOPPED = 16, LA_ROW_FAULTED = 32 };
struct la_live_row {
    uint64_t tsc, cpu, role;
    uint64_t copying; /* ticks that the copies of the data took before and after the call */
};
struct la_live_page { /* file "rows" */
    char error[256];
    volatile uint64_t calls, mockups, conversions, passed;
    volatile uint64_t inside; /* the call that runs as the mock-up; 0: none */
    volatile uint64_t stale;
    volatile uint64_t surveyed; /* the last call that a survey came to */
    uint64_t reserved;
    struct la_live_row row[LA_LIVE_ROWS];
};
extern struct la_live_orders la_live;
extern struct la_live_page *la_live_page;

/* live.c, on the agent's stack */
int la_live_copy_in(void);      /* what the program wrote since the last look; -1: not known */
void la_live_mockup_call(void); /* the call that was entered, as the mock-up */

/* survey.c */
int la_survey_is_over(void);
void la_survey_call(void);     /* the call that was entered, in a copy of the process; on the agent's stack */
uint64_t la_survey_role(void); /* what came of it as bits of the row's role; 0: it could not be copied */

/* watch.c */
const char *la_watch_start(void); /* an error text or NULL */
int la_live_stale(void);          /* sets la_live_page->stale: whether the program wrote since the last look; -1: not known */
void la_watch_settle(void);       /* what was written until now does not count */
#endif
