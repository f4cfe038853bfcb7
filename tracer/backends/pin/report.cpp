/* See report.h. SPDX-License-Identifier: MIT */
#include "report.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <tuple>
#include <vector>

namespace layout_advise {

namespace {

const uint64_t MAGIC = 0x324c41565641414cull;

void *take(void *, uint64_t bytes) { return calloc(1, bytes); }
void give(void *, void *memory, uint64_t) { free(memory); }

struct nlr_memory memory = {take, give, nullptr, uint64_t(1) << 30};
std::deque<reference> references; /* does not move its elements */
std::map<std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>, reference *> known;

typedef std::vector<uint64_t> words;

bool save(const std::string &path, const void *data, size_t bytes)
{
    FILE *file = fopen(path.c_str(), "wb");
    if (!file)
        return false;
    bool whole = fwrite(data, 1, bytes, file) == bytes;
    whole = (fclose(file) == 0) && whole;
    if (!whole)
        remove(path.c_str()); /* nobody shall take a part for all */
    return whole;
}

void put_nodes(words &out, const struct nlr_stream &s)
{
    bool moved = s.evicted_nodes || !s.stack; /* nlr_finish moved the stack behind them */
    const struct nlr_node *node = moved ? s.evicted : s.stack->node;
    uint64_t count = moved ? s.evicted_nodes : s.stack->nodes;

    out.push_back(count);
    for (uint64_t i = 0; i < count; i++) {
        out.push_back(node[i].arity);
        out.push_back(node[i].depth);
        out.push_back(node[i].constant);
        out.insert(out.end(), node[i].coef, node[i].coef + NLR_DEPTH);
    }
}

void put_set(words &out, const struct nlr_stream &s)
{
    uint64_t bytes = nlr_bitmap_bytes(&s);
    words bits((bytes + 7) / 8 + 1);

    out.push_back(s.minimum);
    out.push_back(s.maximum);
    out.push_back(s.unit);
    out.push_back(bytes);
    if (bytes)
        nlr_bitmap(&s, 0, bytes, reinterpret_cast<uint8_t *>(bits.data()));
    out.insert(out.end(), bits.begin(), bits.begin() + (bytes + 7) / 8);
}

/* Its nodes, whose points are names of stretches, these, and then the pieces that they are made of: single references. */
void put_order(words &out)
{
    order_state how = order_end();

    out.push_back(how);
    if (how != ORDERED)
        return;
    put_nodes(out, order_stream);
    out.push_back(stretches.size());
    for (const stretch &s : stretches)
        out.insert(out.end(), {s.name, s.parent, s.reference});
    out.push_back(references.size());
    for (const reference &r : references)
        out.insert(out.end(), {1, r.number});
}

}

reference *find_reference(uint64_t pc, uint64_t ordinal, kind how, uint64_t bytes)
{
    reference *&found = known[std::make_tuple(pc, ordinal, uint64_t(how), bytes)];
    if (!found) {
        references.push_back(reference{pc, ordinal, uint64_t(how), bytes, references.size(), {}});
        found = &references.back();
        nlr_open(&found->stream, &memory);
    }
    return found;
}

bool write_entry(const state &s, const uint64_t *blocks, uint64_t slots)
{
    std::string maps;
    words live;
    char part[4096];

    FILE *file = fopen("/proc/self/maps", "rb");
    if (!file)
        return false;
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;)
        maps.append(part, got);
    fclose(file);
    for (uint64_t i = 0; blocks && i < slots; i++)
        if (blocks[4 * i])
            live.insert(live.end(), blocks + 4 * i, blocks + 4 * i + 4);
    return save(s.folder + "/maps", maps.data(), maps.size()) && save(s.folder + "/blocks", live.data(), 8 * live.size());
}

bool write_result(const state &s, outcome how, const char *why)
{
    words out = {MAGIC, uint64_t(how), s.calls, s.taken, s.foreign};
    uint64_t text[8] = {};

    strncpy(reinterpret_cast<char *>(text), why, sizeof text - 1);
    out.insert(out.end(), s.registers, s.registers + 20);
    out.insert(out.end(), text, text + 8);
    out.push_back(references.size());
    for (reference &r : references) {
        nlr_finish(&r.stream);
        out.insert(out.end(), {r.pc, r.ordinal, r.kind, r.bytes, r.stream.state, r.stream.count});
        if (r.stream.state == NLR_FOLDING)
            put_nodes(out, r.stream);
        else
            put_set(out, r.stream);
    }
    put_order(out);
    return save(s.folder + "/result", out.data(), 8 * out.size());
}

}
