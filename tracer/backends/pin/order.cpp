/* See order.h. SPDX-License-Identifier: MIT */
#include "order.h"

#include <cstdlib>
#include <unordered_map>

namespace layout_advise {

namespace {

const uint64_t MOST_STRETCHES = 1u << 16, LONGEST = 4096, MOST_EVICTED = NLR_NODES / 4;

void *take(void *, uint64_t bytes) { return calloc(1, bytes); }
void give(void *, void *memory, uint64_t) { free(memory); }

struct nlr_memory memory = {take, give, nullptr, 0}; /* no bytes for sets: an order that became one is no order */
std::unordered_map<uint64_t, uint64_t> known;         /* stretches by parent and reference */
order_state how = ORDERED;
uint64_t at; /* the stretch under way */

/* The finalizer of the generator splitmix64 (S. Vigna, public domain): one to one, and without any regularity. */
uint64_t mixed(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void stop(order_state why)
{
    nlr_close(&order_stream);
    how = why;
}

void look()
{
    if (order_stream.state != NLR_FOLDING)
        stop(IRREGULAR);
    else if (order_stream.evicted_nodes > MOST_EVICTED)
        stop(LONG);
}

}

std::vector<stretch> stretches;
struct nlr_stream order_stream;

void order_add(uint64_t reference, uint64_t pc, uint64_t ordinal)
{
    if (stretches.empty()) {
        nlr_open(&order_stream, &memory);
        stretches.push_back(stretch{0, 0, 0, 0, 0, mixed(0), 0, 0});
    }
    if (how != ORDERED)
        return;
    const stretch &before = stretches[at];
    if (at && (pc < before.pc || (pc == before.pc && ordinal <= before.ordinal) || before.length == LONGEST)) {
        nlr_add(&order_stream, before.name);
        at = 0;
        look();
        if (how != ORDERED)
            return;
    }
    if (!stretches[at].next || stretches[at].next_reference != reference) {
        uint64_t &found = known[at << 32 | reference];
        if (!found) {
            if (stretches.size() == MOST_STRETCHES)
                return stop(VARIED);
            found = stretches.size();
            stretches.push_back(stretch{at, reference, pc, ordinal, stretches[at].length + 1, mixed(found + 1), 0, 0});
        }
        stretches[at].next_reference = reference;
        stretches[at].next = found;
    }
    at = stretches[at].next;
}

order_state order_end()
{
    if (how == ORDERED && at) {
        nlr_add(&order_stream, stretches[at].name);
        nlr_finish(&order_stream);
        look();
    }
    return how;
}

}
