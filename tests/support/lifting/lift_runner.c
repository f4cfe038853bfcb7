/* Runs functions of a shared library, the original machine code and the lifted C, on the same random state, and compares.
 *
 *   lift_runner LIBRARY [JOBS RESULTS]      prints where the library is loaded; the jobs are binary records (struct job)
 *
 * Each side runs in a child of its own, forked from the same process, under a filter that allows no system call but those
 * for memory. Memory that is not there is made up when it is first touched: its contents depend on the address and the seed
 * only, so both sides see the same. Compared are the returned registers, all made-up pages that were written, the library's
 * own writable data, and the stack above the entry. SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "abi.h"

#define PAGE 4096ul
#define MOST_PAGES 384
#define OWN_BYTES (1ul << 21)
#define STACK ((uint8_t *)0x500000000000ul)
#define STACK_BYTES (1ul << 20)
#define ENTRY_RSP (0x500000000000ul + STACK_BYTES / 2 - 8)
#define ABOVE 2048ul
#define LOWEST 0x10000ul
#define HIGHEST 0x7f0000000000ul
#define MOST_MARKS 48
#define CONSTANTS 24
#define SLOTS 32
#define MEMORIES 48
#define FIELDS 24
#define CHOICES 6
#define SHAPED 0x210000000000ul
#define ORIGIN 0x8000000ul

enum { RETURNED = 1, FAULTED, LONG, TOO_MUCH };
enum { AGREES = 0, DISCARDED, SAME_BUT_NAN, DIFFERS };

/* What the function is known to take (tests/support/lifting/state.py). */
enum { ANY, INTEGER, DOUBLE, SINGLE, POINTER, CODE };
struct kind { uint8_t what, memory; uint16_t count; int32_t shift, choices[CHOICES]; };
struct field { int32_t offset; uint32_t bytes; struct kind kind; };
struct memory { int32_t stride; uint32_t count; struct field fields[FIELDS]; };
struct state {
    struct kind gpr[16], vector[16], slot[SLOTS];
    uint32_t known, count;
    struct memory memories[MEMORIES];
};

struct job {
    uint64_t function;             /* run-time address */
    uint32_t seeds, first_seed;
    uint32_t enough, unused;       /* after so many that agree and reached a loop no more are tried; 0: all are */
    uint8_t rax[8], xmm0[16];      /* 1 where the byte is part of the result */
    uint32_t mark_count, constant_count;
    uint32_t constants[CONSTANTS]; /* numbers that the function compares with: drawn now and then */
    uint64_t marks[MOST_MARKS];    /* instructions of a loop that compute with floats */
    char mockup[256];
    struct state state;
};
struct result {
    uint32_t seed, verdict, original, lifted, signal, reached;
    uint64_t changed, where;       /* bytes that the original changed; the first differing address (1, 2: rax, xmm0) */
};
struct seen {
    uint32_t outcome, signal, pages, reached;
    struct la_registers out;
    uint64_t at[MOST_PAGES];
    uint8_t above[ABOVE];
    uint8_t page[MOST_PAGES][PAGE];
    uint8_t own[OWN_BYTES];
};

static struct seen *now, *sides[2];
static uint64_t seed;
static uint8_t saved_byte[MOST_MARKS];
static const struct job *current;
static uint8_t *own_start[16];
static size_t own_bytes[16];
static int own_count;
uint64_t la_saved_rsp, la_target;
struct la_registers *la_out;
void la_enter(const struct la_registers *in);
extern char la_back[];
__asm__(".text\nla_enter:\n"
        "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp, la_saved_rsp(%rip)\n"
#define LOAD(n) "movups 160+64*" #n "(%rdi), %xmm" #n "\n"
        LOAD(0) LOAD(1) LOAD(2) LOAD(3) LOAD(4) LOAD(5) LOAD(6) LOAD(7) LOAD(8) LOAD(9) LOAD(10) LOAD(11) LOAD(12) LOAD(13)
        LOAD(14) LOAD(15)
        "mov 0(%rdi), %rax\nmov 8(%rdi), %rcx\nmov 16(%rdi), %rdx\nmov 24(%rdi), %rbx\nmov 32(%rdi), %rsp\n"
        "mov 40(%rdi), %rbp\nmov 48(%rdi), %rsi\nmov 64(%rdi), %r8\nmov 72(%rdi), %r9\nmov 80(%rdi), %r10\n"
        "mov 88(%rdi), %r11\nmov 96(%rdi), %r12\nmov 104(%rdi), %r13\nmov 112(%rdi), %r14\nmov 120(%rdi), %r15\n"
        "mov 56(%rdi), %rdi\njmp *la_target(%rip)\n"
        "la_back:\nmov la_out(%rip), %rcx\nmov %rax, 0(%rcx)\nmov %rdx, 16(%rcx)\nmovups %xmm0, 160(%rcx)\n"
        "movups %xmm1, 224(%rcx)\nmov la_saved_rsp(%rip), %rsp\ncld\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n");

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ul;
    x = (x ^ x >> 27) * 0x94d049bb133111ebul;
    return x ^ x >> 31;
}

