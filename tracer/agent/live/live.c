/* A layout tried in the running program: from call N on, calls of the hotspot run as the mock-up, all of them or some, and
 * both kinds are timed. The program is never stopped; what goes wrong here leaves it with its own code.
 *
 * The old layout stays the truth: before a call as the mock-up, what the program has written of the structures since is copied
 * in (watch.c), and after it what the mock-up changed is copied back. The mock-up runs on a stack of the agent's, since its
 * variables that stay memory lie where the original's frame would be.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "live.h"

uint64_t la_live_target __attribute__((visibility("hidden")));

#define XSAVE_BYTES 4096
enum { CLOCKS_EVERY = 16 };
/* One mock-up runs at a time. */
static uint8_t saved[XSAVE_BYTES] __attribute__((aligned(64))), after[XSAVE_BYTES] __attribute__((aligned(64)));
static struct la_registers entered;
static uint8_t *stack;
static struct la_live_region *running; /* what the agent's stack is entered for */
static uint64_t live_thread, turns;
static uint64_t call_ns, call_faults; /* of the mock-up's last call, where the trial's own time is added up */
static int busy;

static uint64_t thread_id(void)
{
    uint64_t id;
    __asm__("mov %%fs:0, %0" : "=r"(id));
    return id;
}

/* From here on all calls of the region are the original's. */
static void give_up(struct la_live_region *r, const char *why)
{
    r->over = 1;
    if (r->page && !r->page->error[0])
        la_copy(r->page->error, why, la_length(why));
    else if (!r->page)
        la_error(why);
    la_never_of(la_live_number(r));
}

static int several_threads(void)
{
    uint64_t room;
    char *text = la_read_file("/proc/self/stat", &room);
    uint64_t field = 0, threads = 0;
    const char *p = text;
    for (const char *q = text; q && *q; q++) /* the name may hold anything: what follows its last bracket counts */
        p = *q == ')' ? q : p;
    for (; p && *p && field < 19; p++) {
        field += *p == ' ';
        if (field == 18 && *p != ' ')
            threads = threads * 10 + (uint64_t)(*p - '0');
    }
    la_free_file(text, room);
    return threads != 1;
}

/* On the agent's stack, with the program's vector state saved. */
static const char *failed_load;
static void load_it(void) { failed_load = la_live_load(running); }

static void on_stack(struct la_live_region *r, void (*function)(void))
{
    running = r;
    la_live_on_stack(stack + LA_PAGE + LA_STACK_BYTES, function);
}

/* On the agent's stack. */
int la_live_copy_in(struct la_live_region *r)
{
    const int stale = la_live_stale(r);
    if (stale > 0)
        r->variant->copy_in(r->variant->context);
    if (stale >= 0)
        r->dirty = r->page->stale = 0;
    return stale;
}

static const char *make_stack(void)
{
    if (stack)
        return NULL;
    stack = la_memory(LA_STACK_BYTES + LA_PAGE);
    if (!stack)
        return "no memory for a stack";
    la_mprotect((uint64_t)stack, LA_PAGE, PROT_NONE);
    return NULL;
}

static void begin(struct la_live_region *r)
{
    const char *failed = la_live_read(r);
    r->begun = 1;
    live_thread = live_thread ? live_thread : thread_id();
    if (!failed && several_threads())
        failed = "the program has several threads";
    if (!failed && r->orders.mode == LA_LIVE_NONE)
        return;
    if (!failed)
        failed = make_stack();
    if (!failed) {
        la_save_vectors(saved);
        on_stack(r, load_it);
        la_load_vectors(saved);
        failed = failed_load;
    }
    if (failed)
        give_up(r, failed);
    else
        r->page->conversions = 1;
}

/* Of two calls that follow each other one is the mock-up's, which one is as good as random; in the opposite run the other. */
static int is_mockup(const struct la_live_orders *o, uint64_t number)
{
    uint64_t z = (number / 2 + 1) * 0x9e3779b97f4a7c15ull ^ o->seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    const uint64_t second = (z >> 40 ^ number) & 1;
    return o->mode == LA_LIVE_ALL || (o->mode == LA_LIVE_ONE && second) || (o->mode == LA_LIVE_OTHER && !second);
}

