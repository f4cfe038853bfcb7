/* Running the hotspot, its clone and its mock-ups.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <dlfcn.h>

struct la_variant la_variants[LA_MAX_VARIANTS];
static uint64_t variant_count = 1; /* 0 is the original */
static struct la_registers original_out;
static uint64_t no_slot; /* a loop has no return address */

/* What memory is overwritten with that a mock-up must not use: a byte, as the tool says (verify/verify.py: POISONS). */
static int poison_byte = 0xdb;

struct la_variant *la_variant(uint64_t number) { return number < variant_count ? &la_variants[number] : NULL; }

static void replay_setup(uint64_t target, struct la_registers *in)
{
    la_replay_state.in = in;
    la_replay_state.xsave_in = la_parked_xsave;
    la_replay_state.xsave_out = la_after_xsave;
    la_replay_state.mask = la_xsave_mask;
    la_replay_state.out = &original_out;
    la_replay_state.slot_at = la_config.exits ? &no_slot : (uint64_t *)la_parked.gpr[4];
    la_replay_state.target = la_begin_chunk(target);
}

/* The parked call, or another function with its state: with the registers `in`. */
void la_replay_at(uint64_t target, struct la_registers *in)
{
    replay_setup(target, in);
    la_replay_original();
}

/* Both kinds of call load and save the same state, so that what surrounds the call costs the same. */
void la_rewind_batch(const struct la_variant *v)
{
    la_batch.at = la_batch.calls;
    la_batch.to = la_batch.returned;
    la_batch.left = la_batch.count;
    la_batch.entered = v ? v->entered : NULL;
    la_batch.entered_bytes = v ? v->entered_count * sizeof *v->entered : 0;
    la_rewind_puts(v);
}

void la_replay_of(uint64_t target)
{
    replay_setup(target, &la_parked);
}

void la_call(struct la_variant *v)
{
    if (la_is_team()) {
        la_team_call(v);
        return;
    }
    la_rewind_batch(v);
    if (v == &la_variants[0] || v->code) {
        replay_setup(v->code ? v->code->entry : la_parked.rip, &la_parked);
        if (la_batch.count)
            la_replay_batch();
        else
            la_replay_original();
    } else {
        la_batch.run = v->entered ? v->run_entered : v->run;
        v->context->entered = v->entered;
        replay_setup(la_batch.count ? (uint64_t)la_mockup_batch : (uint64_t)la_batch.run, &la_parked);
        la_replay_state.context = v->context;
        la_replay_mockup();
    }
}

void la_call_nothing(const struct la_variant *v)
{
    la_rewind_batch(v);
    la_batch.puts = NULL;
    if (v == &la_variants[0] || v->code) {
        la_replay_of((uint64_t)la_nothing);
        la_replay_batch();
    } else {
        la_batch.run = (void (*)(struct la_context *))la_nothing;
        replay_setup((uint64_t)la_mockup_batch, &la_parked);
        la_replay_state.context = v->context;
        la_replay_mockup();
    }
}

struct la_reply la_cmd_load(const struct la_command *c)
{
    static uint64_t number;
    if (variant_count == LA_MAX_VARIANTS)
        return la_fail("too many mock-ups in one process");
    la_aside = 1;
    void *so = dlopen(la_command_path(c), RTLD_NOW | RTLD_LOCAL);
    const char *failed = so ? NULL : dlerror();
    void *place = so ? dlsym(so, "la_place") : NULL; /* it may be missing: the words for that are allocated, too */
    void *value = so ? dlsym(so, "la_value") : NULL;
    const uint64_t *codes = so ? dlsym(so, "la_codes") : NULL;
    const uint32_t *entered = so ? dlsym(so, "la_entered") : NULL;
    const struct la_code *code = so ? dlsym(so, "la_code") : NULL;
    if (so)
        dlerror();
    la_aside = 0;
    if (!so)
        return la_fail(failed);
    struct la_variant *v = &la_variants[variant_count];
    const uint32_t *abi = dlsym(so, "la_abi"), *count = dlsym(so, "la_buffer_count");
    v->spec = dlsym(so, "la_buffers");
    *(void **)&v->copy_in = dlsym(so, "la_copy_in");
    v->code = code;
    *(void **)&v->run = code ? NULL : dlsym(so, "la_run");
    *(void **)&v->settle = code ? dlsym(so, "la_settle") : NULL;
    *(void **)&v->copy_out = dlsym(so, "la_copy_out");
    *(void **)&v->place = place;
    *(void **)&v->value = value;
    v->codes = codes ? *codes : 0;
    if (entered) {
        v->entered_count = *entered;
        *(void **)&v->enter = dlsym(so, "la_enter");
        *(void **)&v->run_entered = dlsym(so, "la_run_entered");
    }
    if (count && *count > LA_MAX_BUFFERS)
        return la_fail("the mock-up has more arrays than can be handed to it (LA_MAX_BUFFERS in abi.h)");
    if (!abi || *abi != LA_ABI || !count || (*count && !v->spec) || !v->copy_in || !v->copy_out ||
        !(v->code ? v->settle != NULL : v->run != NULL) || (entered && (!v->enter || !v->run_entered)))
        return la_fail("not a mock-up of this version (abi.h)");
    v->context = la_memory(la_up(sizeof *v->context, LA_PAGE));
    if (!v->context)
        return la_fail("no memory for the mock-up's context");
    if (v->code && la_map_code(v->code->at, v->code->bytes, v->code->image))
        return la_fail("its machine code has no place near the original's");
    v->context->abi = LA_ABI;
    v->context->buffer_count = *count;
    la_copy(&v->context->in, &la_parked, sizeof la_parked);
    la_copy(&v->context->out, &la_parked, sizeof la_parked);
    number = variant_count++;
    return la_answer(&number, sizeof number);
}

