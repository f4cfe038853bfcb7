/* Parallel regions. The program is parked where its main thread starts the region, the workers idle: at the entry of a function
 * of libgomp (GOMP_parallel or one of its kin), whose first argument is the outlined function, or of libomp's __kmpc_fork_call,
 * whose third argument it is. A replay is that call with another function in its place, so that the program's own threads come,
 * with their own numbers and schedule.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <dlfcn.h>

struct member { /* of the team, by its number in the region */
    uint64_t target; /* where it goes instead of the outlined function */
    volatile uint64_t entered, rsp, fs_base;
    uint64_t arguments[LA_ARGUMENTS]; /* of the outlined function */
};
static const uint8_t argument_registers[LA_ARGUMENTS] = {LA_RDI, LA_RSI, LA_RDX, LA_RCX, LA_R8, LA_R9};
static struct member team[LA_MAX_TEAM];
static uint64_t team_size;
static volatile uint64_t stray;
static struct la_variant *variant;
static int (*thread_number)(void);
static struct la_registers entry_registers;

int la_is_team(void) { return la_config.outlined != 0; }
static int by_libomp(void) { return la_config.body_register == LA_RDX; }
static uint64_t arguments_of_body(void) { return by_libomp() ? LA_ARGUMENTS : 1; }
static uint64_t outlined(void) { return la_parked.gpr[la_config.body_register]; }

static const char *find_runtime(void)
{
    if (!thread_number)
        *(void **)&thread_number = dlsym(RTLD_DEFAULT, "omp_get_thread_num");
    return thread_number ? NULL : "the program's OpenMP runtime has no omp_get_thread_num";
}

static void start_region(void (*function)(void))
{
    entry_registers = la_parked;
    entry_registers.gpr[la_config.body_register] = (uint64_t)function;
    stray = 0;
    for (uint64_t i = 0; i < LA_MAX_TEAM; i++)
        team[i].entered = 0;
    if (by_libomp())
        la_libomp_ask();
    la_replay_at(la_parked.rip, &entry_registers);
}

/* A region in the region has numbers from 0 again: who comes second, or beyond the team, is not recorded but told of. */
uint64_t la_team_target(uint64_t rsp, const uint64_t *arguments) __attribute__((visibility("hidden")));
uint64_t la_team_target(uint64_t rsp, const uint64_t *arguments)
{
    uint64_t number = (uint64_t)thread_number(), fs;
    if (number < team_size && !__atomic_exchange_n(&team[number].entered, 1, __ATOMIC_SEQ_CST)) {
        la_sys(SYS_arch_prctl, 0x1003 /* ARCH_GET_FS */, &fs, 0);
        team[number].rsp = rsp;
        team[number].fs_base = fs;
        la_copy(team[number].arguments, arguments, sizeof team[number].arguments);
        return team[number].target;
    }
    __atomic_add_fetch(&stray, 1, __ATOMIC_SEQ_CST);
    return outlined();
}

/* The most threads that the parked region can get: what it asks for (all kinds of libgomp's regions have that number as third
 * argument), else what the runtime would give. */
struct la_reply la_cmd_team(const struct la_command *c)
{
    static uint64_t most;
    int (*max_threads)(void);
    (void)c;
    *(void **)&max_threads = dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    const char *failed = find_runtime();
    if (failed || !max_threads)
        return la_fail(failed ? failed : "the program's OpenMP runtime has no omp_get_max_threads");
    if (by_libomp() && (failed = la_libomp_settle()))
        return la_fail(failed);
    most = by_libomp() ? la_libomp_asked() : (uint32_t)la_parked.gpr[LA_RDX];
    if (!most)
        most = (uint64_t)max_threads();
    return most && most <= LA_MAX_TEAM ? la_answer(&most, sizeof most) : la_fail("too many threads in one region");
}

static void suffixed(char *out, const char *path, uint64_t number)
{
    char digits[24];
    int k = sizeof digits - 1;
    digits[k] = 0;
    do
        digits[--k] = (char)('0' + number % 10);
    while (number /= 10);
    uint64_t n = la_length(path);
    n = n < 4000 ? n : 4000;
    la_copy(out, path, n);
    out[n] = '.';
    la_copy(out + n + 1, digits + k, la_length(digits + k) + 1);
}

/* Words: threads, records for each; for each thread its image's address, bytes and entry. Path: records, a file for each
 * thread, with its number behind a dot; so are the images in the run folder. Answers stray entries and CPU time, then for each
 * thread: entered, records, full, rsp, fs base, how many arguments the
 * outlined function has in registers, and these. */