static uint64_t a_double(uint64_t r)
{
    double d = (double)(int64_t)(r >> 20 & 0xfff) / 1024 - (r & 1 ? 1.5 : 0.25);
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits;
}

static uint64_t two_floats(uint64_t r)
{
    float f[2] = {(float)(r >> 8 & 0xfff) / 1024 - 1, (float)(r >> 24 & 0xfff) / 2048 + 0.25f};
    uint64_t bits;
    memcpy(&bits, f, 8);
    return bits;
}

/* Sixteen regions of 256 MB, each of one kind. */
static uint64_t a_pointer(uint64_t r)
{
    return 0x200000000000ul + ((r >> 8 & 15) << 28) + ((r >> 16 & 31) << 16) + ((r >> 24 & 15) << 6) + 0x8000;
}

/* Whether this state is made of what the function is known to take: three in four are. */
static int shaped(void)
{
    return current->state.known && (seed & 3) != 3;
}

static const uint8_t letters[] = "NULTRCNULV";

static uint64_t an_int(uint64_t r)
{
    uint64_t draw = r >> 20, kind = r % 16;
    if (shaped() && (seed & 3) == 0 && kind > 1)
        return 1 + mix(seed) % 6; /* sizes, strides and leading dimensions that agree */
    if (kind < 3 && current->constant_count)
        return current->constants[draw % current->constant_count];
    return kind == 3 ? letters[draw % 10] : kind == 4 ? 0 : 1 + (draw & 7);
}

static uint64_t numbers(uint64_t r)
{
    return seed & 1 ? two_floats(r) : a_double(r);
}

extern char la_callback[];
__asm__(".text\nla_callback:\nmulsd la_half(%rip), %xmm0\nxor %eax, %eax\nret\n.p2align 3\nla_half: .double 0.5\n");

/* Whether one of the numbers that it is compared with is no size. */
static int a_code(const struct kind *kind)
{
    for (int k = 0; k < kind->count; k++)
        if (kind->choices[k] > 8)
            return 1;
    return 0;
}

static uint64_t draw(const struct kind *kind, uint32_t bytes, uint64_t r)
{
    switch (kind->what) {
    case INTEGER:
        if (kind->count && r % 8 < (a_code(kind) ? 7 : 2)) /* what it is compared with */
            return (uint64_t)(int64_t)kind->choices[(r >> 20) % kind->count];
        return bytes == 1 && r % 8 ? letters[(r >> 20) % 10] : an_int(r >> 3);
    case DOUBLE: return a_double(r);
    case SINGLE: return two_floats(r);
    case POINTER: return SHAPED + ((uint64_t)kind->memory << 32) + ((r >> 8 & 15) << 28) + ORIGIN + (uint64_t)kind->shift;
    case CODE: return (uint64_t)la_callback;
    default: return r % 3 == 0 ? a_pointer(r >> 3) : r % 3 == 1 ? an_int(r / 3) : a_double(r / 3);
    }
}

/* Eight bytes of a memory whose fields are known. */
static uint64_t shaped_word(uint64_t address, uint64_t r)
{
    const struct memory *m = &current->state.memories[(address - SHAPED) >> 32];
    int64_t offset = (int64_t)(address & 0xfffffff) - (int64_t)ORIGIN;
    if (m->count == 0) { /* nothing is known: all of one kind */
        static const struct kind kinds[] = {{.what = INTEGER}, {.what = DOUBLE}, {.what = SINGLE}, {.what = INTEGER}};
        uint64_t which = mix((address >> 28) + seed) & 3;
        return draw(&kinds[which], which == 3 ? 1 : 4, r);
    }
    uint64_t bits = draw(&(struct kind){.what = ANY}, 8, mix(r));
    for (uint32_t k = 0; k < m->count; k++) {
        const struct field *f = &m->fields[k];
        int64_t at = f->offset;
        if (m->stride && at <= offset - (int64_t)f->bytes)
            at += (offset - (int64_t)f->bytes - at) / m->stride * m->stride;
        if (m->stride && at > offset)
            at -= (at - offset + m->stride - 1) / m->stride * m->stride;
        do {
            uint64_t own = mix(mix(address + (uint64_t)(at - offset)) + seed * 0x632be59bd9b4e019ul + k);
            uint64_t value = f->kind.what == POINTER && own % 16 == 0 ? 0 : draw(&f->kind, f->bytes, own >> 4);
            for (int64_t b = 0; b < (int64_t)f->bytes; b++)
                if (at + b >= offset && at + b < offset + 8)
                    ((uint8_t *)&bits)[at + b - offset] = ((uint8_t *)&value)[b];
            at += m->stride;
        } while (m->stride && at < offset + 8);
    }
    return bits;
}

