/* What the parts of the preloaded agent share. See docs in tracer/process/channel.py for the Python side.
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_AGENT_H
#define LAYOUT_ADVISE_AGENT_H
#include "abi.h"
#include "sys.h"

#define LA_MAGIC 0x3167617561796c61ull
#define LA_EXPORT __attribute__((visibility("default")))

enum { LA_MODE_SAMPLE = 1, LA_MODE_PROBE = 2, LA_MODE_PARK = 3, LA_MODE_RECORD = 4, LA_MODE_LIVE = 5, LA_MODE_ORDER = 6 };
enum { LA_LOADED = 1, LA_PATCHED = 2, LA_PARKED = 3, LA_STOPPED = 4 };

struct la_fix { /* a rel32 field of the relocated instructions */
    uint32_t at;     /* offset of the field in the blob */
    uint32_t end;    /* offset of the first byte after its instruction */
    uint64_t target; /* what it points at, as an address in the ELF file */
};

enum { LA_RCX = 1, LA_RDX, LA_RSP = 4, LA_RSI = 6, LA_RDI, LA_R8, LA_R9 }; /* of la_registers.gpr */

#define LA_MAX_EXITS 6
struct la_exit { /* where control goes on after a loop; none for functions, which return. Order: another region's entry */
    uint64_t address; /* in the ELF file */
    uint32_t patch_bytes, blob_bytes, fixes, reserved;
    uint8_t original[32];
    uint8_t blob[64];
    struct la_fix fix[4];
};

struct la_config { /* file "config", written by the launcher */
    uint64_t magic;
    uint64_t mode;
    uint64_t controller; /* pid: the program dies with it */
    uint64_t entry;      /* address in the ELF file */
    uint64_t first;      /* probe, record: first call to time or record, park: the call to stop at; from 1 */
    uint64_t timed;      /* probe, record: number of calls to time or record; order: entries that are logged at most */
    uint64_t max_calls;  /* probe: end the program after that many calls; 0: never */
    uint64_t interval;   /* sample: ns of CPU time */
    uint32_t patch_bytes; /* bytes of original code that the blob stands for */
    uint32_t blob_bytes;
    uint32_t int3;
    uint32_t fixes;
    uint64_t quick; /* probe: read only the time stamp counter around a call */
    uint8_t original[32];
    uint8_t blob[128];
    struct la_fix fix[8];
    char module[4096];
    char preload[4096]; /* the program's own LD_PRELOAD */
    uint64_t outlined;  /* 0, or: only calls that are handed this function count (its address in the ELF file ...) */
    char outlined_module[4096]; /* ... that this is) */
    uint64_t exits;
    struct la_exit exit[LA_MAX_EXITS];
    uint64_t calm_ticks, calm_ns; /* probe: wait up to so long for such a canary before the first timed call */
    uint64_t body_register; /* which the outlined function is handed over in: that of libgomp, rdi, or of libomp, rdx */
    uint64_t held_ns;       /* the time of day at the program's first look at the clock; 0: the clock's own */
    uint64_t chunk;         /* the entry is the head of a loop, of which so many iterations are a call; 0: each passage is one */
};

/* Other regions of a trial in the running program, in the hotspot's module; file "further", which may be missing. */
#define LA_MAX_FURTHER 7u
struct la_further {
    uint64_t entry; /* address in the ELF file */
    uint64_t first; /* the first call that is of the trial, from 1 */
    uint64_t quick;
    uint32_t patch_bytes, blob_bytes, fixes, reserved;
    uint8_t original[32];
    uint8_t blob[128];
    struct la_fix fix[8];
    uint64_t exits;
    struct la_exit exit[LA_MAX_EXITS];
};
extern struct la_further la_further[LA_MAX_FURTHER];
extern uint64_t la_further_count;

struct la_variant;
struct la_command;
struct la_sample { /* one timed call */
    uint64_t wall, cpu, tsc, faults;
    uint64_t canary; /* ticks: the slower of one before and one after */
    uint64_t memory;  /* ticks of the canary of the memory, likewise; 0: not taken */
    uint64_t between; /* ns since the timed call before ended, in the running program; 0: not known */
};