struct la_reply la_cmd_trace_team(const struct la_command *c)
{
    static uint64_t out[2 + LA_MEMBER_WORDS * LA_MAX_TEAM];
    static uint64_t *records[LA_MAX_TEAM];
    const uint64_t count = c->word[0], capacity = c->word[1], *image = c->word + 2;
    char path[4096];
    const char *failed = find_runtime();
    if (failed || !la_is_team() || !count || count > LA_MAX_TEAM)
        return la_fail(failed ? failed : "not parked at a parallel region of so many threads");
    for (uint64_t i = 0; i < count; i++) {
        suffixed(path, "image", i);
        if (la_map_image(image[3 * i], image[3 * i + 1], path))
            return la_fail("the clone's image cannot be read, or its place in memory is taken");
        suffixed(path, la_command_path(c), i);
        records[i] = la_map_records(path, capacity);
        if (!records[i])
            return la_fail("cannot map the records file (no room?)");
        volatile uint64_t *header = (volatile uint64_t *)image[3 * i];
        header[0] = (uint64_t)records[i];
        header[1] = (uint64_t)(records[i] + capacity);
        header[2] = 0;
        team[i].target = image[3 * i + 2];
    }
    team_size = count;
    out[1] = la_clock(CLOCK_PROCESS_CPUTIME_ID);
    la_blocks_go_on(); /* which blocks come and go in the region */
    start_region(la_team_enter);
    la_blocks_stop();
    out[1] = la_clock(CLOCK_PROCESS_CPUTIME_ID) - out[1];
    out[0] = stray;
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t *header = (const uint64_t *)image[3 * i];
        uint64_t *o = out + 2 + LA_MEMBER_WORDS * i, taken = (header[0] - (uint64_t)records[i]) / 8;
        o[0] = team[i].entered;
        o[1] = taken;
        o[2] = header[2];
        o[3] = team[i].rsp;
        o[4] = team[i].fs_base;
        o[5] = arguments_of_body();
        la_copy(o + 6, team[i].arguments, sizeof team[i].arguments);
        la_munmap(records[i], capacity * 8);
        suffixed(path, la_command_path(c), i);
        la_sys(SYS_truncate, path, taken * 8, 0);
    }
    return la_answer(out, (2 + LA_MEMBER_WORDS * count) * sizeof *out);
}

/* The n-th thread's part of the record buffer of a check build: all parts are equal. */
static void own_check(struct la_check *own, const struct la_check *shared)
{
    uint64_t number = (uint64_t)thread_number(), room = shared->capacity / team_size;
    la_fill(own, 0, sizeof *own);
    if (shared->records && number < team_size) {
        own->records = shared->records + number * room;
        own->capacity = room;
    }
}

static void add_check(struct la_check *shared, const struct la_check *own)
{
    if (own->mismatches && !__atomic_fetch_add(&shared->mismatches, own->mismatches, __ATOMIC_SEQ_CST)) {
        shared->first_site = own->first_site;
        shared->first_old = own->first_old;
        shared->first_new = own->first_new;
    }
    __atomic_fetch_add(&shared->count, own->count, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&shared->remapped, own->remapped, __ATOMIC_SEQ_CST);
}

/* One thread's part of a mock-up, entered with that stack pointer and these arguments: a context of its own, so that no two
 * threads write to one line of it. */
void la_member_runs(const uint64_t *arguments, uint64_t rsp) __attribute__((visibility("hidden")));
void la_member_runs(const uint64_t *arguments, uint64_t rsp)
{
    struct la_context own;
    struct la_context *shared = variant->context;
    own.abi = shared->abi;
    own.buffer_count = shared->buffer_count;
    la_copy(own.buffers, shared->buffers, shared->buffer_count * sizeof *own.buffers);
    la_copy(&own.in, &shared->in, offsetof(struct la_registers, vector));
    for (uint64_t k = 0; k < arguments_of_body(); k++)
        own.in.gpr[argument_registers[k]] = arguments[k];
    own.in.gpr[LA_RSP] = rsp;
    if (team_size) /* a check build: never timed */
        own_check(&own.check, &shared->check);
    variant->run(&own);
    if (team_size)
        add_check(&shared->check, &own.check);
}

/* Check builds count and record; `team_size` tells the threads to, 0 that they have nothing but the work to do. */
const char *la_team_check(struct la_variant *v)
{
    static const struct la_command none;
    struct la_reply most = la_cmd_team(&none);
    if (most.status)
        return (const char *)most.data;
    team_size = *(const uint64_t *)most.data;
    v->context->check.count = v->context->check.mismatches = v->context->check.remapped = 0;
    return NULL;
}
void la_team_checked(void) { team_size = 0; }

