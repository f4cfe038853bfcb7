/* What the parts of a trial in the running program share. Layouts mirror tracer/live/orders.py.
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_LIVE_H
#define LAYOUT_ADVISE_LIVE_H
#include "agent.h"

/* which calls are the mock-up's; LOADED: none, but it is loaded as for the others; UNTIMED: so, and no call is timed */
enum { LA_LIVE_NONE, LA_LIVE_ALL, LA_LIVE_ONE, LA_LIVE_OTHER, LA_LIVE_SURVEY, LA_LIVE_LOADED, LA_LIVE_UNTIMED };
enum { LA_LIVE_REGIONS = 1 + LA_MAX_FURTHER };
enum { LA_LIVE_RANGES = 64, LA_LIVE_LEFT_OUT = 4096, LA_LIVE_ROWS = 1 << 17 };

struct la_live_orders { /* file "live", of further regions "live1" and so on, written by the launcher */
    uint64_t magic, mode, seed;
    uint64_t writes;  /* the mock-up writes to the structures: they are copied back after each of its calls */
    uint64_t flush;   /* what was copied in is flushed from the caches before the call */
    uint64_t survey_ns; /* a survey ends after so long */
    uint64_t limit_ns; /* so long after the first one calls are the original's again; 0: never */
    uint64_t account; /* the CPU's time that the trial itself takes is added up */
    uint64_t arrays;  /* regions with the same number have the same layout, and one set of arrays; 0: arrays of its own */
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
struct la_live_page { /* file "rows", of further regions "rows1" and so on */
    char error[256];
    volatile uint64_t calls, mockups, conversions, passed;
    volatile uint64_t inside; /* the call that runs as the mock-up; 0: none */
    volatile uint64_t stale;
    volatile uint64_t surveyed; /* the last call that a survey came to */
    volatile uint64_t within;   /* calls that the mock-up of another region made: they are the original's */
    volatile uint64_t aside_ns; /* CPU time of the trial itself: all but the program's code and the mock-up's call */
    volatile uint64_t copies_ns; /* the part of it in copies of the data, but for the first one */
    volatile uint64_t aside_faults; /* minor page faults of the trial itself */
    volatile uint64_t ended; /* the first call after the time for mock-ups was over; 0: none */
    struct la_live_row row[LA_LIVE_ROWS];
};

struct la_live_edge { /* bytes of a structure on a page that holds other things too */
    uint64_t at, bytes;
    uint8_t copy[LA_PAGE];
};
struct la_live_region {
    struct la_live_orders orders;
    struct la_live_page *page;
    struct la_variant *variant;
    int begun, over;
    uint64_t first_at; /* when its first call ran as the mock-up */
    int dirty; /* the program, or another region's mock-up, wrote to its structures since its copies were made */
    uint64_t sharing; /* bit n: its arrays are those of region n as well */
    struct la_live_edge *edges;
    uint64_t edge_count;
    struct {
        volatile uint64_t slot; /* where the return address of the timed original stands; 0: none open */
        uint64_t back, tsc, cpu, row;
        uint64_t turn; /* of two that are open at one place the later was opened later */
    } open;
    struct la_live_row *current; /* of the call that runs as the mock-up; NULL: it could not */
};
extern struct la_live_region la_live[LA_LIVE_REGIONS];

/* regions.c: what is different for the hotspot and the other regions */
uint64_t la_live_number(const struct la_live_region *r);
uint64_t la_live_call(const struct la_live_region *r); /* the number of the call that was entered */
uint64_t la_live_first(const struct la_live_region *r);
uint64_t la_live_quick(const struct la_live_region *r);
uint64_t la_live_entry(const struct la_live_region *r); /* at run time */
uint64_t la_live_exits(const struct la_live_region *r);
const char *la_live_read(struct la_live_region *r); /* its orders and its table; an error text or NULL */
const char *la_live_load(struct la_live_region *r); /* its mock-up; on the agent's stack; an error text or NULL */

/* live.c, on the agent's stack */
int la_live_copy_in(struct la_live_region *r); /* what the program wrote since the last look; -1: not known */
void la_live_mockup_call(struct la_live_region *r); /* the call that was entered, as the mock-up */

/* survey.c */
int la_survey_is_over(const struct la_live_region *r);
void la_survey_call(struct la_live_region *r); /* the call that was entered, in a copy of the process; on the agent's stack */
uint64_t la_survey_role(void); /* what came of it as bits of the row's role; 0: it could not be copied */

/* watch.c */
const char *la_watch_start(struct la_live_region *r); /* an error text or NULL */
int la_live_stale(struct la_live_region *r); /* sets page->stale: whether the program wrote since the copies; -1: not known */
/* Around the copies back into its structures: what is written between the two counts for all others, but not for it and those
 * whose arrays it shares: what was copied is in them. */
void la_watch_expect(struct la_live_region *r);
void la_watch_settle(struct la_live_region *r);
#endif