#define LA_MAX_TIMED 16384
struct la_status { /* file "status"; mapped shared until the program is parked */
    uint64_t magic;
    volatile uint64_t state;
    uint64_t pid;
    uint64_t load_base;
    volatile int64_t counter; /* counts down; at or below 0 a call takes the slow path */
    volatile int64_t armed;   /* calls so far = armed - counter */
    volatile uint64_t nested; /* calls that a timed one made of its own */
    volatile uint64_t threads;
    volatile uint64_t timed;
    uint64_t entry; /* at run time */
    uint64_t start_wall, start_tsc, end_wall, end_tsc; /* probe: two readings of both clocks */
    uint64_t empty_tsc; /* quick: of a timed call that does nothing; chunks: ps that counting one iteration takes */
    uint64_t left_by;   /* which exit a replayed loop took; the head of one in chunks comes after all others */
    char error[256];
    struct la_sample sample[LA_MAX_TIMED];
    volatile uint64_t outlined; /* at run time */
    struct la_entered {
        volatile int64_t counter, armed; /* as above */
        uint64_t entry;                  /* at run time */
    } further[LA_MAX_FURTHER];
};

struct la_frame { /* what the stub and la_slow pushed */
    uint64_t rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15, rflags;
};
#define LA_FRAME_RSP(frame) ((uint64_t)(frame) + sizeof(struct la_frame) + 128)

/* agent.c */
extern struct la_config la_config;
extern struct la_status *la_status; /* the shared mapping, later a private copy */
extern char la_folder[4096];
int la_alive(void); /* 0 in processes that the program forked */
void la_revive(void);
void la_error(const char *text);

/* patch.c */
int la_patch(uint64_t load_base);
void la_unpatch(void);
void la_catch_exits(void); /* from now on the exits lead to la_capture */
uint64_t la_exit_taken(void); /* run-time address of the exit that the replayed loop took */
uint64_t la_begin_chunk(uint64_t target); /* before the parked chunk runs at target: where the original is entered */
extern uint64_t la_entry, la_near, la_near_bytes;
uint64_t la_shared_bytes(void); /* of la_near_bytes, from the second page on: what is shared with the controller */

/* entry.S */
void la_slow(void);
extern void (*const la_slow_further[LA_MAX_FURTHER])(void);
void la_return(void);
/* Whether a call whose return address is in slot is made within the open one: deeper in the stack, or in its place, where
 * a function ends in a jump to itself. */
static inline int la_goes_on(uint64_t slot, uint64_t open)
{
    return slot < open || (slot == open && *(uint64_t *)slot == (uint64_t)la_return);
}
void la_empty(void);
void la_nothing(void);
void la_left(void);
void la_capture(void);
void la_dl_hook(void);
void la_on_stack(void *top, void (*function)(void)) __attribute__((noreturn));
void la_live_on_stack(void *top, void (*function)(void)); /* and back again */
void la_replay_original(void);
void la_replay_mockup(void);
void la_team_enter(void);
void la_timed_enter(void);
void la_timed_leave(void);
void la_member_enter(void);
struct la_replay {
    struct la_registers *in;  /*   0 */
    void *xsave_in;           /*   8 */
    uint64_t mask;            /*  16 */
    uint64_t target;          /*  24 */
    uint64_t agent_sp;        /*  32 */
    uint64_t slot;            /*  40: the program's return address */
    struct la_registers *out; /*  48 */
    void *xsave_out;          /*  56 */
    uint64_t tsc_start;       /*  64 */
    uint64_t tsc_end;         /*  72 */
    void *context;            /*  80 */
    uint64_t rax, rdx, rcx;   /*  88, 96, 104 */
    uint64_t *slot_at;        /* 112: where the return address stands */
};
extern struct la_replay la_replay_state;

/* clock.c */
void la_clock_park(void);
void la_clock_go_on(void);
int64_t la_clock_behind(void); /* ns by which the program's time of day is behind the kernel's */

