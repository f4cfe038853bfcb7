/* A program to snapshot: a heap partly in huge pages, a second thread, an open file, standard input half read. It parks until
 * FOLDER/go exists; then it computes, and writes what it found to FOLDER/result. Usage: FOLDER MEGABYTES [io_uring|perf|socket] */
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t ticks;
static uint64_t counter[4096];

static void nap(void)
{
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
}

static void *tick(void *unused)
{
    for (;;) {
        ticks++;
        nap();
    }
    return unused;
}

/* Something that no snapshot can hold. */
static int obstacle(const char *kind)
{
    if (strcmp(kind, "io_uring") == 0) {
        struct io_uring_params p;
        memset(&p, 0, sizeof p);
        return (int)syscall(SYS_io_uring_setup, 8, &p);
    }
    if (strcmp(kind, "perf") == 0) {
        struct perf_event_attr a;
        memset(&a, 0, sizeof a);
        a.size = sizeof a;
        a.type = PERF_TYPE_SOFTWARE;
        a.config = PERF_COUNT_SW_CPU_CLOCK;
        return (int)syscall(SYS_perf_event_open, &a, 0, -1, -1, 0);
    }
    struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "socket"};
    const int s = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(s, (struct sockaddr *)&a, sizeof a) ? -1 : s;
}

int main(int argc, char **argv)
{
    if (argc < 3 || chdir(argv[1]) || (argc > 3 && obstacle(argv[3]) < 0))
        return 3;
    const size_t bytes = strtoull(argv[2], NULL, 10) << 20, words = bytes / sizeof(uint64_t);
    char path[4096], line[64] = "";
    pthread_t thread;
    uint64_t *heap = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (heap == MAP_FAILED || !fgets(line, sizeof line, stdin) || pthread_create(&thread, NULL, tick, NULL))
        return 4;
    madvise(heap + words / 4, bytes / 4, MADV_HUGEPAGE);
    for (size_t i = 0; i < words; i++)
        heap[i] = i * 6364136223846793005u + counter[i % 4096]++;
    snprintf(path, sizeof path, "%s/log", argv[1]);
    FILE *log = fopen(path, "w");
    if (!log)
        return 5;
    fprintf(log, "parked\n");
    fflush(log);
    printf("%p %zu\n", (void *)heap, bytes);
    fflush(stdout);
    while (access("go", F_OK) != 0)
        nap();
    const uint64_t before = ticks;
    uint64_t sum = 0;
    for (size_t i = 0; i < words; i++)
        sum = sum * 31 + (heap[i] ^= i);
    if (!fgets(line, sizeof line, stdin))
        return 6;
    fprintf(log, "the log grows\n");
    fflush(log);
    while (ticks < before + 3) /* the other thread lives */
        nap();
    FILE *result = fopen("result.part", "w");
    if (!result)
        return 7;
    fprintf(result, "%016llx %s", (unsigned long long)sum, line);
    fclose(result);
    rename("result.part", "result");
    for (;;)
        nap();
}