static uint64_t decimal(const char *text)
{
    uint64_t x = 0;
    while (*text == ' ')
        text++;
    while (*text >= '0' && *text <= '9')
        x = x * 10 + (uint64_t)(*text++ - '0');
    return x;
}

/* Whether the mapping around `like` is mostly made of huge pages. */
static int uses_huge_pages(uint64_t like)
{
    uint64_t room, rss = 0, huge = 0;
    char *text = like ? la_read_file("/proc/self/smaps", &room) : NULL;
    int inside = 0;
    for (const char *p = text; p && *p; p = la_next_line(p)) {
        const char *q = p;
        uint64_t start = la_hex(&q);
        if (q != p && *q == '-') {
            q++;
            inside = start <= like && like < la_hex(&q);
        } else if (inside && la_starts(p, "Rss:")) {
            rss = decimal(p + 4);
        } else if (inside && la_starts(p, "AnonHugePages:")) {
            huge = decimal(p + 14);
        }
    }
    la_free_file(text, room);
    return huge && huge * 2 >= rss;
}

/* An array in the mock-up, untouched so far. Its edges are small pages, as a program's array has them. */
static uint8_t *own_array(const struct la_buffer_spec *spec, int huge)
{
    uint64_t at = (uint64_t)spec->own, bytes = la_up(spec->offset + spec->bytes, LA_PAGE);
    la_madvise(at, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    la_madvise(at, bytes, 23 /* MADV_POPULATE_WRITE */);
    uint64_t first = la_up(at, LA_HUGE), last = la_down(at + bytes, LA_HUGE);
    if (huge && first < last)
        la_madvise(first, last - first, 25 /* MADV_COLLAPSE */);
    return spec->own + spec->offset;
}

static uint8_t *buffer(const struct la_buffer_spec *spec)
{
    int huge = uses_huge_pages(spec->like);
    if (spec->own)
        return own_array(spec, huge);
    uint64_t align = spec->align > LA_PAGE ? spec->align : LA_PAGE;
    if (huge && align < LA_HUGE)
        align = LA_HUGE;
    uint64_t bytes = la_up(spec->offset + (spec->bytes ? spec->bytes : 1), huge ? LA_HUGE : LA_PAGE);
    uint64_t base = (uint64_t)la_memory(bytes + align);
    if (!base)
        return NULL;
    uint64_t at = la_up(base, align);
    la_madvise(at, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    la_madvise(at, bytes, 23 /* MADV_POPULATE_WRITE */);
    if (huge)
        la_madvise(at, bytes, 25 /* MADV_COLLAPSE: huge pages even where the fault got none */);
    return (uint8_t *)at + spec->offset;
}

/* What the calls bring along: made once, of the registers that they are entered with. */
static const char *enter_calls(struct la_variant *v)
{
    const uint64_t calls = la_batch.count ? la_batch.count : 1;
    if (!v->entered_count)
        return NULL;
    int64_t *made = la_memory(la_up(calls * v->entered_count * sizeof *made, LA_PAGE));
    if (!made)
        return "no memory for what the mock-up's calls bring along";
    uint64_t kept[16];
    la_copy(kept, v->context->in.gpr, sizeof kept);
    for (uint64_t i = 0; i < calls; i++) {
        if (la_batch.count)
            la_copy(v->context->in.gpr, la_batch.calls[i].gpr, sizeof kept);
        v->enter(v->context, made + i * v->entered_count);
    }
    la_copy(v->context->in.gpr, kept, sizeof kept);
    v->entered = made;
    return NULL;
}

const char *la_enter_anew(void)
{
    const char *failed = NULL;
    for (uint64_t i = 1; i < variant_count && !failed; i++)
        failed = la_variants[i].filled ? enter_calls(&la_variants[i]) : NULL;
    return failed;
}

const char *la_fill_buffers(struct la_variant *v, int poison)
{
    if (v == &la_variants[0] || v->filled)
        return NULL;
    for (uint32_t i = 0; i < v->context->buffer_count; i++) {
        if (!v->context->buffers[i])
            v->context->buffers[i] = buffer(&v->spec[i]);
        if (!v->context->buffers[i])
            return "no memory for the mock-up's buffers";
        if (poison)
            la_fill(v->context->buffers[i], poison_byte, v->spec[i].bytes);
    }
    if (v->code)
        v->settle(v->context, (uint8_t *)v->code->at);
    v->copy_in(v->context);
    v->filled = 1;
    const char *failed = enter_calls(v);
    return failed ? failed : la_translate_puts(v);
}

/* How the pages of [start, end) are protected: as `maps` (read before) has them, not at all to be used, or to be written
 * where they can be read. Returns whether that could be done. */
enum how { AS_BEFORE, FORBIDDEN, OPEN };
static int protect_pages(const char *maps, uint64_t start, uint64_t end, enum how how)
{
    int64_t failed = 0;
    for (const char *p = maps; p && *p; p = la_next_line(p)) {
        const char *q = p;
        uint64_t from = la_hex(&q);
        q++;
        uint64_t to = la_hex(&q);
        q++;
        int prot = (q[0] == 'r' ? PROT_READ : 0) | (q[1] == 'w' ? PROT_WRITE : 0) | (q[2] == 'x' ? PROT_EXEC : 0);
        if (how == OPEN && prot & PROT_READ)
            prot |= PROT_WRITE;
        from = from > start ? from : start;
        to = to < end ? to : end;
        if (from < to)
            failed |= la_mprotect(from, to - from, how == FORBIDDEN ? PROT_NONE : prot);
    }
    return !failed;
}

/* Constants are read-only; what is overwritten for a call is of this process alone. Returns whether it can be. */
static int open_pages(const char *maps, uint64_t start, uint64_t end)
{
    return protect_pages(maps, la_down(start, LA_PAGE), la_up(end, LA_PAGE), OPEN);
}

static void close_pages(const char *maps, uint64_t start, uint64_t end)
{
    protect_pages(maps, la_down(start, LA_PAGE), la_up(end, LA_PAGE), AS_BEFORE);
}

struct edge {
    uint64_t at, bytes;
    uint8_t saved[2 * LA_PAGE];
};
static void poison(struct edge *e, uint64_t from, uint64_t to)
{
    e->at = from;
    e->bytes = to > from ? to - from : 0;
    la_copy(e->saved, (void *)from, e->bytes);
    la_fill((void *)from, poison_byte, e->bytes);
}

/* Words: start, end pairs. Whole pages become inaccessible, the bytes on partial pages at the edges are poisoned. */
static void forbid(const char *maps, const uint64_t *range, uint64_t n, struct edge *edges)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t start = range[2 * i], end = range[2 * i + 1];
        uint64_t first = la_up(start, LA_PAGE), last = la_down(end, LA_PAGE);
        if (first < last) {
            poison(&edges[2 * i], start, first);
            poison(&edges[2 * i + 1], last, end);
            protect_pages(maps, first, last, FORBIDDEN);
        } else {
            poison(&edges[2 * i], start, end);
        }
    }
}
static void allow(const char *maps, const uint64_t *range, uint64_t n, struct edge *edges)
{
    for (uint64_t i = n; i-- > 0;) {
        uint64_t first = la_up(range[2 * i], LA_PAGE), last = la_down(range[2 * i + 1], LA_PAGE);
        if (first < last)
            protect_pages(maps, first, last, AS_BEFORE);
        for (int k = 1; k >= 0; k--)
            la_copy((void *)edges[2 * i + k].at, edges[2 * i + k].saved, edges[2 * i + k].bytes);
    }
}

