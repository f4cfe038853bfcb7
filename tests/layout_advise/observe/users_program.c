/* A hotspot, and what else may touch its structure between two calls: chosen by letters. SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

struct particle { double x, y, z, vx, vy, vz, m, q, age, P; };
#define BYTES (400 * 4096)
static volatile long alarms;
static volatile int stop, started;

__attribute__((noipa)) void hot(struct particle *p, long n)
{
    for (long i = 0; i < n; i++)
        p[i].P = 0.875 * p[i].P + p[i].m * p[i].vx * p[i].vx;
}
__attribute__((noipa)) void initialise(struct particle *p, long n)
{
    for (long i = 0; i < n; i++) {
        memset(&p[i], 0, sizeof p[i]);
        p[i].vx = (double)(i % 7);
        p[i].m = 1.0 + (double)(i % 3);
    }
}
__attribute__((noipa)) void move(struct particle *p, long n)
{
    for (long i = 0; i < n; i++)
        p[i].x += 0.125 * p[i].vx;
}
__attribute__((noipa)) double report(const struct particle *p, long n)
{
    double sum = 0;
    for (long i = 0; i < n; i += 16)
        sum += p[i].P;
    return sum;
}
__attribute__((noipa)) void save(const struct particle *p, long n, int fd)
{
    const size_t bytes = (size_t)n * sizeof *p;
    if (write(fd, p, bytes) != (ssize_t)bytes)
        exit(9);
}
__attribute__((noipa)) void gather(const struct particle *p, long n, int fd)
{
    struct iovec part[2] = {{(void *)(p + 1), 160}, {(void *)(p + n / 2), 8000}};
    if (writev(fd, part, 2) != 8160)
        exit(8);
}
__attribute__((noipa)) void print(const struct particle *p, long n, FILE *file)
{
    if (fwrite(p + n / 2, sizeof *p, (size_t)n / 4, file) != (size_t)n / 4)
        exit(7);
}
__attribute__((noipa)) void look(struct particle *p, long n, const char *path)
{
    if (stat(path, (struct stat *)(void *)&p[n / 2].x)) /* a call whose buffer is known from its failure only */
        exit(6);
    memset(&p[n / 2], 0, sizeof(struct stat));
}
__attribute__((noipa)) void copy(struct particle *to, const struct particle *p, long n)
{
    memcpy(to, p, (size_t)n * sizeof *p);
    __asm__ volatile("" ::: "memory");
}
/* As copy() does where libc finds the processor fast at it. */
__attribute__((noipa)) void repeat(struct particle *to, const struct particle *p, long n)
{
    size_t bytes = (size_t)n * sizeof *p;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(p), "+c"(bytes) : : "memory");
}
__attribute__((noipa)) void clear(struct particle *p, long n)
{
    size_t words = (size_t)n * sizeof *p / 8;
    __asm__ volatile("rep stosq" : "+D"(p), "+c"(words) : "a"(0L) : "memory");
}
static int by_x(const void *a, const void *b)
{
    const struct particle *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}
static void on_alarm(int number)
{
    (void)number;
    alarms++;
}
struct share { struct particle *p; long n; double sum; };
static void *beside(void *argument)
{
    struct share *share = argument;
    while (!stop) {
        share->sum += share->p[share->n / 2].q;
        usleep(200);
    }
    return NULL;
}

/* Threads whose own code, library calls and calls of the hotspot go on at the same time. */
static void *crowd(void *argument)
{
    struct share *share = argument;
    struct particle *own = calloc(64, sizeof *own);
    while (!stop) {
        for (long k = 0; k + 64 < share->n && !stop; k += 64) {
            memmove(own, share->p + k, 64 * sizeof *own);
            share->sum += own[k % 64].q;
            if (started)
                hot(own, 64);
        }
    }
    free(own);
    return NULL;
}
/* A pipe is read into the structure by a thread that waits for it while others make calls. */
static int ends[2];
static void *reader(void *argument)
{
    struct share *share = argument;
    while (!stop) {
        const ssize_t got = read(ends[0], share->p + share->n / 4, 80 * 16);
        if (got < 0)
            _exit(11);
        if (got == 0)
            break;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    const long n = 20000, steps = 12;
    const char *what = argc > 1 ? argv[1] : "";
    const char *path = argc > 2 ? argv[2] : "/dev/null";
    struct particle *p = malloc((size_t)n * sizeof *p), *q = malloc((size_t)n * sizeof *q);
    FILE *file = fopen(path, "w");
    if (strchr(what, 'R'))
        p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct share share = {p, n, 0};
    pthread_t thread, more[3];
    double sum = 0;
    initialise(p, n);
    if (strchr(what, 'a')) {
        struct itimerval often = {{0, 1000}, {0, 1000}};
        signal(SIGALRM, on_alarm);
        setitimer(ITIMER_REAL, &often, NULL);
    }
    if (strchr(what, 'b')) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
    }
    if (strchr(what, 't'))
        pthread_create(&thread, NULL, beside, &share);
    for (int k = 0; k < 3 && strchr(what, 'T'); k++)
        pthread_create(&more[k], NULL, crowd, &share);
    if (strchr(what, 'i')) {
        if (pipe(ends))
            exit(10);
        pthread_create(&thread, NULL, reader, &share);
    }
    for (long k = 0; k < steps; k++) {
        hot(p, n);
        started = k > 3;
        for (const char *c = what; *c; c++) {
            switch (*c) {
            case 'm': move(p, n); break;
            case 'r': sum += report(p, n); break;
            case 'w': save(p, n, fileno(file)); break;
            case 'g': gather(p, n, fileno(file)); break;
            case 'p': print(p, n, file); break;
            case 'l': look(p, n, path); break;
            case 'c': copy(q, p, n); break;
            case 'k': repeat(q, p, n); break;
            case 'z': clear(p, n); break;
            case 's': qsort(p + n / 2, 64, sizeof *p, by_x); break;
            case 'f':
                free(p);
                p = malloc((size_t)n * sizeof *p);
                initialise(p, n);
                break;
            case 'e':
                p = realloc(p, (size_t)(n + 20000 * (k + 1)) * sizeof *p);
                p[n + 1].q = p[n / 2].q;
                break;
            case 'i':
                if (write(ends[1], q, 80 * 16) != 80 * 16)
                    exit(12);
                usleep(2000);
                break;
            case 'R': /* all of its pages go elsewhere */
                p = mremap(p, BYTES, BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)p - (1l << 30));
                break;
            case 'x': if (system("true")) exit(5); break;
            }
        }
    }
    stop = 1;
    if (strchr(what, 'i'))
        close(ends[1]);
    if (strpbrk(what, "ti"))
        pthread_join(thread, NULL);
    for (int k = 0; k < 3 && strchr(what, 'T'); k++)
        pthread_join(more[k], NULL);
    fprintf(file, "%.17g %.17g\n", sum, report(p, n));
    fclose(file);
    return 3;
}
