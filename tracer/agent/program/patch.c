/* Putting a counting jump at the hotspot's entry, and taking it away again.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <signal.h>
#include <ucontext.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

uint64_t la_entry; /* run-time address, 0: not patched */
uint64_t la_near;  /* stub page, followed by the shared status pages */
uint64_t la_near_bytes;
uint64_t la_resume[1 + LA_MAX_FURTHER] __attribute__((visibility("hidden")));

static uint64_t la_status_bytes(void) { return la_up(sizeof(struct la_status), LA_PAGE); }
uint64_t la_shared_bytes(void) { return la_status_bytes() + la_calls_bytes(); }

/* The page of a region's stubs: those of further regions stand behind what is shared. */
static uint64_t stub_page(uint64_t region) { return la_near + (region ? region * LA_PAGE + la_shared_bytes() : 0); }

/* A free place within reach of a rel32. Downwards first: the heap grows upwards right behind an executable. */
static uint64_t find_near(uint64_t entry, uint64_t bytes)
{
    const uint64_t step = 1ull << 20;
    for (int sign = -1; sign <= 1; sign += 2)
        for (uint64_t k = 1; k < 1000; k++) {
            uint64_t distance = k * step + (sign > 0 ? 64 * step : 0);
            uint64_t at = la_down(entry, LA_PAGE);
            if (sign < 0 && at < distance + 65536)
                break;
            at = sign < 0 ? at - distance : at + distance;
            void *p = la_mmap((void *)at, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1);
            if ((uint64_t)p == at)
                return at;
            if (p) /* an old kernel took the address as a hint */
                la_munmap(p, bytes);
        }
    return 0;
}

/* Numbers within code lie anywhere. */
typedef int32_t la_any32 __attribute__((aligned(1), may_alias));
typedef uint64_t la_any64 __attribute__((aligned(1), may_alias));

static uint8_t *put_rel(uint8_t *p, uint64_t target)
{
    int64_t distance = (int64_t)(target - (uint64_t)(p + 4));
    *(la_any32 *)p = (int32_t)distance;
    return p + 4;
}
static uint8_t *put(uint8_t *p, const char *bytes, size_t n)
{
    la_copy(p, bytes, n);
    return p + n;
}

/* What the displaced instructions did, and on behind them. */
static uint8_t *put_displaced(uint8_t *p, const uint8_t *blob, uint64_t bytes, const struct la_fix *fix, uint64_t fixes,
                              uint64_t load_base, uint64_t on)
{
    uint8_t *start = p;
    p = put(p, (const char *)blob, bytes);
    for (uint64_t i = 0; i < fixes; i++) {
        int64_t distance = (int64_t)(load_base + fix[i].target - (uint64_t)(start + fix[i].end));
        *(la_any32 *)(start + fix[i].at) = (int32_t)distance;
    }
    p = put(p, "\xe9", 1);
    return put_rel(p, on);
}

static uint8_t *put_far(uint8_t *p, void (*target)(void))
{
    p = put(p, "\xff\x25\x00\x00\x00\x00", 6); /* jmp [rip] */
    *(la_any64 *)p = (uint64_t)target;
    return p + 8;
}

/* At a loop's head, where no flags are awaited: counts, then goes on behind what the jump there displaced. At zero it goes to
 * what comes after these, whose place is returned. */
static uint8_t *put_counting(struct la_status *near_status, uint64_t load_base, const char *jump, uint64_t *displaced)
{
    uint8_t *p = (uint8_t *)la_near;
    p = put(p, "\x48\xff\x0d", 3); /* dec qword [counter] */
    p = put_rel(p, (uint64_t)&near_status->counter);
    p = put(p, jump, 2);
    uint8_t *zero = p;
    p += 4;
    *displaced = (uint64_t)p;
    const uint64_t on = load_base + la_config.entry + la_config.patch_bytes;
    p = put_displaced(p, la_config.blob, la_config.blob_bytes, la_config.fix, la_config.fixes, load_base, on);
    put_rel(zero, (uint64_t)p);
    return p;
}

static void write_counting(struct la_status *near_status, uint64_t load_base)
{
    uint64_t displaced;
    uint8_t *p = put_counting(near_status, load_base, "\x0f\x8e" /* jle */, &displaced);
    p = put(p, "\x48\x8d\x64\x24\x80\x9c", 6); /* lea rsp, [rsp-128]; pushfq */
    p = put_far(p, la_slow);
    la_resume[0] = (uint64_t)p;
    p = put(p, "\x9d\x48\x8d\xa4\x24\x80\x00\x00\x00\xe9", 10); /* popfq; lea rsp, [rsp+128]; jmp */
    put_rel(p, displaced);
}

