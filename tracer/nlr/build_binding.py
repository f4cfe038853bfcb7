"""The cffi binding of the folding code (API mode): ``ffi`` builds the module ``layout_advise.tracer._nlr``.

setup.py names this file; it runs in the root of the source tree, so the paths are relative to that.
"""

from cffi import FFI

ffi = FFI()

ffi.cdef("""
struct folder;
struct folder *folder_new(uint64_t streams, uint64_t bitmap_bytes);
uint64_t folder_feed(struct folder *, const uint64_t *records, uint64_t count);
void folder_finish(struct folder *);
void folder_free(struct folder *);
int folder_state(const struct folder *, uint64_t stream);
uint64_t folder_count(const struct folder *, uint64_t stream);
uint64_t folder_nodes(const struct folder *, uint64_t stream);
void folder_copy_nodes(const struct folder *, uint64_t stream, int64_t *out);
void folder_limits(const struct folder *, uint64_t stream, uint64_t *out);
uint64_t folder_bitmap_bytes(const struct folder *, uint64_t stream);
void folder_copy_bitmap(const struct folder *, uint64_t stream, uint8_t *out);
#define NODE_WORDS ...
""")

ffi.set_source(
    "layout_advise.tracer._nlr",
    r"""
#include <stdlib.h>
#include "nlr.h"

#define NODE_WORDS (NLR_DEPTH + 3) /* arity, depth, constant, coefficients */

struct folder {
    struct nlr_memory memory;
    uint64_t count;
    struct nlr_stream stream[];
};

static void *folder_take(void *owner, uint64_t bytes) { (void)owner; return calloc(1, bytes); }
static void folder_give(void *owner, void *memory, uint64_t bytes) { (void)owner; (void)bytes; free(memory); }

static struct folder *folder_new(uint64_t streams, uint64_t bitmap_bytes)
{
    struct folder *f = calloc(1, sizeof *f + streams * sizeof f->stream[0]);
    if (!f)
        return NULL;
    f->memory = (struct nlr_memory){.take = folder_take, .give = folder_give, .left = bitmap_bytes};
    f->count = streams;
    for (uint64_t i = 0; i < streams; i++)
        nlr_open(f->stream + i, &f->memory);
    return f;
}

static uint64_t folder_feed(struct folder *f, const uint64_t *records, uint64_t count)
{
    return nlr_feed(f->stream, f->count, records, count);
}

static void folder_finish(struct folder *f)
{
    for (uint64_t i = 0; i < f->count; i++)
        nlr_finish(f->stream + i);
}

static void folder_free(struct folder *f)
{
    for (uint64_t i = 0; i < f->count; i++)
        nlr_close(f->stream + i);
    free(f);
}

static int folder_state(const struct folder *f, uint64_t i) { return (int)f->stream[i].state; }
static uint64_t folder_count(const struct folder *f, uint64_t i) { return f->stream[i].count; }

static const struct nlr_node *nodes_of(const struct nlr_stream *s, uint64_t *count)
{
    if (s->evicted_nodes || !s->stack) { /* nlr_finish moved the stack behind them */
        *count = s->evicted_nodes;
        return s->evicted;
    }
    *count = s->stack->nodes;
    return s->stack->node;
}

static uint64_t folder_nodes(const struct folder *f, uint64_t i)
{
    uint64_t count;
    nodes_of(f->stream + i, &count);
    return count;
}

static void folder_copy_nodes(const struct folder *f, uint64_t i, int64_t *out)
{
    uint64_t count;
    const struct nlr_node *node = nodes_of(f->stream + i, &count);
    for (uint64_t n = 0; n < count; n++, out += NODE_WORDS) {
        out[0] = node[n].arity;
        out[1] = node[n].depth;
        out[2] = (int64_t)node[n].constant;
        for (int k = 0; k < NLR_DEPTH; k++)
            out[3 + k] = (int64_t)node[n].coef[k];
    }
}

static void folder_limits(const struct folder *f, uint64_t i, uint64_t *out)
{
    out[0] = f->stream[i].minimum;
    out[1] = f->stream[i].maximum;
    out[2] = f->stream[i].unit;
}

static uint64_t folder_bitmap_bytes(const struct folder *f, uint64_t i) { return nlr_bitmap_bytes(f->stream + i); }
static void folder_copy_bitmap(const struct folder *f, uint64_t i, uint8_t *out)
{
    nlr_bitmap(f->stream + i, 0, nlr_bitmap_bytes(f->stream + i), out);
}
""",
    sources=["tracer/nlr/nlr.c", "tracer/nlr/nlr_set.c"],
    depends=["tracer/nlr/nlr.h", "tracer/nlr/nlr_set.h"],
    include_dirs=["tracer/nlr"],
    extra_compile_args=["-O2", "-std=gnu11"],
)

if __name__ == "__main__":
    ffi.compile(verbose=True)
