/* A layout tried in the running program: from call N on, calls of the hotspot run as the mock-up, all of them or some, and
 * both kinds are timed. The program is never stopped; what goes wrong here leaves it with its own code.
 *
 * The old layout stays the truth: before a call as the mock-up, what the program has written of the structures since is copied
 * in (watch.c), and after it what the mock-up changed is copied back. The mock-up runs on a stack of the agent's, since its
 * variables that stay memory lie where the original's frame would be.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "live.h"

struct la_live_orders la_live;
struct la_live_page *la_live_page;
uint64_t la_live_target __attribute__((visibility("hidden")));

#define XSAVE_BYTES 4096
enum { CLOCKS_EVERY = 16 };
static uint8_t saved[XSAVE_BYTES] __attribute__((aligned(64))), after[XSAVE_BYTES] __attribute__((aligned(64)));
static struct la_registers entered;
static uint8_t *stack;
static struct la_variant *variant;
static uint64_t live_thread;
static int begun, over, busy;

static struct {
    volatile uint64_t slot; /* where the return address of the timed original stands; 0: none open */
    uint64_t back, tsc, cpu, row;
} open_call;

static uint64_t thread_id(void)
{
    uint64_t id;
    __asm__("mov %%fs:0, %0" : "=r"(id));
    return id;
}

/* From here on all calls are the original's. */
static void give_up(const char *why)
{
    over = 1;
    if (la_live_page && !la_live_page->error[0])
        la_copy(la_live_page->error, why, la_length(why));
    else if (!la_live_page)
        la_error(why);
    la_never();
}