static void write_stub(struct la_status *near_status, uint64_t load_base)
{
    uint8_t *p = (uint8_t *)la_near;
    if (la_config.chunk) {
        write_counting(near_status, load_base);
        return;
    }
    p = put(p, "\x48\x8d\x64\x24\x80", 5); /* lea rsp, [rsp-128]: skip the red zone */
    p = put(p, "\x9c", 1);                 /* pushfq */
    uint8_t *other = NULL;
    if (la_config.outlined) {
        /* cmp rdx or rdi, [outlined] */
        p = put(p, la_config.body_register == LA_RDX ? "\x48\x3b\x15" : "\x48\x3b\x3d", 3);
        p = put_rel(p, (uint64_t)&near_status->outlined);
        p = put(p, "\x0f\x85", 2); /* jne: another region */
        other = p;
        p += 4;
    }
    p = put(p, "\xf0\x48\xff\x0d", 4);     /* lock dec qword [counter] */
    p = put_rel(p, (uint64_t)&near_status->counter);
    p = put(p, "\x0f\x8e", 2); /* jle slow */
    uint8_t *slow = p;
    p += 4;
    la_resume[0] = (uint64_t)p;
    if (other)
        put_rel(other, la_resume[0]);
    p = put(p, "\x9d", 1);                                 /* popfq */
    p = put(p, "\x48\x8d\xa4\x24\x80\x00\x00\x00", 8);     /* lea rsp, [rsp+128] */
    p = put_displaced(p, la_config.blob, la_config.blob_bytes, la_config.fix, la_config.fixes, load_base,
                      la_entry + la_config.patch_bytes);
    put_rel(slow, (uint64_t)p);
    put_far(p, la_slow);
}

/* The same for another region of a trial. */
static void write_further(uint64_t region, struct la_entered *near_entered, uint64_t load_base)
{
    const struct la_further *f = &la_further[region - 1];
    uint8_t *p = (uint8_t *)stub_page(region);
    p = put(p, "\x48\x8d\x64\x24\x80\x9c\xf0\x48\xff\x0d", 10); /* lea rsp, [rsp-128]; pushfq; lock dec qword [counter] */
    p = put_rel(p, (uint64_t)&near_entered->counter);
    p = put(p, "\x0f\x8e", 2); /* jle slow */
    uint8_t *slow = p;
    p += 4;
    la_resume[region] = (uint64_t)p;
    p = put(p, "\x9d\x48\x8d\xa4\x24\x80\x00\x00\x00", 9); /* popfq; lea rsp, [rsp+128] */
    p = put_displaced(p, f->blob, f->blob_bytes, f->fix, f->fixes, load_base, load_base + f->entry + f->patch_bytes);
    put_rel(slow, (uint64_t)p);
    put_far(p, la_slow_further[region - 1]);
}

/* Room for the stubs of exits in the page of the entry's stub. */
static uint8_t *exit_stub(uint64_t number)
{
    return (uint8_t *)(stub_page(number / LA_EXIT_NUMBERS) + 1024 + 512 * (number % LA_EXIT_NUMBERS));
}
static uint64_t exit_resume[LA_EXIT_NUMBERS * (1 + LA_MAX_FURTHER)];
uint64_t la_exit_stub(uint64_t number) { return exit_resume[number]; }

static int write_code(uint64_t at, const uint8_t *bytes, uint64_t n);

/* Tells la_left the exit's number, then does what its first instructions did. */
static void write_exit(uint64_t number, const struct la_exit *e, uint64_t load_base)
{
    uint8_t *p = exit_stub(number);
    p = put(p, "\x48\x8d\x64\x24\x80", 5); /* lea rsp, [rsp-128] */
    p = put(p, "\x9c\x6a", 2);             /* pushfq; push number */
    *p++ = (uint8_t)number;
    p = put_far(p, la_left);
    exit_resume[number] = (uint64_t)p;
    p = put(p, "\x9d", 1);                             /* popfq */
    p = put(p, "\x48\x8d\xa4\x24\x80\x00\x00\x00", 8); /* lea rsp, [rsp+128] */
    put_displaced(p, e->blob, e->blob_bytes, e->fix, e->fixes, load_base, load_base + e->address + e->patch_bytes);
}

