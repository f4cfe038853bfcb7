/* Calls a hotspot on records and, as its first argument says, does something to them between the calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define COUNT 3000
#define CALLS 60
struct s { double a, b, c, d; };
static struct { long before; struct s of[90]; long after; } small; /* begins and ends within a page */
static int at[COUNT];
__attribute__((noipa)) static double hot(struct s *p, const int *at, long n, double scale)
{
    double sum = 0;
    for (long i = 0; i < n; i++) {
        sum += p[at[i]].c * scale;
#ifdef WRITES
        p[at[i]].d += sum;
#endif
    }
    return sum;
}
__attribute__((noipa)) static double deeper(struct s *p, long n, double scale)
{
    volatile char room[5000];
    room[17] = 0;
    return hot(p, at, n, scale) + room[17];
}
static int is(const char *what, int argc, char **argv) { return argc > 1 && !strcmp(argv[1], what); }
static void *idle(void *p) { for (;;) pause(); return p; }
int main(int argc, char **argv)
{
    const int little = is("small", argc, argv), fd = open("/dev/zero", O_RDONLY);
    long n = little ? 90 : COUNT;
    struct s *p = little ? small.of : malloc(n * sizeof *p);
    double total = 0, weight = 1;
    pthread_t t;
    for (long i = 0; i < n; i++) {
        at[i] = (int)(i * 7919 % n);
        p[i].a = p[i].b = p[i].d = 0;
        p[i].c = i % 13;
    }
    if (is("thread", argc, argv))
        pthread_create(&t, NULL, idle, NULL);
    for (int k = 1; k <= CALLS; k++) {
        weight = weight * 1.25 - (int)weight;
        const double one = is("deep", argc, argv) && k % 3 == 0 ? deeper(p, n, k) : hot(p, at, n, k);
        total += weight * one;
        small.before++;
        small.after--;
        if (is("writer", argc, argv) && k % 7 == 0)
            p[k].c += k;
        if (little && k % 7 == 0)
            p[k % 2 ? 0 : n - 1].c += k;
        if (is("read", argc, argv) && k % 7 == 0 && read(fd, &p[32 * k], 4096) != 4096)
            return 9;
        if (is("move", argc, argv) && k == 30) {
            struct s *q = malloc(n * sizeof *q);
            memcpy(q, p, n * sizeof *q);
            free(p);
            p = q;
            p[5].c = 1000;
        }
        if (is("early", argc, argv) && k == 20) {
            printf("%.17g early\n", total);
            exit(4);
        }
        if (is("die", argc, argv) && k == 20) {
            printf("%.17g dies\n", total);
            fflush(stdout);
            raise(SIGKILL);
        }
        if (is("fork", argc, argv) && k == 20) {
            int status = 0;
            const pid_t child = fork();
            if (!child)
                _exit(hot(p, at, n, 1) == hot(p, at, n, 1) ? 7 : 8);
            waitpid(child, &status, 0);
            total += WEXITSTATUS(status);
        }
        if (is("input", argc, argv) && k % 20 == 0) {
            char line[64] = "";
            if (fgets(line, sizeof line, stdin))
                p[k].c += atoi(line);
        }
    }
    double rest = 0;
    for (long i = 0; i < n; i++)
        rest += p[i].c + p[i].d;
    fprintf(stderr, "%ld %ld\n", small.before, small.after);
    printf("%.17g %.17g\n", total, rest);
    return 3;
}