static void (*body_of(struct la_variant *v))(void)
{
    variant = v;
    return v == &la_variants[0] ? (void (*)(void))outlined() : la_member_enter;
}
void la_team_call(struct la_variant *v) { start_region(body_of(v)); }

static void (*shared_work)(uint64_t number, uint64_t count);
static int (*thread_count)(void);
static void work_as_member(void *data)
{
    (void)data;
    shared_work((uint64_t)thread_number(), (uint64_t)thread_count());
}
void la_team_share(void) { work_as_member(NULL); }

/* In a region of the agent's own with as many threads as the parked one has. */
const char *la_team_work(void (*work)(uint64_t number, uint64_t count))
{
    static void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    const char *failed = find_runtime();
    if (!thread_count)
        *(void **)&thread_count = dlsym(RTLD_DEFAULT, "omp_get_num_threads");
    if (!parallel)
        *(void **)&parallel = dlsym(RTLD_DEFAULT, "GOMP_parallel");
    if (failed || !thread_count || (!by_libomp() && !parallel))
        return "the program's OpenMP runtime cannot start a region";
    if (by_libomp() && (failed = la_libomp_settle()))
        return failed;
    shared_work = work;
    if (by_libomp())
        la_libomp_region();
    else
        parallel(work_as_member, NULL, (unsigned)la_parked.gpr[LA_RDX], 0);
    return NULL;
}

static uint64_t came;
static void note_count(uint64_t number, uint64_t count)
{
    if (!number)
        came = count;
}

/* Word: how many threads the parked region asks for from here on (in this process). Answers how many the runtime gives. */
struct la_reply la_cmd_threads(const struct la_command *c)
{
    if (!la_is_team() || !c->word[0] || c->word[0] > LA_MAX_TEAM)
        return la_fail("not parked at a parallel region that can have so many threads");
    const char *failed = by_libomp() ? la_libomp_settle() : NULL;
    if (failed)
        return la_fail(failed);
    if (by_libomp())
        la_libomp_want(c->word[0]);
    else
        la_parked.gpr[LA_RDX] = c->word[0];
    failed = la_team_work(note_count);
    return failed ? la_fail(failed) : la_answer(&came, sizeof came);
}

/* What each thread spends in the body, without the wait for the others at its end. On lines of their own: all write. The body
 * is entered as it always is, with its arguments on the stack; only its return address is another. */
static struct { uint64_t ns, start, back, apart[5]; } busy[LA_MAX_TEAM] __attribute__((aligned(64)));
static void (*timed_body)(void);
uint64_t la_timed_target(uint64_t *back, const uint64_t *arguments) __attribute__((visibility("hidden")));
uint64_t la_timed_target(uint64_t *back, const uint64_t *arguments)
{
    const uint64_t number = (uint64_t)thread_number();
    (void)arguments;
    if (number < LA_MAX_TEAM) {
        busy[number].back = *back;
        *back = (uint64_t)la_timed_leave;
        busy[number].start = la_clock(CLOCK_THREAD_CPUTIME_ID);
    }
    return (uint64_t)timed_body;
}
uint64_t la_timed_return(void) __attribute__((visibility("hidden")));
uint64_t la_timed_return(void)
{
    const uint64_t number = (uint64_t)thread_number();
    busy[number].ns = la_clock(CLOCK_THREAD_CPUTIME_ID) - busy[number].start;
    return busy[number].back;
}

/* Words: a prepared variant, calls. Answers of the quickest call wall ns, then CPU ns of each thread in the body: in the
 * others something interfered. */
struct la_reply la_cmd_members(const struct la_command *c)
{
    static uint64_t out[1 + LA_MAX_TEAM];
    struct la_variant *v = la_variant(c->word[0]);
    const char *failed = find_runtime();
    if (failed || !la_is_team() || !v || !v->line_at)
        return la_fail(failed ? failed : "not parked at a parallel region, or this variant is not prepared");
    out[0] = ~0ull;
    for (uint64_t i = 0; i < c->word[1]; i++) {
        la_restore_lines(v);
        if ((failed = la_team_work(note_count))) /* so that the workers are awake */
            return la_fail(failed);
        timed_body = body_of(v);
        const uint64_t start = la_clock(CLOCK_MONOTONIC);
        start_region(la_timed_enter);
        const uint64_t wall = la_clock(CLOCK_MONOTONIC) - start;
        if (wall >= out[0])
            continue;
        out[0] = wall;
        for (uint64_t k = 0; k < came; k++)
            out[1 + k] = busy[k].ns;
    }
    la_restore_lines(v);
    return la_answer(out, (1 + came) * sizeof *out);
}
