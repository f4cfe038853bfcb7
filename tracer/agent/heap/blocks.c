/* The table of live heap blocks with their allocation sites. Neighbouring mappings merge and the traced hull of an
 * object is not the object, so blocks have to be seen when they are allocated.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

struct la_block *la_blocks;
uint64_t la_blocks_slots;
static uint64_t used, order;
static volatile int recording, lock;
/* operator new runs inside libstdc++: the site wanted is its caller. */
static __thread uint64_t pending_site __attribute__((tls_model("initial-exec")));

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* The allocator that the program would have without us: the C library's, or one that it is linked with or preloads, whose
 * other functions (malloc_usable_size, operator delete) know their own blocks only. */
static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void (*free)(void *);
} real = {__libc_malloc, __libc_calloc, __libc_realloc, __libc_memalign, __libc_free};
static int looked;

static __attribute__((noinline)) void look(void)
{
    looked = 1; /* first: should the loader allocate meanwhile, it gets the C library's, as it does without us */
    static const char *const names[] = {"malloc", "calloc", "realloc", "memalign", "free"};
    uintptr_t next[5];
    for (int k = 0; k < 5; k++)
        if (!(next[k] = (uintptr_t)dlsym(RTLD_NEXT, names[k])))
            return;
    real.malloc = (void *(*)(size_t))next[0];
    real.calloc = (void *(*)(size_t, size_t))next[1];
    real.realloc = (void *(*)(void *, size_t))next[2];
    real.memalign = (void *(*)(size_t, size_t))next[3];
    real.free = (void (*)(void *))next[4];
}

static inline void ready(void)
{
    if (__builtin_expect(!looked, 0))
        look();
}