/* Bytes of each element that are poisoned, between others that stay as they are. */
struct strided {
    uint64_t start, end, stride, bytes;
};

static uint64_t strided_bytes(const struct strided *s)
{
    return ((s->end - s->start) / s->stride + 1) * s->bytes;
}

/* Keep and poison them, or (poison = 0) give them back what they were. */
static void fill_strided(const struct strided *s, uint8_t *saved, int poison)
{
    for (uint64_t at = s->start; at + s->bytes <= s->end; at += s->stride, saved += s->bytes) {
        if (poison) {
            la_copy(saved, (void *)at, s->bytes);
            la_fill((void *)at, poison_byte, s->bytes);
        } else {
            la_copy((void *)at, saved, s->bytes);
        }
    }
}

/* Words: the number of ranges, and these; the number of strided ones, and these. */
static struct la_reply run_forbidden(struct la_variant *v, const uint64_t *word)
{
    const uint64_t n = word[0], *range = word + 1, m = range[2 * n];
    const struct strided *fields = (const struct strided *)(range + 2 * n + 1);
    uint64_t room = 0, edge_bytes = la_up((2 * n + 1) * sizeof(struct edge), LA_PAGE), saved_bytes = 1;
    for (uint64_t i = 0; i < m; i++)
        saved_bytes += strided_bytes(&fields[i]);
    struct edge *edges = la_memory(edge_bytes);
    uint8_t *saved = la_memory(la_up(saved_bytes, LA_PAGE)), *free = saved;
    char *maps = n + m ? la_read_file("/proc/self/maps", &room) : NULL;
    if (!edges || !saved || (n + m && !maps))
        return la_fail("no memory to guard the old structures");
    int writable = 1;
    for (uint64_t i = 0; i < n; i++)
        writable &= open_pages(maps, range[2 * i], range[2 * i + 1]);
    for (uint64_t i = 0; i < m; i++)
        writable &= open_pages(maps, fields[i].start, fields[i].end);
    if (!writable)
        return la_fail("the old structures lie in memory that cannot be overwritten");
    forbid(maps, range, n, edges);
    for (uint64_t i = 0; i < m; free += strided_bytes(&fields[i]), i++)
        fill_strided(&fields[i], free, 1);
    la_call(v);
    la_break_readable();
    for (uint64_t i = m; i-- > 0;)
        fill_strided(&fields[i], free -= strided_bytes(&fields[i]), 0);
    allow(maps, range, n, edges);
    for (uint64_t i = 0; i < n; i++)
        close_pages(maps, range[2 * i], range[2 * i + 1]);
    for (uint64_t i = 0; i < m; i++)
        close_pages(maps, fields[i].start, fields[i].end);
    la_free_file(maps, room);
    la_munmap(edges, edge_bytes);
    la_munmap(saved, la_up(saved_bytes, LA_PAGE));
    return la_answer(NULL, 0);
}

