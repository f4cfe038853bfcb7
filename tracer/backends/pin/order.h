/* In which order the accesses are made, folded on the fly. Nothing here needs Pin.
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_PIN_ORDER_H
#define LAYOUT_ADVISE_PIN_ORDER_H
#include <stdint.h>
#include <vector>
extern "C" {
#include "nlr.h"
}

namespace layout_advise {

/* What `result` says of it: the order is known, or why it is not. */
enum order_state { ORDERED = 1, IRREGULAR = 2, LONG = 3, VARIED = 4 };

/* References of ascending addresses of code, one after another: `reference`, and before it those of `parent`. What is folded
 * are stretches that ended, each as a number that looks random, lest some that are evenly spaced look like a loop. */
struct stretch {
    uint64_t parent, reference, pc, ordinal, length, name;
    uint64_t next_reference, next; /* what it was last continued with, and what that is; 0: not yet */
};

extern std::vector<stretch> stretches; /* the first is empty */
extern struct nlr_stream order_stream;

void order_add(uint64_t reference, uint64_t pc, uint64_t ordinal);
order_state order_end(); /* nothing may be added afterwards */

}
#endif