static uint64_t word(uint64_t address)
{
    uint64_t r = mix(mix(address ^ 0x9e3779b97f4a7c15ul) + seed * 0x632be59bd9b4e019ul);
    if (shaped() && address - SHAPED < (uint64_t)current->state.count << 32)
        return shaped_word(address, r);
    if (shaped() && address - ENTRY_RSP - 8 < 8 * SLOTS && current->state.slot[(address - ENTRY_RSP - 8) / 8].what)
        return draw(&current->state.slot[(address - ENTRY_RSP - 8) / 8], 4, r);
    switch (address >> 28 & 3) {
    case 0: return an_int(r) | (r >> 40 & 3 ? an_int(mix(r)) << 32 : 0);
    case 3: return r % 3 == 0 ? a_pointer(r >> 3) : r % 3 == 1 ? an_int(r / 3) : numbers(r);
    default: return numbers(r);
    }
}

static void fill(uint64_t start, size_t bytes)
{
    for (uint64_t at = start; at < start + bytes; at += 8) {
        uint64_t w = word(at);
        memcpy((void *)at, &w, 8);
    }
}

static void end(uint32_t outcome, int number)
{
    now->outcome = outcome;
    now->signal = (uint32_t)number;
    syscall(SYS_exit_group, 0);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    uint64_t page = (uint64_t)info->si_addr & ~(PAGE - 1);
    if (number != SIGSEGV || info->si_code != SEGV_MAPERR || page < LOWEST || page >= HIGHEST)
        end(FAULTED, number);
    if (now->pages == MOST_PAGES)
        end(TOO_MUCH, number);
    void *got = mmap((void *)page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (void *)page)
        end(FAULTED, number);
    now->at[now->pages++] = page;
    fill(page, PAGE);
}

static void on_mark(int number, siginfo_t *info, void *context)
{
    (void)info;
    ucontext_t *c = context;
    uint64_t at = (uint64_t)c->uc_mcontext.gregs[REG_RIP] - 1;
    for (uint32_t k = 0; k < current->mark_count; k++)
        if (current->marks[k] == at) {
            *(uint8_t *)at = saved_byte[k];
            c->uc_mcontext.gregs[REG_RIP] = (greg_t)at;
            now->reached++;
            return;
        }
    end(FAULTED, number);
}

static void on_time(int number)
{
    end(LONG, number);
}

static void confine(void)
{
    static const unsigned short allowed[] = {SYS_mmap, SYS_munmap, SYS_brk, SYS_mremap, SYS_madvise, SYS_exit, SYS_exit_group,
                                             SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_futex};
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter code[COUNT + 4];
    int n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int k = 0; k < COUNT; k++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[k], (unsigned char)(COUNT - k), 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(97);
}

static void registers(struct la_registers *in)
{
    memset(in, 0, sizeof *in);
    for (unsigned k = 0; k < 16; k++) {
        uint64_t r = mix(seed * 1315423911ul + k + 77);
        in->gpr[k] = r % 16 < (seed % 3 == 2 ? 6 : 11) ? a_pointer(r >> 4) : an_int(r >> 4);
        if (shaped() && current->state.gpr[k].what)
            in->gpr[k] = draw(&current->state.gpr[k], 4, r);
        for (unsigned lane = 0; lane < 2; lane++) {
            uint64_t bits = numbers(mix(r + 1000 + lane));
            if (shaped() && current->state.vector[k].what)
                bits = draw(&current->state.vector[k], 8, mix(r + 1000 + lane));
            memcpy(in->vector[k] + 8 * lane, &bits, 8);
        }
    }
    in->gpr[4] = ENTRY_RSP;
    in->mxcsr = 0x1f80;
    in->rip = la_target;
    syscall(SYS_arch_prctl, 0x1003 /* ARCH_GET_FS */, &in->fs_base);
}