/* A shared mapping of a file on tmpfs, so that nothing has to be written out afterwards. */
uint64_t *la_map_records(const char *path, uint64_t capacity)
{
    int fd = la_open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        return NULL;
    void *p = la_sys(SYS_ftruncate, fd, capacity * 8, 0) == 0
                  ? la_mmap(NULL, capacity * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd)
                  : NULL;
    la_close(fd);
    if (p) /* a fault in a fresh page of 4 kB costs more than the 512 records that it holds */
        la_madvise((uint64_t)p, capacity * 8, MADV_HUGEPAGE);
    return p;
}

struct la_run_answer {
    struct la_registers registers;
    uint64_t records, mismatches, first[3], remapped;
};

/* In a batch followed by what each call returned. */
static struct la_reply run_answer(const struct la_run_answer *out)
{
    const uint64_t returned = la_batch.count * sizeof *la_batch.returned;
    uint8_t *data = la_memory(la_up(sizeof *out + returned, LA_PAGE));
    if (!data)
        return la_fail("no memory for the answer");
    la_copy(data, out, sizeof *out);
    la_copy(data + sizeof *out, la_batch.returned, returned);
    return la_answer(data, sizeof *out + returned);
}

/* Words: variant, records capacity (0: none), the byte of poison, what is forbidden (run_forbidden). Path: the records file. */
struct la_reply la_cmd_run(const struct la_command *c)
{
    static struct la_run_answer out;
    struct la_variant *v = la_variant(c->word[0]);
    if (!v)
        return la_fail("no such variant");
    poison_byte = (int)(c->word[2] & 0xff);
    const char *failed = la_fill_buffers(v, 1);
    if (failed)
        return la_fail(failed);
    uint64_t capacity = v->context ? c->word[1] : 0, kept = 0;
    if (capacity) {
        v->context->check.records = la_map_records(la_command_path(c), capacity);
        v->context->check.capacity = capacity;
        if (!v->context->check.records)
            return la_fail("cannot map the records file (no room?)");
    }
    failed = v->context && la_is_team() ? la_team_check(v) : NULL;
    if (failed)
        return la_fail(failed);
    struct la_reply r = run_forbidden(v, c->word + 3);
    la_team_checked();
    if (r.status)
        return r;
    if (!v->context || v->code) {
        la_unpack_vectors(la_after_xsave, &original_out);
        original_out.fs_base = la_parked.fs_base;
        original_out.rip = la_config.exits ? la_exit_taken() : la_replay_state.slot;
        la_copy(v->context ? &v->context->out : &out.registers, &original_out, sizeof original_out);
    }
    if (!v->context)
        return run_answer(&out);
    la_put_old(v);
    v->copy_out(v->context);
    const struct la_check *check = &v->context->check;
    la_copy(&out.registers, &v->context->out, sizeof out.registers);
    out.records = check->count;
    out.mismatches = check->mismatches;
    out.first[0] = check->first_site;
    out.first[1] = check->first_old;
    out.first[2] = check->first_new;
    out.remapped = check->remapped;
    if (capacity) {
        kept = check->count < capacity && !la_is_team() ? check->count : capacity;
        la_munmap(check->records, capacity * 8);
        la_sys(SYS_truncate, la_command_path(c), kept * 8, 0);
        v->context->check.records = NULL;
        v->context->check.capacity = 0;
    }
    return run_answer(&out);
}