static void take(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        la_sys(SYS_sched_yield, 0, 0, 0);
}
static void give(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

static uint64_t place(uint64_t address) { return (address >> 4) * 0x9e3779b97f4a7c15ull >> 20 & (la_blocks_slots - 1); }

static void insert(struct la_block block)
{
    uint64_t i = place(block.address);
    while (la_blocks[i].address && la_blocks[i].address != block.address)
        i = (i + 1) & (la_blocks_slots - 1);
    used += !la_blocks[i].address;
    la_blocks[i] = block;
}

static int grow(void)
{
    struct la_block *old = la_blocks;
    uint64_t slots = la_blocks_slots;
    struct la_block *fresh = la_memory(2 * slots * sizeof *fresh);
    if (!fresh)
        return -1;
    la_blocks = fresh;
    la_blocks_slots = 2 * slots;
    used = 0;
    for (uint64_t i = 0; i < slots; i++)
        if (old[i].address)
            insert(old[i]);
    la_munmap(old, slots * sizeof *old);
    return 0;
}

static inline void add(void *p, uint64_t bytes, uint64_t stack, uint64_t site)
{
    take();
    if (recording && (used * 5 < la_blocks_slots * 3 || !grow()))
        insert((struct la_block){(uint64_t)p, bytes, order++, stack, site});
    give();
}

static __attribute__((noinline)) void add_large(void *p, uint64_t bytes, uint64_t site)
{
    add(p, bytes, la_stack_of(site), site);
}

/* Processes that the program forked must not wait for a lock that another thread held at the fork. */
static void record(void *p, uint64_t bytes, uint64_t site)
{
    if (!recording || !p || !la_alive())
        return;
    if (pending_site) {
        site = pending_site;
        pending_site = 0;
    }
    if (__builtin_expect(bytes >= LA_LARGE, 0))
        add_large(p, bytes, site);
    else
        add(p, bytes, la_small_stack_of(site), site);
}

static uint64_t forget(void *p)
{
    if (!recording || !p || !la_alive())
        return 0;
    take();
    uint64_t mask = la_blocks_slots - 1, i = place((uint64_t)p);
    while (la_blocks[i].address && la_blocks[i].address != (uint64_t)p)
        i = (i + 1) & mask;
    uint64_t bytes = la_blocks[i].bytes;
    if (!la_blocks[i].address || !recording) {
        give();
        return 0;
    }
    for (uint64_t j = (i + 1) & mask; la_blocks[j].address; j = (j + 1) & mask) { /* no tombstones: shift back */
        uint64_t home = place(la_blocks[j].address);
        if (((j - home) & mask) >= ((j - i) & mask)) {
            la_blocks[i] = la_blocks[j];
            i = j;
        }
    }
    la_blocks[i].address = 0;
    used--;
    give();
    return bytes;
}

const struct la_block *la_block_at(uint64_t address)
{
    for (uint64_t i = place(address); la_blocks && la_blocks[i].address; i = (i + 1) & (la_blocks_slots - 1))
        if (la_blocks[i].address == address)
            return &la_blocks[i];
    return NULL;
}

void la_blocks_start(void)
{
    la_blocks_slots = 1u << 16;
    la_blocks = la_memory(la_blocks_slots * sizeof *la_blocks);
    recording = la_blocks != NULL;
}
void la_blocks_stop(void) { recording = 0; }
void la_blocks_go_on(void) { recording = la_blocks != NULL; }

#define SITE ((uint64_t)__builtin_return_address(0))

LA_EXPORT void *malloc(size_t n)
{
    if (__builtin_expect(la_aside, 0))
        return la_aside_allocate(0, n);
    ready();
    void *p = real.malloc(n);
    record(p, n, SITE);
    return p;
}
LA_EXPORT void *calloc(size_t n, size_t m)
{
    size_t total;
    if (__builtin_expect(la_aside, 0))
        return __builtin_mul_overflow(n, m, &total) ? NULL : la_aside_allocate(0, total);
    ready();
    void *p = real.calloc(n, m);
    record(p, n * m, SITE);
    return p;
}
/* What stands aside stays there; a block of the program that grows meanwhile does so where it is. */
static void *aside_again(void *old, size_t n)
{
    void *p = la_aside_allocate(0, n);
    if (!p || !old)
        return p;
    const size_t bytes = la_aside_bytes(old);
    la_copy(p, old, bytes < n ? bytes : n);
    return p;
}
LA_EXPORT void *realloc(void *old, size_t n)
{
    if (__builtin_expect(la_is_aside(old) || (la_aside && !old), 0))
        return aside_again(old, n);
    uint64_t bytes = forget(old);
    ready();
    void *p = real.realloc(old, n);
    if (p)
        record(p, n, SITE);
    else if (n && old)
        record(old, bytes, SITE);
    return p;
}
LA_EXPORT void free(void *p)
{
    if (__builtin_expect(la_is_aside(p), 0))
        return;
    forget(p);
    ready();
    real.free(p);
}
LA_EXPORT void *reallocarray(void *old, size_t n, size_t m)
{
    size_t total;
    if (__builtin_mul_overflow(n, m, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    if (__builtin_expect(la_is_aside(old) || (la_aside && !old), 0))
        return aside_again(old, total);
    uint64_t bytes = forget(old);
    ready();
    void *p = real.realloc(old, total);
    if (p)
        record(p, total, SITE);
    else if (total && old)
        record(old, bytes, SITE);
    return p;
}
LA_EXPORT void *memalign(size_t alignment, size_t n)
{
    if (__builtin_expect(la_aside, 0))
        return la_aside_allocate(alignment, n);
    ready();
    void *p = real.memalign(alignment, n);
    record(p, n, SITE);
    return p;
}
LA_EXPORT void *aligned_alloc(size_t alignment, size_t n)
{
    if (__builtin_expect(la_aside, 0))
        return la_aside_allocate(alignment, n);
    ready();
    void *p = real.memalign(alignment, n);
    record(p, n, SITE);
    return p;
}
LA_EXPORT int posix_memalign(void **out, size_t alignment, size_t n)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)))
        return EINVAL;
    int before = errno;
    ready();
    void *p = la_aside ? la_aside_allocate(alignment, n) : real.memalign(alignment, n);
    errno = before;
    if (!p)
        return ENOMEM;
    record(p, n, SITE);
    *out = p;
    return 0;
}
LA_EXPORT void *valloc(size_t n)
{
    ready();
    void *p = real.memalign(LA_PAGE, n);
    record(p, n, SITE);
    return p;
}