/* calls.c: one call's arguments as recorded, and what it returned */
#define LA_STACK_ARGUMENTS 64
struct la_recorded {
    uint64_t gpr[16]; /* in encoding order, as in la_registers */
    uint8_t xmm[8][16];
    uint64_t stack[LA_STACK_ARGUMENTS]; /* above the return address */
    uint8_t upper[8][16]; /* of ymm0 to ymm7 */
};
struct la_returned {
    uint64_t rax, rdx;
    uint8_t xmm0[16], xmm1[16];
};
struct la_batch { /* entry.S knows the offsets */
    struct la_recorded *calls;                  /*  0 */
    struct la_returned *returned;               /*  8 */
    uint64_t count;                             /* 16; 0: one call, with the parked registers */
    const struct la_recorded *at;               /* 24: the replay's own */
    struct la_returned *to;                     /* 32 */
    uint64_t left;                              /* 40 */
    void (*run)(struct la_context *);           /* 48: of the mock-up */
    uint64_t words;                             /* 56: words of the stack that differ from call to call: put there before each */
    uint64_t *word;                             /* 64: how far each is from rsp, in bytes */
    uint64_t upper;                             /* 72: some call finds something in the upper half of a vector register */
    const struct la_put *put;                   /* 80: what is put back next, after a call */
    const uint64_t *puts;                       /* 88: how much after each call, from this one on; NULL: nothing */
    const int64_t *entered;                     /* 96: what the next call brings along */
    uint64_t entered_bytes;                     /* 104: for one call */
    uint64_t apart;                             /* 112: each call ends before what follows it begins */
};
_Static_assert(__builtin_offsetof(struct la_context, entered) == 8584, "entry.S");
extern struct la_batch la_batch;
uint64_t la_calls_bytes(void);
void la_record_event(const struct la_frame *frame);
void la_replay_batch(void);
void la_mockup_batch(struct la_context *context);

/* between.c: what the program writes between recorded calls; file "between", which the controller makes */
#define LA_BETWEEN_PAGES (1u << 16)
#define LA_BETWEEN_GAPS (1u << 14)
#define LA_BETWEEN_END 1u  /* a record that stands for the next call's entry; all others are of pages */
#define LA_BETWEEN_PART 2u /* of a page: nothing is known of its other words */
enum { LA_BETWEEN_UNKNOWN = 1, LA_BETWEEN_ROOM, LA_BETWEEN_TIME };
struct la_between_file { /* then the records */
    uint64_t gaps;       /* recorded wholly */
    uint64_t pages;
    uint64_t why;        /* no more are: 0, or why */
    uint64_t most_ns, spent_ns;
    uint64_t reserved[507];
    uint64_t page[LA_BETWEEN_PAGES];
    uint64_t end[LA_BETWEEN_GAPS]; /* words of records up to the end of each gap */
};
void la_between_map(void);
void la_between_note(uint64_t n, uint64_t rsp);

/* put_back.c: the same between replayed calls */
struct la_put { /* *to = (*to & keep) | value */
    uint64_t *to;
    uint64_t keep, value;
};
struct la_puts { /* count: after each call */
    const uint64_t *count;
    const struct la_put *put;
};
void la_rewind_puts(const struct la_variant *v);
void la_forget_puts(void);
const char *la_translate_puts(struct la_variant *v); /* its buffers are there; an error text or NULL */
void la_put_old(const struct la_variant *v);
struct la_reply la_cmd_map(const struct la_command *c);
struct la_reply la_cmd_settle(const struct la_command *c);
struct la_reply la_cmd_put(const struct la_command *c);
struct la_reply la_cmd_put_ns(const struct la_command *c);

/* files.c: where the program stands in the files that it reads */
void la_files_park(void);
void la_files_back(void);
void la_files_own(void);

/* probe.c, order.c, sample.c, blocks.c */
void la_probe_start(void);
void la_probe_event(struct la_frame *frame);
void la_never(void); /* no call comes to the slow path any more */
void la_never_of(uint64_t region); /* the same of one of several regions; 0: the hotspot */
#define LA_EXIT_NUMBERS 8u /* the exits of a region are numbered from that many times its number on */
uint64_t la_exit_stub(uint64_t number); /* where the stub of an exit goes on */
void la_order_start(void);
void la_order_note(uint64_t region);
void la_sample_start(void);
void la_sample_maps(void);
void la_blocks_start(void);
void la_blocks_stop(void);
void la_blocks_go_on(void);
struct la_block {
    uint64_t address, bytes;
    uint64_t order : 40, stack : 24; /* stack: 0, or which of la_stacks */
    uint64_t site;
};
extern struct la_block *la_blocks; /* hash table; address 0: free slot */
extern uint64_t la_blocks_slots;

/* aside.c: what the loader allocates while a mock-up is loaded */
extern int la_aside; /* allocations go there now */
void *la_aside_allocate(size_t alignment, size_t n);
int la_is_aside(const void *p);
size_t la_aside_bytes(const void *p);