static int lead_to(uint64_t from, uint64_t stub)
{
    uint8_t jump[5] = {0xe9};
    *(la_any32 *)(jump + 1) = (int32_t)(stub - (from + 5));
    return write_code(from, jump, 5);
}

static int lead_exit(uint64_t number, const struct la_exit *e, uint64_t load_base)
{
    return lead_to(load_base + e->address, (uint64_t)exit_stub(number));
}

static void put_capture(uint8_t *p, struct la_status *status, uint64_t number)
{
    p = put(p, "\xc7\x05", 2); /* mov dword [rip + left_by], number */
    *(la_any32 *)p = (int32_t)((int64_t)((uint64_t)&status->left_by - (uint64_t)(p + 8)));
    *(la_any32 *)(p + 4) = (int32_t)number;
    put_far(p + 8, la_capture);
}

static uint64_t chunk_entered; /* where the parked chunk is entered: its head is passed already */

/* The parked loop is replayed in place: what leaves it comes to la_capture, with its number in the status. So does the last
 * passage of the head of a chunk. */
void la_catch_exits(void)
{
    struct la_status *status = (struct la_status *)(la_near + LA_PAGE);
    if (!la_config.exits)
        return;
    la_mprotect(la_near, LA_PAGE, PROT_READ | PROT_WRITE);
    for (uint64_t i = 0; i < la_config.exits; i++)
        put_capture(exit_stub(i), status, i);
    if (la_config.chunk)
        put_capture(put_counting(status, la_status->load_base, "\x0f\x84" /* jz */, &chunk_entered), status, la_config.exits);
    la_mprotect(la_near, LA_PAGE, PROT_READ | PROT_EXEC);
    int failed = la_config.chunk ? lead_to(la_status->entry, la_near) : 0;
    for (uint64_t i = 0; i < la_config.exits; i++)
        failed |= lead_exit(i, &la_config.exit[i], la_status->load_base);
    if (failed)
        la_error("the code after the loop cannot be made writable");
}

uint64_t la_exit_taken(void)
{
    const struct la_status *status = (const struct la_status *)(la_near + LA_PAGE);
    const uint32_t number = (uint32_t)status->left_by;
    return number < la_config.exits ? la_status->load_base + la_config.exit[number].address : la_status->entry;
}

/* A copy of the code counts by itself, and goes to the head when its chunk is done. */
uint64_t la_begin_chunk(uint64_t target)
{
    struct la_status *status = (struct la_status *)(la_near + LA_PAGE);
    const int original = target == la_status->entry;
    if (!la_config.chunk)
        return target;
    status->counter = original ? (int64_t)la_config.chunk : 1;
    return original ? chunk_entered : target;
}

static void on_int3(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    (void)info;
    if (la_entry && (uint64_t)u->uc_mcontext.gregs[REG_RIP] == la_entry + 1) {
        u->uc_mcontext.gregs[REG_RIP] = (long long)la_near; /* the stub goes on in ordinary context */
        return;
    }
    signal(number, SIG_DFL); /* not ours: what would have happened without us */
    raise(number);
}

/* Threads may be running here: one aligned 8-byte store where the patch allows it. */
static int write_code(uint64_t at, const uint8_t *bytes, uint64_t n)
{
    uint64_t first = la_down(at, LA_PAGE), last = la_up(at + n, LA_PAGE);
    if (la_mprotect(first, last - first, PROT_READ | PROT_WRITE | PROT_EXEC))
        return -1;
    if (la_down(at, 8) == la_down(at + n - 1, 8)) {
        uint64_t word = *(uint64_t *)la_down(at, 8);
        la_copy((uint8_t *)&word + (at & 7), bytes, n);
        *(volatile uint64_t *)la_down(at, 8) = word;
    } else {
        la_copy((void *)at, bytes, n);
    }
    la_mprotect(first, last - first, PROT_READ | PROT_EXEC);
    return 0;
}

/* The table of recorded calls, shared with the controller. */
static int map_calls(void)
{
    const uint64_t bytes = la_calls_bytes();
    char path[4096];
    if (!bytes)
        return 0;
    la_join(path, la_folder, "calls", "");
    int fd = la_open(path, O_RDWR, 0);
    void *p = fd < 0 ? NULL : la_mmap((void *)(la_near + la_near_bytes - bytes), bytes, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_FIXED, fd);
    if (fd >= 0)
        la_close(fd);
    if (!p)
        la_error("cannot map the table of calls");
    return p ? 0 : -1;
}