static void *map(void *where, size_t n, int prot, int flags, int fd, off_t offset, uint64_t site)
{
    long p = la_sys6(SYS_mmap, (long)where, (long)n, prot, flags, fd, offset);
    if (p < 0 && p > -4096) {
        errno = (int)-p;
        return MAP_FAILED;
    }
    if (prot & PROT_WRITE)
        record((void *)p, n, site);
    return (void *)p;
}
LA_EXPORT void *mmap(void *where, size_t n, int prot, int flags, int fd, off_t offset)
{
    return map(where, n, prot, flags, fd, offset, SITE);
}
LA_EXPORT void *mmap64(void *where, size_t n, int prot, int flags, int fd, off64_t offset)
{
    return map(where, n, prot, flags, fd, offset, SITE);
}
LA_EXPORT int munmap(void *p, size_t n)
{
    forget(p);
    long r = la_sys(SYS_munmap, p, n, 0);
    if (!r)
        return 0;
    errno = (int)-r;
    return -1;
}
LA_EXPORT void *mremap(void *old, size_t old_n, size_t n, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    void *where = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    uint64_t bytes = forget(old);
    long p = la_sys6(SYS_mremap, (long)old, (long)old_n, (long)n, flags, (long)where, 0);
    if (p < 0 && p > -4096) {
        record(bytes ? old : NULL, bytes, SITE);
        errno = (int)-p;
        return MAP_FAILED;
    }
    record((void *)p, n, SITE);
    return (void *)p;
}

/* Built with -fexceptions: std::bad_alloc passes through these frames. */
typedef void *(*operator_new)(size_t);
static void *forward_new(operator_new *next, const char *name, size_t n, uint64_t site)
{
    if (!*next)
        *next = (operator_new)(uintptr_t)dlsym(RTLD_NEXT, name);
    if (recording && !pending_site) /* new[] comes to new, and we stand between them */
        pending_site = site;
    if (*next) {
        void *p = (*next)(n);
        if (pending_site) /* an allocator's own, which does not call malloc */
            record(p, n, pending_site);
        return p;
    }
    void *p = malloc(n ? n : 1); /* libstdc++ came by dlopen with RTLD_LOCAL */
    if (!p)
        abort();
    return p;
}
LA_EXPORT void *_Znwm(size_t n);
LA_EXPORT void *_Znam(size_t n);
LA_EXPORT void *_Znwm(size_t n)
{
    static operator_new next;
    return forward_new(&next, "_Znwm", n, SITE);
}
LA_EXPORT void *_Znam(size_t n)
{
    static operator_new next;
    return forward_new(&next, "_Znam", n, SITE);
}

/* An allocator's own do not call free. What stands aside stays there. */
typedef void (*operator_delete)(void *, size_t); /* one without a size takes no notice of it */
static void forward_delete(operator_delete *next, const char *name, void *p, size_t n)
{
    if (__builtin_expect(la_is_aside(p), 0))
        return;
    if (!*next)
        *next = (operator_delete)(uintptr_t)dlsym(RTLD_NEXT, name);
    if (!*next) {
        free(p);
        return;
    }
    forget(p);
    (*next)(p, n);
}
#define DELETE(name, ...)                                                                                                 \
    LA_EXPORT void name(void *p __VA_ARGS__);                                                                             \
    LA_EXPORT void name(void *p __VA_ARGS__)                                                                              \
    {                                                                                                                     \
        static operator_delete next;                                                                                      \
        forward_delete(&next, #name, p, SIZE);                                                                            \
    }
#define SIZE 0
DELETE(_ZdlPv)
DELETE(_ZdaPv)
#undef SIZE
#define SIZE n
DELETE(_ZdlPvm, , size_t n)
DELETE(_ZdaPvm, , size_t n)