static const char *read_orders(void)
{
    char path[4096];
    la_join(path, la_folder, "live", "");
    int fd = la_open(path, O_RDONLY, 0);
    long got = fd < 0 ? -1 : la_sys(SYS_read, fd, &la_live, sizeof la_live);
    if (fd >= 0)
        la_close(fd);
    if (got != (long)sizeof la_live || la_live.magic != LA_MAGIC)
        return "the orders of the trial cannot be read";
    la_join(path, la_folder, "rows", "");
    fd = la_open(path, O_RDWR, 0);
    la_live_page = fd < 0 ? NULL : la_mmap(NULL, sizeof *la_live_page, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    if (fd >= 0)
        la_close(fd);
    return la_live_page ? NULL : "the table of calls cannot be mapped";
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
static const char *load(void)
{
    static struct {
        struct la_command head;
        char path[4096];
    } command;
    la_copy(command.path, la_live.path, sizeof command.path);
    struct la_reply reply = la_cmd_load(&command.head);
    if (reply.status)
        return reply.data;
    variant = la_variant(*(const uint64_t *)reply.data);
    const char *failed = la_watch_start();
    return failed ? failed : la_fill_buffers(variant, 0);
}

static const char *failed_load;
static void load_it(void) { failed_load = load(); }

/* On the agent's stack. */
int la_live_copy_in(void)
{
    const int stale = la_live_stale();
    if (stale > 0)
        variant->copy_in(variant->context);
    if (stale >= 0)
        la_live_page->stale = 0;
    return stale;
}

static void begin(void)
{
    const char *failed = read_orders();
    begun = 1;
    live_thread = thread_id();
    if (!failed && several_threads())
        failed = "the program has several threads";
    if (!failed && la_live.mode == LA_LIVE_NONE)
        return;
    if (!failed) {
        stack = la_memory(LA_STACK_BYTES + LA_PAGE);
        failed = stack ? NULL : "no memory for a stack";
    }
    if (!failed) {
        la_mprotect((uint64_t)stack, LA_PAGE, PROT_NONE);
        la_save_vectors(saved);
        la_live_on_stack(stack + LA_PAGE + LA_STACK_BYTES, load_it);
        la_load_vectors(saved);
        failed = failed_load;
    }
    if (failed)
        give_up(failed);
    else
        la_live_page->conversions = 1;
}

/* Of two calls that follow each other one is the mock-up's, which one is as good as random; in the opposite run the other. */
static int is_mockup(uint64_t number)
{
    uint64_t z = (number / 2 + 1) * 0x9e3779b97f4a7c15ull ^ la_live.seed;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    const uint64_t second = (z >> 40 ^ number) & 1;
    return la_live.mode == LA_LIVE_ALL || (la_live.mode == LA_LIVE_ONE && second) || (la_live.mode == LA_LIVE_OTHER && !second);
}

static void take_registers(const struct la_frame *f)
{
    const uint64_t gpr[16] = {f->rax, f->rcx, f->rdx, f->rbx, LA_FRAME_RSP(f), f->rbp, f->rsi, f->rdi,
                              f->r8,  f->r9,  f->r10, f->r11, f->r12,          f->r13, f->r14, f->r15};
    la_copy(entered.gpr, gpr, sizeof gpr);
    entered.rip = la_status->entry;
    entered.rflags = f->rflags;
    entered.fs_base = thread_id();
}

static int is_left_out(uint64_t call)
{
    uint64_t from = 0, to = la_live.left_out;
    while (from < to) {
        const uint64_t middle = (from + to) / 2;
        if (la_live.leave[middle] == call)
            return 1;
        if (la_live.leave[middle] < call)
            from = middle + 1;
        else
            to = middle;
    }
    return 0;
}

/* Whether the call is one that the mock-up was made for, as far as its registers and the blocks of the heap tell. */
static int is_like_traced(uint64_t call)
{
    for (uint64_t i = 0; i < 16; i++)
        if ((la_live.guarded >> i & 1) && (entered.gpr[i] < la_live.low[i] || la_live.high[i] < entered.gpr[i]))
            return 0;
    for (uint64_t i = 0; i < 16; i++)
        for (uint64_t k = 0; (la_live.outside >> i & 1) && k < la_live.ranges; k++)
            if (la_live.range[k][0] <= entered.gpr[i] && entered.gpr[i] < la_live.range[k][1])
                return 0;
    if (is_left_out(call))
        return 0;
    if (la_live.last && call > la_live.last)
        return 0;
    for (uint64_t i = 0; i < la_live.blocks; i++) {
        const struct la_block *b = la_block_at(la_live.block[i][0]);
        if (!b || b->bytes != la_live.block[i][1] || b->order != la_live.block[i][2]) {
            give_up("the memory of a structure is freed, and perhaps allocated again, while the program runs");
            return 0;
        }
    }
    return 1;
}

static void flush_buffers(void)
{
    for (uint32_t i = 0; i < variant->context->buffer_count; i++)
        la_flush((uint64_t)variant->context->buffers[i], (uint64_t)variant->context->buffers[i] + variant->spec[i].bytes);
}

static struct la_live_row *current;
static void converted_by(void (*copy)(struct la_context *))
{
    const uint64_t start = la_tsc();
    copy(variant->context);
    current->copying += la_tsc() - start;
    la_live_page->conversions++;
}

void la_live_mockup_call(void)
{
    struct la_context *const c = variant->context;
    if (la_live_stale() < 0) {
        current = NULL;
        return;
    }
    if (la_live_page->stale) {
        converted_by(variant->copy_in);
        current->role |= LA_ROW_CONVERTED;
        if (la_live.flush)
            flush_buffers();
    }
    la_replay_state.in = &entered;
    la_replay_state.xsave_in = saved;
    la_replay_state.xsave_out = after;
    la_replay_state.mask = la_xsave_mask;
    la_replay_state.target = (uint64_t)variant->run;
    la_replay_state.context = c;
    const uint64_t cpu = la_config.quick ? 0 : la_clock(CLOCK_THREAD_CPUTIME_ID);
    la_replay_mockup();
    current->cpu = la_config.quick ? 0 : la_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
    current->tsc = la_replay_state.tsc_end - la_replay_state.tsc_start;
    if (la_live.writes) {
        converted_by(variant->copy_out);
        la_watch_settle();
    }
}

/* What the mock-up left goes into the frame, from which the program's registers are loaded. */
static int leave_call(struct la_frame *f)
{
    const struct la_registers *o = &variant->context->out;
    f->rax = o->gpr[0], f->rcx = o->gpr[1], f->rdx = o->gpr[2], f->rbx = o->gpr[3], f->rbp = o->gpr[5], f->rsi = o->gpr[6];
    f->rdi = o->gpr[7], f->r8 = o->gpr[8], f->r9 = o->gpr[9], f->r10 = o->gpr[10], f->r11 = o->gpr[11], f->r12 = o->gpr[12];
    f->r13 = o->gpr[13], f->r14 = o->gpr[14], f->r15 = o->gpr[15];
    la_pack_vectors(saved, &entered, o);
    la_load_vectors(saved);
    if (!la_config.exits)
        return 1;
    la_live_target = o->rip;
    return 2;
}

/* The registers of the call as the mock-up is to find them, and the call as the one that is made. */
static void enter_call(struct la_live_row *row)
{
    struct la_context *const c = variant->context;
    la_save_vectors(saved);
    la_unpack_vectors(saved, &entered);
    la_copy(&c->in, &entered, sizeof entered);
    la_copy(&c->out, &entered, sizeof entered);
    current = row;
    busy = 1;
}

static void read_both_clocks(void)
{
    la_status->end_wall = la_clock(CLOCK_MONOTONIC);
    la_status->end_tsc = la_tsc();
}

static int run_mockup(struct la_frame *frame, struct la_live_row *row, uint64_t call)
{
    enter_call(row);
    la_live_page->inside = call;
    la_live_on_stack(stack + LA_PAGE + LA_STACK_BYTES, la_live_mockup_call);
    la_live_page->inside = 0;
    busy = 0;
    if (!current) {
        la_load_vectors(saved);
        give_up("the kernel does not tell which pages were written");
        return 0;
    }
    row->role |= LA_ROW_MOCKUP;
    if (la_live_page->mockups++ % CLOCKS_EVERY == 0) /* what a tick takes, where no call is the original's */
        read_both_clocks();
    return leave_call(frame);
}

static int survey(struct la_live_row *row, uint64_t call)
{
    if (la_survey_is_over()) {
        over = 1;
        la_never();
        return 0;
    }
    enter_call(row);
    la_live_on_stack(stack + LA_PAGE + LA_STACK_BYTES, la_survey_call);
    busy = 0;
    la_load_vectors(saved);
    const uint64_t role = la_survey_role();
    if (!role) {
        give_up("the program cannot be copied to see which calls the mock-up does");
        return 0;
    }
    row->role |= role;
    la_live_page->surveyed = call;
    return 0;
}

static void open_original(uint64_t slot, uint64_t row)
{
    open_call.row = row;
    open_call.back = *(uint64_t *)slot;
    open_call.slot = slot;
    if (!la_config.exits)
        *(uint64_t *)slot = (uint64_t)la_return;
    open_call.cpu = la_config.quick ? 0 : la_clock(CLOCK_THREAD_CPUTIME_ID);
    open_call.tsc = la_tsc();
}

int la_live_event(struct la_frame *frame)
{
    const uint64_t call = (uint64_t)(la_status->armed - la_status->counter), slot = LA_FRAME_RSP(frame);
    if (!begun)
        begin();
    if (over || busy || live_thread != thread_id())
        return 0;
    if (open_call.slot && slot < open_call.slot)
        return 0; /* a call that the timed one made */
    const uint64_t number = call - la_config.first;
    struct la_live_row none = {0}, *row = number < LA_LIVE_ROWS ? &la_live_page->row[number] : &none;
    la_live_page->calls = number + 1;
    take_registers(frame);
    if (la_live.mode != LA_LIVE_NONE && la_live.mode != LA_LIVE_LOADED && !is_like_traced(call)) {
        row->role = LA_ROW_PASSED;
        la_live_page->passed++;
        la_live_page->surveyed = call;
        return 0;
    }
    if (la_live.mode == LA_LIVE_SURVEY) {
        if (number < LA_LIVE_ROWS)
            return survey(row, call);
        over = 1;
        la_never();
        return 0;
    }
    if (is_mockup(number))
        return run_mockup(frame, row, call);
    if (number < LA_LIVE_ROWS)
        open_original(slot, number);
    else if (la_live.mode != LA_LIVE_ALL)
        la_never(); /* nothing more to time */
    return 0;
}

uint64_t la_live_return(uint64_t tsc)
{
    if (!la_alive()) { /* in a process that the program forked meanwhile */
        open_call.slot = 0;
        return open_call.back;
    }
    struct la_live_row *row = &la_live_page->row[open_call.row];
    row->cpu = la_config.quick ? 0 : la_clock(CLOCK_THREAD_CPUTIME_ID) - open_call.cpu;
    row->tsc = tsc - open_call.tsc;
    row->role |= LA_ROW_ORIGINAL;
    open_call.slot = 0;
    read_both_clocks();
    return open_call.back;
}

void la_live_left(uint64_t tsc)
{
    if (open_call.slot && live_thread == thread_id())
        la_live_return(tsc);
}