static void take_registers(const struct la_live_region *r, const struct la_frame *f)
{
    const uint64_t gpr[16] = {f->rax, f->rcx, f->rdx, f->rbx, LA_FRAME_RSP(f), f->rbp, f->rsi, f->rdi,
                              f->r8,  f->r9,  f->r10, f->r11, f->r12,          f->r13, f->r14, f->r15};
    la_copy(entered.gpr, gpr, sizeof gpr);
    entered.rip = la_live_entry(r);
    entered.rflags = f->rflags;
    entered.fs_base = thread_id();
}

static int is_left_out(const struct la_live_orders *o, uint64_t call)
{
    uint64_t from = 0, to = o->left_out;
    while (from < to) {
        const uint64_t middle = (from + to) / 2;
        if (o->leave[middle] == call)
            return 1;
        if (o->leave[middle] < call)
            from = middle + 1;
        else
            to = middle;
    }
    return 0;
}

/* Whether the call is one that the mock-up was made for, as far as its registers and the blocks of the heap tell. */
static int is_like_traced(struct la_live_region *r, uint64_t call)
{
    const struct la_live_orders *o = &r->orders;
    for (uint64_t i = 0; i < 16; i++)
        if ((o->guarded >> i & 1) && (entered.gpr[i] < o->low[i] || o->high[i] < entered.gpr[i]))
            return 0;
    for (uint64_t i = 0; i < 16; i++)
        for (uint64_t k = 0; (o->outside >> i & 1) && k < o->ranges; k++)
            if (o->range[k][0] <= entered.gpr[i] && entered.gpr[i] < o->range[k][1])
                return 0;
    if (is_left_out(o, call))
        return 0;
    if (o->last && call > o->last)
        return 0;
    for (uint64_t i = 0; i < o->blocks; i++) {
        const struct la_block *b = la_block_at(o->block[i][0]);
        if (!b || b->bytes != o->block[i][1] || b->order != o->block[i][2]) {
            give_up(r, "the memory of a structure is freed, and perhaps allocated again, while the program runs");
            return 0;
        }
    }
    return 1;
}

static void flush_buffers(const struct la_variant *v)
{
    for (uint32_t i = 0; i < v->context->buffer_count; i++)
        la_flush((uint64_t)v->context->buffers[i], (uint64_t)v->context->buffers[i] + v->spec[i].bytes);
}

static uint64_t cpu_if(uint64_t wanted) { return wanted ? la_clock(CLOCK_THREAD_CPUTIME_ID) : 0; }
static uint64_t faults_if(uint64_t wanted) { return wanted ? la_minor_faults() : 0; }

static void converted_by(struct la_live_region *r, void (*copy)(struct la_context *))
{
    const uint64_t cpu = cpu_if(r->orders.account), start = la_tsc();
    copy(r->variant->context);
    r->current->copying += la_tsc() - start;
    r->page->copies_ns += cpu_if(r->orders.account) - cpu;
    r->page->conversions++;
}

void la_live_mockup_call(struct la_live_region *r)
{
    struct la_context *const c = r->variant->context;
    const uint64_t quick = la_live_quick(r);
    if (la_live_stale(r) < 0) {
        r->current = NULL;
        return;
    }
    if (r->page->stale) {
        converted_by(r, r->variant->copy_in);
        r->dirty = 0;
        r->current->role |= LA_ROW_CONVERTED;
        if (r->orders.flush)
            flush_buffers(r->variant);
    }
    la_replay_state.in = &entered;
    la_replay_state.xsave_in = saved;
    la_replay_state.xsave_out = after;
    la_replay_state.mask = la_xsave_mask;
    la_replay_state.target = (uint64_t)r->variant->run;
    la_replay_state.context = c;
    const uint64_t faults = faults_if(r->orders.account), cpu = cpu_if(!quick || r->orders.account);
    la_replay_mockup();
    call_ns = cpu_if(!quick || r->orders.account) - cpu;
    call_faults = faults_if(r->orders.account) - faults;
    r->current->cpu = quick ? 0 : call_ns;
    r->current->tsc = la_replay_state.tsc_end - la_replay_state.tsc_start;
    if (r->orders.writes) {
        la_watch_expect(r);
        converted_by(r, r->variant->copy_out);
        la_watch_settle(r);
    }
}

