/* What the Pin tool keeps of a call and leaves in its folder. Nothing here needs Pin.
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_PIN_REPORT_H
#define LAYOUT_ADVISE_PIN_REPORT_H
#include <stdint.h>
#include <string>
#include "order.h"

namespace layout_advise {

enum kind { READ = 0, WRITE = 1, BOTH = 2 };
enum outcome { NEVER = 0, WHOLE = 1, TRUNCATED = 2, BROKEN = 3 };

/* One memory access of one instruction; `ordinal` counts those of the instruction. */
struct reference {
    uint64_t pc, ordinal, kind, bytes, number;
    struct nlr_stream stream;
};

struct state {
    std::string folder;
    uint64_t cap, calls, taken, foreign;
    uint64_t registers[20]; /* gpr in encoding order, rip, rflags, fs base, 0 */
};

/* The reference, made where it is new. It stays where it is. */
reference *find_reference(uint64_t pc, uint64_t ordinal, kind how, uint64_t bytes);

/* False: the cap is reached, the access was not taken. */
inline bool add(state &s, reference *r, uint64_t address)
{
    if (s.taken >= s.cap)
        return false;
    s.taken++;
    nlr_add(&r->stream, address);
    order_add(r->number, r->pc, r->ordinal);
    return true;
}

/* `maps`, and `blocks` from the preloaded table (a null pointer: none). */
bool write_entry(const state &s, const uint64_t *blocks, uint64_t slots);

/* `result`, as tracer/backends/tool/result.py reads it. No access may be added afterwards. */
bool write_result(const state &s, outcome how, const char *why);

}
#endif