/* break.c: the end of the program's heap */
void la_break_park(void);
void la_break_back(void);
void la_break_readable(void);

/* stacks.c: who called the function that allocated a block */
#define LA_FRAMES 16
#define LA_LARGE (64ull << 10) /* bytes of a block from which on that is asked of each */
struct la_stack {
    uint64_t pc[LA_FRAMES]; /* return addresses, the allocation's first; 0: no more */
};
extern struct la_stack *la_stacks; /* from number 1 on; NULL: none */
extern uint64_t la_stacks_count;
void la_stacks_start(void);
uint64_t la_stacks_bytes(void);
uint64_t la_stack_of(uint64_t site);
uint64_t la_small_stack_of(uint64_t site);

const struct la_block *la_block_at(uint64_t address); /* NULL: no block starts there */

/* live.c: how the program goes on after the entry of a region, as la_on_event says; the end of a timed original */
int la_live_event(struct la_frame *frame, uint64_t region);
uint64_t la_live_return(uint64_t slot, uint64_t tsc); /* where it returns to */
void la_live_left(uint64_t region, uint64_t tsc);

/* park.c */
void la_park(struct la_frame *frame);
extern struct la_registers la_parked;
extern uint8_t la_parked_xsave[], la_after_xsave[];
extern uint64_t la_xsave_mask, la_parked_signals, la_parked_thread;
void la_save_vectors(uint8_t *area);
void la_load_vectors(const uint8_t *area);
void la_unpack_vectors(const uint8_t *xsave, struct la_registers *registers);
/* Into the area what differs between the registers. */
void la_pack_vectors(uint8_t *xsave, const struct la_registers *before, const struct la_registers *after);
extern uint8_t *la_stack;
#define LA_STACK_BYTES (8ull << 20)

/* commands.c */
enum {
    LA_CMD_PING = 1, LA_CMD_REGISTERS, LA_CMD_BLOCKS, LA_CMD_FORK, LA_CMD_TRACE, LA_CMD_LOAD, LA_CMD_RUN,
    LA_CMD_PREPARE, LA_CMD_BLOCK, LA_CMD_MOVE, LA_CMD_REAP, LA_CMD_INFO, LA_CMD_CONVERT, LA_CMD_TEAM, LA_CMD_TRACE_TEAM,
    LA_CMD_BATCH, LA_CMD_THREADS, LA_CMD_MEMBERS, LA_CMD_MAP, LA_CMD_SETTLE, LA_CMD_PUT, LA_CMD_PUT_NS
};
struct la_command {
    uint64_t magic, sequence, verb, timeout_ns, words, path_bytes;
    uint64_t word[]; /* then the path with its final 0 */
};
static inline const char *la_command_path(const struct la_command *c) { return (const char *)(c->word + c->words); }
struct la_reply {
    int64_t status; /* 0, or -1 with a text in data */
    uint64_t bytes;
    const void *data;
};
void la_loop(void) __attribute__((noreturn));
struct la_reply la_fail(const char *text);
struct la_reply la_answer(const void *data, uint64_t bytes);
void la_own_image(uint64_t *start, uint64_t *end);
char *la_read_file(const char *path, uint64_t *bytes); /* mmap'ed (LA_READ_ROOM(bytes)), 0-terminated; NULL */
void la_free_file(char *text, uint64_t bytes);

struct la_reply la_cmd_batch(const struct la_command *c);