/* What the mock-up left goes into the frame, from which the program's registers are loaded. */
static int leave_call(const struct la_live_region *r, struct la_frame *f)
{
    const struct la_registers *o = &r->variant->context->out;
    f->rax = o->gpr[0], f->rcx = o->gpr[1], f->rdx = o->gpr[2], f->rbx = o->gpr[3], f->rbp = o->gpr[5], f->rsi = o->gpr[6];
    f->rdi = o->gpr[7], f->r8 = o->gpr[8], f->r9 = o->gpr[9], f->r10 = o->gpr[10], f->r11 = o->gpr[11], f->r12 = o->gpr[12];
    f->r13 = o->gpr[13], f->r14 = o->gpr[14], f->r15 = o->gpr[15];
    la_pack_vectors(saved, &entered, o);
    la_load_vectors(saved);
    if (!la_live_exits(r))
        return 1;
    la_live_target = o->rip;
    return 2;
}

/* The registers of the call as the mock-up is to find them, and the call as the one that is made. */
static void enter_call(struct la_live_region *r, struct la_live_row *row)
{
    struct la_context *const c = r->variant->context;
    la_save_vectors(saved);
    la_unpack_vectors(saved, &entered);
    la_copy(&c->in, &entered, sizeof entered);
    la_copy(&c->out, &entered, sizeof entered);
    r->current = row;
    busy = 1;
}

static void read_both_clocks(void)
{
    la_status->end_wall = la_clock(CLOCK_MONOTONIC);
    la_status->end_tsc = la_tsc();
}

static void call_it(void) { la_live_mockup_call(running); }
static void survey_it(void) { la_survey_call(running); }

static int run_mockup(struct la_live_region *r, struct la_frame *frame, struct la_live_row *row, uint64_t call)
{
    const struct la_frame own = *frame; /* it lies where the original's frame would be, to which the mock-up writes */
    enter_call(r, row);
    r->page->inside = call;
    on_stack(r, call_it);
    r->page->inside = 0;
    *frame = own;
    busy = 0;
    if (!r->current) {
        la_load_vectors(saved);
        give_up(r, "the kernel does not tell which pages were written");
        return 0;
    }
    row->role |= LA_ROW_MOCKUP;
    if (r->page->mockups++ % CLOCKS_EVERY == 0) /* what a tick takes, where no call is the original's */
        read_both_clocks();
    return leave_call(r, frame);
}

static int survey(struct la_live_region *r, struct la_live_row *row, uint64_t call)
{
    if (la_survey_is_over(r)) {
        r->over = 1;
        la_never_of(la_live_number(r));
        return 0;
    }
    enter_call(r, row);
    on_stack(r, survey_it);
    busy = 0;
    la_load_vectors(saved);
    const uint64_t role = la_survey_role();
    if (!role) {
        give_up(r, "the program cannot be copied to see which calls the mock-up does");
        return 0;
    }
    row->role |= role;
    r->page->surveyed = call;
    return 0;
}

static void open_original(struct la_live_region *r, uint64_t slot, uint64_t row)
{
    const uint64_t quick = la_live_quick(r);
    r->open.row = row;
    r->open.back = *(uint64_t *)slot;
    r->open.slot = slot;
    r->open.turn = ++turns;
    if (!la_live_exits(r))
        *(uint64_t *)slot = (uint64_t)la_return;
    r->open.cpu = cpu_if(!quick);
    r->open.tsc = la_tsc();
}

/* Whether the time for mock-ups is over; a call may take a second, where much is copied for it. */
static int is_late(struct la_live_region *r)
{
    if (!r->orders.limit_ns)
        return 0;
    const uint64_t now = la_clock(CLOCK_MONOTONIC);
    r->first_at = r->first_at ? r->first_at : now;
    return now - r->first_at > r->orders.limit_ns;
}