static int is_code(uint64_t at, const uint8_t *original, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (((const uint8_t *)at)[i] != original[i])
            return 0;
    return 1;
}

static const char *make_room(uint64_t entry)
{
    la_near_bytes = LA_PAGE + la_shared_bytes() + la_further_count * LA_PAGE;
    la_near = find_near(entry, la_near_bytes);
    if (!la_near)
        return "no free memory near the hotspot's entry";
    char path[4096];
    la_join(path, la_folder, "status", "");
    int fd = la_open(path, O_RDWR, 0);
    if (fd < 0 || !la_mmap((void *)(la_near + LA_PAGE), la_status_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd))
        return "cannot map the status file";
    la_close(fd);
    return NULL;
}

/* The entries of other regions and their exits. */
static int patch_further(struct la_status *near_status, uint64_t load_base)
{
    int failed = 0;
    for (uint64_t region = 1; region <= la_further_count; region++) {
        const struct la_further *f = &la_further[region - 1];
        la_mprotect(stub_page(region), LA_PAGE, PROT_READ | PROT_WRITE);
        write_further(region, &near_status->further[region - 1], load_base);
        for (uint64_t i = 0; i < f->exits; i++)
            write_exit(region * LA_EXIT_NUMBERS + i, &f->exit[i], load_base);
        la_mprotect(stub_page(region), LA_PAGE, PROT_READ | PROT_EXEC);
        la_status->further[region - 1].entry = load_base + f->entry;
        failed |= lead_to(load_base + f->entry, stub_page(region));
        for (uint64_t i = 0; i < f->exits; i++)
            failed |= lead_exit(region * LA_EXIT_NUMBERS + i, &f->exit[i], load_base);
    }
    return failed;
}

int la_patch(uint64_t load_base)
{
    uint64_t entry = load_base + la_config.entry;
    int same = is_code(entry, la_config.original, la_config.patch_bytes);
    for (uint64_t i = 0; i < la_further_count; i++)
        same &= is_code(load_base + la_further[i].entry, la_further[i].original, la_further[i].patch_bytes);
    if (!same) {
        la_error("the code in memory differs from the file's at the hotspot's entry");
        return -1;
    }
    if (!la_near) { /* a module that was closed and opened again keeps the old place if it is near */
        const char *failed = make_room(entry);
        if (failed) {
            la_error(failed);
            return -1;
        }
        if (map_calls())
            return -1;
    }
    la_entry = entry;
    la_mprotect(la_near, LA_PAGE, PROT_READ | PROT_WRITE);
    write_stub((struct la_status *)(la_near + LA_PAGE), load_base);
    const int watching =
        la_config.mode == LA_MODE_PROBE || la_config.mode == LA_MODE_LIVE || la_config.mode == LA_MODE_ORDER;
    const uint64_t watched = watching ? la_config.exits : 0;
    for (uint64_t i = 0; i < watched; i++)
        write_exit(i, &la_config.exit[i], load_base);
    la_mprotect(la_near, LA_PAGE, PROT_READ | PROT_EXEC);
    if (!la_config.outlined)
        la_status->load_base = load_base;
    la_status->entry = entry;
    uint8_t trap = 0xcc;
    if (la_config.int3) {
        struct sigaction action = {.sa_sigaction = on_int3, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
        sigaction(SIGTRAP, &action, NULL);
    }
    int failed = la_config.int3 ? write_code(entry, &trap, 1) : lead_to(entry, la_near);
    for (uint64_t i = 0; i < watched; i++)
        failed |= lead_exit(i, &la_config.exit[i], load_base);
    failed |= patch_further((struct la_status *)(la_near + LA_PAGE), load_base);
    if (failed) {
        la_error("the hotspot's code cannot be made writable");
        return -1;
    }
    la_status->state = LA_PATCHED;
    return 0;
}

void la_unpatch(void)
{
    if (!la_entry)
        return;
    write_code(la_entry, la_config.original, la_config.int3 ? 1 : 5);
    if (la_config.int3)
        signal(SIGTRAP, SIG_DFL);
    la_entry = 0;
}
