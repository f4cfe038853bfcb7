/* System calls and the few helpers that the agent needs, without errno, stdio or malloc: errno lives in the
 * program's TLS, and everything that the agent leaves behind is in the snapshot.
 * SPDX-License-Identifier: MIT */
#ifndef LAYOUT_ADVISE_SYS_H
#define LAYOUT_ADVISE_SYS_H
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#define LA_PAGE 4096ull
#define LA_LINE 64ull
#define LA_HUGE (2ull << 20)

static inline long la_sys6(long n, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#define la_sys(n, a, b, c) la_sys6((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)

static inline int la_open(const char *path, int flags, int mode)
{
    return (int)la_sys6(SYS_openat, AT_FDCWD, (long)path, flags | O_CLOEXEC, mode, 0, 0);
}
static inline void la_close(int fd) { la_sys(SYS_close, fd, 0, 0); }

/* NULL when it fails. */
static inline void *la_mmap(void *where, uint64_t size, int prot, int flags, int fd)
{
    long p = la_sys6(SYS_mmap, (long)where, (long)size, prot, flags, fd, 0);
    return p < 0 && p > -4096 ? NULL : (void *)p;
}
/* The agent's own memory lies apart, where the kernel does not go by itself: the program gets its memory where it would get it
 * without us, also what it asks for after the call at which it is parked. */
#define LA_APART 0x5a0000000000ull
#define LA_APART_END 0x5b0000000000ull
uint64_t la_apart(uint64_t size) __attribute__((visibility("hidden")));
static inline void *la_memory(uint64_t size)
{
    return la_mmap((void *)la_apart(size), size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}
static inline void la_munmap(void *p, uint64_t size) { la_sys(SYS_munmap, p, size, 0); }
static inline long la_mprotect(uint64_t p, uint64_t size, int prot) { return la_sys(SYS_mprotect, p, size, prot); }
static inline long la_madvise(uint64_t p, uint64_t size, int advice) { return la_sys(SYS_madvise, p, size, advice); }

static inline uint64_t la_up(uint64_t x, uint64_t a) { return (x + a - 1) & ~(a - 1); }
static inline uint64_t la_down(uint64_t x, uint64_t a) { return x & ~(a - 1); }

static inline size_t la_length(const char *s)
{
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}
static inline int la_starts(const char *s, const char *prefix)
{
    while (*prefix)
        if (*s++ != *prefix++)
            return 0;
    return 1;
}
/* rep movs/stos: no vector registers, since the probe runs while the program's are live. */
static inline void la_copy(void *to, const void *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}
static inline void la_fill(void *to, int byte, size_t n)
{
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
}
/* Of a line of /proc/self/maps: a number in hex, behind which `text` then stands; and the line after it. */
static inline uint64_t la_hex(const char **text)
{
    uint64_t x = 0;
    for (;; (*text)++) {
        char c = **text;
        if (c >= '0' && c <= '9')
            x = x * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            x = x * 16 + (uint64_t)(c - 'a' + 10);
        else
            return x;
    }
}
static inline const char *la_next_line(const char *p)
{
    while (*p && *p != '\n')
        p++;
    return *p ? p + 1 : p;
}
/* "folder/name" + suffix into out (4096 bytes). */
static inline void la_join(char *out, const char *folder, const char *name, const char *suffix)
{
    const char *part[3] = {folder, name, suffix};
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        for (const char *s = part[i]; *s && n < 4000; s++)
            out[n++] = *s;
        if (i == 0 && n < 4000)
            out[n++] = '/';
    }
    out[n] = 0;
}
static inline int64_t la_write_all(int fd, const void *data, uint64_t size)
{
    const char *p = data;
    while (size) {
        long n = la_sys(SYS_write, fd, p, size);
        if (n == -4)
            continue;
        if (n <= 0)
            return n ? n : -5;
        p += n;
        size -= (uint64_t)n;
    }
    return 0;
}
int la_kernels_clock(int which, struct timespec *t) __attribute__((visibility("hidden")));
static inline uint64_t la_clock(int which)
{
    struct timespec t;
    la_kernels_clock(which, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}
static inline uint64_t la_tsc(void)
{
    uint32_t lo, hi;
    __asm__ volatile("lfence; rdtsc; lfence" : "=a"(lo), "=d"(hi) : : "memory");
    return (uint64_t)hi << 32 | lo;
}
static inline uint64_t la_faults_of(int whose)
{
    long usage[18]; /* struct rusage: two times of two words, four sizes, then ru_minflt */
    if (la_sys(SYS_getrusage, whose, usage, 0))
        return 0;
    return (uint64_t)usage[8];
}
static inline uint64_t la_minor_faults(void) { return la_faults_of(1 /* RUSAGE_THREAD */); }
#endif