/* Faults on fresh pages would be most of what a traced call costs: the first of them are had before it. */
static void populate_records(uint64_t *records, uint64_t bytes)
{
    enum { AHEAD = 64 << 20 };
    la_madvise((uint64_t)records, bytes < AHEAD ? bytes : AHEAD, 23 /* MADV_POPULATE_WRITE */);
}

/* The clone's entry opens the record buffer anew, so a buffer that was full has to stay shut. */
static void trace_batch(volatile uint64_t *header)
{
    la_rewind_batch(NULL);
    for (uint64_t left = la_batch.count; left; left--) {
        la_batch.left = 1;
        la_replay_batch();
        if (header[2])
            header[1] = header[0];
    }
}

static uint64_t *traced_records, traced_bytes;

/* In a process that the traced call forked: what it records must not stand among its parent's records, whose file it shares. */
void la_records_in_child(void)
{
    if (traced_records)
        la_mmap(traced_records, traced_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1);
}

int la_map_code(uint64_t at, uint64_t bytes, const void *image)
{
    if (la_mmap((void *)at, la_up(bytes, LA_PAGE), PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | 0x100000 /* MAP_FIXED_NOREPLACE */, -1) != (void *)at)
        return -1;
    la_copy((void *)at, image, bytes);
    return 0;
}

int la_map_image(uint64_t at, uint64_t bytes, const char *name)
{
    char path[4096];
    uint64_t room;
    la_join(path, la_folder, name, "");
    char *image = la_read_file(path, &room);
    int failed = !image || la_map_code(at, bytes, image);
    la_free_file(image, room);
    return failed ? -1 : 0;
}

/* Words: image address, image bytes, entry, capacity. Path: records file; the image is "image" in the run folder. */
struct la_reply la_cmd_trace(const struct la_command *c)
{
    static uint64_t out[4];
    uint64_t at = c->word[0], capacity = c->word[3];
    if (la_map_image(at, c->word[1], "image"))
        return la_fail("the clone's image cannot be read, or its place in memory is taken");
    uint64_t *records = la_map_records(la_command_path(c), capacity);
    if (!records)
        return la_fail("cannot map the records file (no room?)");
    populate_records(records, capacity * 8);
    volatile uint64_t *header = (volatile uint64_t *)at;
    header[0] = (uint64_t)records;
    header[1] = (uint64_t)(records + capacity);
    header[2] = 0;
    traced_records = records;
    traced_bytes = capacity * 8;
    replay_setup(c->word[2], &la_parked);
    /* The process's clock counts what threads took that have ended, too. It is read after the thread's own at first and
     * before it at last: without others the difference never grows. */
    uint64_t own = la_clock(CLOCK_THREAD_CPUTIME_ID), all = la_clock(CLOCK_PROCESS_CPUTIME_ID);
    if (la_batch.count)
        trace_batch(header);
    else
        la_replay_original();
    all = la_clock(CLOCK_PROCESS_CPUTIME_ID) - all;
    own = la_clock(CLOCK_THREAD_CPUTIME_ID) - own;
    out[2] = own;
    out[3] = all > own ? all - own : 0;
    out[0] = (header[0] - (uint64_t)records) / 8;
    out[1] = header[2];
    traced_records = NULL;
    la_munmap(records, capacity * 8);
    la_sys(SYS_truncate, la_command_path(c), out[0] * 8, 0);
    return la_answer(out, sizeof out);
}