static void mark(const struct job *job)
{
    for (uint32_t k = 0; k < job->mark_count; k++) {
        uint8_t *at = (uint8_t *)job->marks[k], *page = (uint8_t *)((uint64_t)at & ~(PAGE - 1));
        if (mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
            _exit(98);
        saved_byte[k] = *at;
        *at = 0xcc;
    }
}

static void collect(void)
{
    for (uint32_t k = 0; k < now->pages; k++)
        memcpy(now->page[k], (void *)now->at[k], PAGE);
    memcpy(now->above, (void *)ENTRY_RSP, ABOVE);
    size_t at = 0;
    for (int k = 0; k < own_count && at + own_bytes[k] <= OWN_BYTES; at += own_bytes[k++])
        memcpy(now->own + at, own_start[k], own_bytes[k]);
}

static void run(const struct job *job, void (*mockup)(struct la_context *), int side)
{
    static struct la_context context;
    static uint8_t other_stack[1 << 16];
    now = sides[side];
    now->outcome = now->signal = now->pages = now->reached = 0;
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&stack, NULL);
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    for (int k = 0; k < 4; k++)
        sigaction((int[]){SIGSEGV, SIGBUS, SIGILL, SIGFPE}[k], &fault, NULL);
    struct sigaction trap = {.sa_sigaction = on_mark, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGTRAP, &trap, NULL);
    struct sigaction time = {.sa_handler = on_time, .sa_flags = SA_ONSTACK};
    sigaction(SIGVTALRM, &time, NULL);
    struct rlimit space = {4ul << 30, 4ul << 30}, none = {0, 0};
    setrlimit(RLIMIT_AS, &space);
    setrlimit(RLIMIT_CORE, &none);
    la_target = job->function;
    registers(&context.in);
    fill((uint64_t)STACK + STACK_BYTES / 2, STACK_BYTES / 2);
    *(uint64_t *)ENTRY_RSP = (uint64_t)la_back;
    if (side == 0)
        mark(job);
    struct itimerval limit = {.it_value = side ? (struct timeval){4, 0} : (struct timeval){0, 40000}};
    setitimer(ITIMER_VIRTUAL, &limit, NULL);
    struct itimerval blocked = {.it_value = {side ? 60 : 5, 0}}; /* waits for something that nobody does: SIGALRM kills it */
    signal(SIGALRM, SIG_DFL);
    setitimer(ITIMER_REAL, &blocked, NULL);
    confine();
    if (side == 0) {
        la_out = &context.out;
        la_enter(&context.in);
    } else {
        context.abi = LA_ABI;
        mockup(&context);
    }
    now->out = context.out;
    collect();
    end(RETURNED, 0);
}

static int nan_both(const uint8_t *a, const uint8_t *b)
{
    double d[2];
    float f[2];
    memcpy(&d[0], a, 8);
    memcpy(&d[1], b, 8);
    if (d[0] != d[0] && d[1] != d[1])
        return 1;
    for (int k = 0; k < 8; k += 4) {
        memcpy(&f[0], a + k, 4);
        memcpy(&f[1], b + k, 4);
        if (memcmp(a + k, b + k, 4) && !(f[0] != f[0] && f[1] != f[1]))
            return 0;
    }
    return 1;
}

static void compare_bytes(struct result *r, const uint8_t *a, const uint8_t *b, size_t bytes, uint64_t where)
{
    for (size_t k = 0; k < bytes; k += 8) {
        if (!memcmp(a + k, b + k, 8) || r->verdict == DIFFERS)
            continue;
        r->verdict = nan_both(a + k, b + k) ? SAME_BUT_NAN : DIFFERS;
        r->where = where + k;
    }
}

static const uint8_t *page_of(const struct seen *side, uint64_t at, uint8_t *made_up)
{
    for (uint32_t k = 0; k < side->pages; k++)
        if (side->at[k] == at)
            return side->page[k];
    for (uint64_t k = 0; k < PAGE; k += 8) {
        uint64_t w = word(at + k);
        memcpy(made_up + k, &w, 8);
    }
    return made_up;
}