static int end_in_time(struct la_live_region *r, struct la_live_row *row, uint64_t call)
{
    row->role = LA_ROW_PASSED;
    r->page->passed++;
    r->page->ended = call;
    r->over = 1;
    la_never_of(la_live_number(r));
    return 0;
}

static int enter(struct la_live_region *r, struct la_frame *frame)
{
    const uint64_t call = la_live_call(r), slot = LA_FRAME_RSP(frame);
    const uint64_t number = call - la_live_first(r), mode = r->orders.mode;
    if (r->open.slot && la_goes_on(slot, r->open.slot))
        return 0; /* a call that the timed one made */
    struct la_live_row none = {0}, *row = number < LA_LIVE_ROWS ? &r->page->row[number] : &none;
    r->page->calls = number + 1;
    take_registers(r, frame);
    if (mode != LA_LIVE_NONE && mode != LA_LIVE_LOADED && mode != LA_LIVE_UNTIMED && !is_like_traced(r, call)) {
        row->role = LA_ROW_PASSED;
        r->page->passed++;
        r->page->surveyed = call;
        return 0;
    }
    if (mode == LA_LIVE_SURVEY && number < LA_LIVE_ROWS)
        return survey(r, row, call);
    if (mode == LA_LIVE_SURVEY || mode == LA_LIVE_UNTIMED) {
        r->over = 1;
        la_never_of(la_live_number(r));
        return 0;
    }
    if (is_late(r))
        return end_in_time(r, row, call);
    if (is_mockup(&r->orders, number))
        return run_mockup(r, frame, row, call);
    if (number < LA_LIVE_ROWS)
        open_original(r, slot, number);
    else if (mode != LA_LIVE_ALL)
        la_never_of(la_live_number(r)); /* nothing more to time */
    return 0;
}

int la_live_event(struct la_frame *frame, uint64_t region)
{
    struct la_live_region *const r = &la_live[region];
    if (r->over || (live_thread && live_thread != thread_id()))
        return 0;
    if (busy) { /* what a mock-up calls is its own business */
        if (r->begun && r != running)
            r->page->within++;
        return 0;
    }
    const uint64_t accounted = !r->begun || r->orders.account, start = cpu_if(accounted), faults = faults_if(accounted);
    call_ns = call_faults = 0;
    if (!r->begun)
        begin(r);
    const int how = r->over ? 0 : enter(r, frame);
    if (r->orders.account && r->page) {
        r->page->aside_faults += faults_if(1) - faults - call_faults;
        r->page->aside_ns += cpu_if(1) - start - call_ns;
    }
    return how;
}

/* The timed original whose return address stands there, the one that was opened last; NULL: none. */
static struct la_live_region *opened_at(uint64_t slot)
{
    struct la_live_region *found = NULL;
    for (uint64_t i = 0; i <= la_further_count; i++)
        if (la_live[i].open.slot == slot && (!found || found->open.turn < la_live[i].open.turn))
            found = &la_live[i];
    return found;
}

static void close_original(struct la_live_region *r, uint64_t tsc)
{
    r->open.slot = 0;
    if (!la_alive()) /* in a process that the program forked meanwhile */
        return;
    struct la_live_row *row = &r->page->row[r->open.row];
    row->cpu = la_live_quick(r) ? 0 : la_clock(CLOCK_THREAD_CPUTIME_ID) - r->open.cpu;
    row->tsc = tsc - r->open.tsc;
    row->role |= LA_ROW_ORIGINAL;
    read_both_clocks();
}

uint64_t la_live_return(uint64_t slot, uint64_t tsc)
{
    struct la_live_region *const r = opened_at(slot);
    close_original(r, tsc);
    return r->open.back;
}

void la_live_left(uint64_t region, uint64_t tsc)
{
    if (la_live[region].open.slot && live_thread == thread_id())
        close_original(&la_live[region], tsc);
}
