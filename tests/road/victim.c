/* A program that misbehaves as its first argument says; otherwise its time goes to work(). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct item {
    double x, y, z, w;
};

__attribute__((noinline)) void work(struct item *p, int n)
{
    for (int i = 0; i < n; i++)
        p[i].x += 0.5 * p[i].y;
}

__attribute__((noinline)) void never(struct item *p, int n)
{
    for (int i = 0; i < n; i++)
        p[i].x *= p[i].y;
}

__attribute__((noinline)) void talks(struct item *p, int n)
{
    for (int i = 0; i < n; i++) {
        p[i].x += 0.5 * p[i].y;
        if (i % 20000 == 0)
            printf("item %d\n", i);
    }
    fflush(stdout);
}

/* The wide path is there but not taken: this has to run on any machine. */
__attribute__((noinline)) void wide(struct item *p, int n, int use)
{
    for (int i = 0; i < n; i++) {
        if (use)
            __asm__ volatile("vmovupd (%0), %%zmm1\n\tvrcp14pd %%zmm1, %%zmm1\n\tvmovupd %%zmm1, (%0)"
                             :
                             : "r"(p + i)
                             : "xmm1", "memory");
        p[i].x += 0.5 * p[i].y;
    }
}

static int run(const char *mode, struct item *p, int n, int steps)
{
    for (int s = 0; s < steps; s++) {
        if (!strcmp(mode, "talks"))
            talks(p, n);
        else if (!strcmp(mode, "wide"))
            wide(p, n, steps == 1000000);
        else if (!strcmp(mode, "never") && steps == 1000000)
            never(p, n);
        else
            work(p, n);
        if (!strcmp(mode, "crash") && s == 30)
            abort();
        if (!strcmp(mode, "hang") && s == 30)
            for (;;)
                pause();
    }
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "plain";
    int n = argc > 2 ? atoi(argv[2]) : 60000, steps = argc > 3 ? atoi(argv[3]) : 60;
    double start = 0, sum = 0;
    struct item *p = calloc((size_t)n, sizeof *p);
    if (!p)
        return 9;
    if (!strcmp(mode, "stdin") && scanf("%lf", &start) != 1)
        return 7;
    for (int i = 0; i < n; i++)
        p[i].y = i + start;
    if (!strcmp(mode, "exec")) {
        execl(argv[0], argv[0], "plain", argv[2], argc > 2 ? argv[3] : NULL, (char *)0);
        return 8;
    }
    if (!strcmp(mode, "forks")) {
        for (int c = 0; c < 3; c++) {
            pid_t child = fork();
            if (child == 0) {
                run(mode, p, n, 3);
                _exit(0);
            }
            waitpid(child, 0, 0);
        }
    }
    if (!strcmp(mode, "children")) { /* all of the work */
        pid_t child = fork();
        if (child == 0) {
            run(mode, p, n, steps);
            _exit(0);
        }
        waitpid(child, 0, 0);
        return 0;
    }
    run(mode, p, n, steps);
    for (int i = 0; i < n; i++)
        sum += p[i].x;
    printf("sum %.17g\n", sum);
    return !strcmp(mode, "status") ? 3 : 0;
}