static void compare(const struct job *job, struct result *r)
{
    struct seen *a = sides[0], *b = sides[1];
    uint8_t fresh[PAGE], result[2][24] = {{0}};
    for (int k = 0; k < 24; k++)
        for (int side = 0; side < 2; side++)
            if (k < 8 ? job->rax[k] : job->xmm0[k - 8])
                result[side][k] = k < 8 ? ((uint8_t *)sides[side]->out.gpr)[k] : sides[side]->out.vector[0][k - 8];
    compare_bytes(r, result[0], result[1], 24, 1);
    for (int side = 0; side < 2; side++)
        for (uint32_t k = 0; k < sides[side]->pages; k++) {
            uint64_t at = sides[side]->at[k];
            if (at < (uint64_t)STACK && at >= (uint64_t)STACK - (1ul << 40))
                continue; /* the function's own frame, which a random size took far down */
            compare_bytes(r, page_of(a, at, fresh), page_of(b, at, fresh), PAGE, at);
            for (uint64_t i = 0; side == 0 && i < PAGE; i += 8) {
                uint64_t before = word(at + i);
                r->changed += memcmp(a->page[k] + i, &before, 8) ? 8 : 0;
            }
        }
    compare_bytes(r, a->above, b->above, ABOVE, ENTRY_RSP);
    size_t at = 0;
    for (int k = 0; k < own_count && at + own_bytes[k] <= OWN_BYTES; at += own_bytes[k++]) {
        compare_bytes(r, a->own + at, b->own + at, own_bytes[k], (uint64_t)own_start[k]);
        for (size_t i = 0; i < own_bytes[k]; i += 8)
            r->changed += memcmp(a->own + at + i, own_start[k] + i, 8) ? 8 : 0;
    }
}

static void one_seed(const struct job *job, void (*mockup)(struct la_context *), struct result *r)
{
    *r = (struct result){.seed = (uint32_t)seed, .verdict = DISCARDED};
    for (int side = 0; side < 2; side++) {
        pid_t child = fork();
        if (child == 0)
            run(job, mockup, side);
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) {
            sides[side]->outcome = FAULTED;
            sides[side]->signal = (uint32_t)WTERMSIG(status);
        }
        if (WIFEXITED(status) && WEXITSTATUS(status))
            exit(WEXITSTATUS(status));
        if (side == 0)
            r->reached = sides[0]->reached;
        if (side == 0 && sides[0]->outcome != RETURNED)
            break;
    }
    r->original = sides[0]->outcome;
    r->signal = sides[0]->signal;
    if (r->original != RETURNED)
        return;
    r->lifted = sides[1]->outcome;
    r->signal = sides[1]->signal;
    r->verdict = r->lifted == RETURNED ? AGREES : DIFFERS;
    if (r->verdict == AGREES)
        compare(job, r);
}

static int one_job(const struct job *job, FILE *out)
{
    fflush(out);
    current = job;
    long last = ftell(out) + (long)(job->seeds * sizeof(struct result));
    pid_t child = fork(); /* what the mock-up's loading changes stays in here */
    if (child == 0) {
        void *loaded = dlopen(job->mockup, RTLD_NOW);
        void (*mockup)(struct la_context *) = NULL;
        if (loaded)
            *(void **)&mockup = dlsym(loaded, "la_run");
        for (uint32_t k = 0, good = 0; k < job->seeds && (!job->enough || good < job->enough); k++) {
            struct result r = {.seed = job->first_seed + k, .verdict = DIFFERS};
            seed = job->first_seed + k;
            if (mockup)
                one_seed(job, mockup, &r);
            else if (k == 0)
                fprintf(stderr, "%s\n", dlerror());
            fwrite(&r, sizeof r, 1, out);
            good += r.reached && (r.verdict == AGREES || r.verdict == SAME_BUT_NAN);
        }
        for (struct result none = {0}; ftell(out) < last;)
            fwrite(&none, sizeof none, 1, out);
        fflush(out);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    fseek(out, 0, SEEK_END);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 96;
}

static int own_data(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    for (int k = 0; info->dlpi_addr == (ElfW(Addr))base && k < info->dlpi_phnum && own_count < 16; k++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[k];
        if (p->p_type == PT_LOAD && p->p_flags & PF_W) {
            own_start[own_count] = (uint8_t *)((info->dlpi_addr + p->p_vaddr) & ~7ul);
            own_bytes[own_count++] = p->p_memsz & ~7ul;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct job job;
    int code = 0;
    if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
        personality(ADDR_NO_RANDOMIZE);
        execv("/proc/self/exe", argv);
    }
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    struct link_map *map = NULL;
    if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map)) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "usage: lift_runner LIBRARY [JOBS RESULTS]");
        return 1;
    }
    printf("%#lx\n", (unsigned long)map->l_addr);
    fflush(stdout);
    if (argc < 4)
        return 0;
    dl_iterate_phdr(own_data, (void *)map->l_addr);
    if (mmap(STACK, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != STACK)
        return 2;
    for (int k = 0; k < 2; k++)
        sides[k] = mmap(NULL, sizeof **sides, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FILE *jobs = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
    while (!code && jobs && out && fread(&job, sizeof job, 1, jobs) == 1)
        code = one_job(&job, out);
    return code ? code : !jobs || !out || fclose(out) != 0;
}