/* variants.c */
struct la_variant {
    struct la_context *context;
    const struct la_buffer_spec *spec;
    void (*copy_in)(struct la_context *);
    void (*run)(struct la_context *);
    const struct la_code *code; /* machine code that is run instead, or NULL; it leaves its results where the original does */
    void (*settle)(const struct la_context *, uint8_t *code);
    void (*copy_out)(struct la_context *);
    void (*enter)(const struct la_context *, int64_t *); /* with run_entered; NULL: its calls bring nothing along */
    void (*run_entered)(struct la_context *);
    uint64_t codes; /* of which pointers: see abi.h */
    uint64_t entered_count;
    int64_t *entered; /* for each call of the batch, or the one call */
    int filled;
    uint64_t lines;       /* changed lines of one run */
    uint64_t *line_at;    /* their addresses, and in the highest byte which words */
    uint64_t *word;       /* what these words held before */
    uint64_t *batch_word; /* the first word of each batch of lines */
    int flushed;          /* whether these copies are, as soon as they are read */
    uint64_t spans;       /* the lines lie in so many pieces of memory */
    uint64_t *span_end;   /* number of lines up to the end of each */
    uint64_t ranges;      /* to flush for a cold call: start, end */
    uint64_t *range;
    uint8_t *(*place)(const struct la_context *, int64_t); /* la_place of the mock-up, or NULL */
    int64_t (*value)(const struct la_context *, int64_t, int64_t); /* la_value of the mock-up, or NULL */
    struct la_puts puts;  /* what is put back between its calls, where it has it; and what of that the old layout had */
    const struct la_put *moved;
    uint64_t moves;
};
#define LA_MAX_VARIANTS 256 /* each candidate in three variants, each at four places */
extern struct la_variant la_variants[LA_MAX_VARIANTS];
struct la_variant *la_variant(uint64_t number); /* NULL: no such variant */
struct la_reply la_cmd_load(const struct la_command *c);
struct la_reply la_cmd_run(const struct la_command *c);
struct la_reply la_cmd_trace(const struct la_command *c);
void la_records_in_child(void);
/* Allocate and copy in, once; an error text or NULL. poison: what is not copied in holds no likely value before. */
const char *la_fill_buffers(struct la_variant *v, int poison);
void la_call(struct la_variant *v);
void la_call_nothing(const struct la_variant *v); /* a batch, with a function that does nothing in its place */
void la_rewind_batch(const struct la_variant *v);
const char *la_enter_anew(void); /* what the calls of mock-ups bring along, after other calls were set; an error text or NULL */
void la_replay_of(uint64_t target); /* what la_replay_batch needs to know */
void la_replay_at(uint64_t target, struct la_registers *in);
uint64_t *la_map_records(const char *path, uint64_t capacity); /* a file on tmpfs; NULL */
int la_map_image(uint64_t at, uint64_t bytes, const char *name); /* a file of the run folder; -1 */
int la_map_code(uint64_t at, uint64_t bytes, const void *image); /* -1: its place is taken */

/* team.c: the hotspot is the body of a parallel region, the parked call that of the function that starts the region */
#define LA_MAX_TEAM 256u
#define LA_ARGUMENTS 6 /* of a function, in registers: rdi rsi rdx rcx r8 r9 */
#define LA_MEMBER_WORDS (6 + LA_ARGUMENTS)
int la_is_team(void);
void la_team_call(struct la_variant *v);
const char *la_team_work(void (*work)(uint64_t number, uint64_t count)); /* on as many threads; an error text or NULL */
const char *la_team_check(struct la_variant *v); /* the next call is that of a check build; an error text or NULL */
void la_team_checked(void);
struct la_reply la_cmd_team(const struct la_command *c);
struct la_reply la_cmd_trace_team(const struct la_command *c);
struct la_reply la_cmd_threads(const struct la_command *c);
struct la_reply la_cmd_members(const struct la_command *c);
void la_team_share(void); /* a member's part of the work of la_team_work */

/* libomp.c: what is different in clang's runtime */
const char *la_libomp_settle(void); /* before all that follows; an error text or NULL */
uint64_t la_libomp_asked(void);     /* the number of threads that regions ask for from here on; 0: the runtime's own */
void la_libomp_want(uint64_t threads);
void la_libomp_ask(void);    /* for that number, before the parked call is made again */
void la_libomp_region(void); /* la_team_share by all threads */
void la_libomp_forget(void); /* the process will not end by itself */

/* lines.c */
const char *la_note_lines(struct la_variant *v, const uint64_t *written, uint64_t n); /* n pairs; an error text or NULL */
const char *la_share_lines(struct la_variant *v); /* those of the original, which is prepared; an error text or NULL */
void la_restore_lines(const struct la_variant *v);
void la_flush(uint64_t start, uint64_t end);

/* canary.c */
uint64_t la_canary(void);
uint64_t la_memory_canary(void);
void la_wait_calm(uint64_t limit, uint64_t memory_limit, uint64_t *patience);

/* forget.c */
void la_forget(void);

/* timing.c */
struct la_reply la_cmd_prepare(const struct la_command *c);
struct la_reply la_cmd_block(const struct la_command *c);
struct la_reply la_cmd_convert(const struct la_command *c);
#endif
