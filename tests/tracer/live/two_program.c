/* Two regions over one array, each of which writes what the other one reads; what else happens the first argument says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define COUNT 3000
#define CALLS 40
struct s { double a, b, c, d; };
static struct s *moved;
__attribute__((noipa)) static void push(struct s *p, long n, double by)
{
    for (long i = 0; i < n; i++)
        p[i].c += by * p[i].d + 0.25;
}
__attribute__((noipa)) static double pull(struct s *p, long n, double by)
{
    double sum = 0;
    for (long i = 0; i < n; i++) {
        p[i].d = 0.5 * p[i].d + by / (1 + p[i].c * p[i].c);
        sum += p[i].d;
    }
    return sum;
}
/* A loop as a region: from sweep_in to sweep_out, with n in rdx and the end of p in rbx as it leaves them. */
long sweep(struct s *p, long n, double by);
__asm__(".text\n.globl sweep\n.type sweep, @function\nsweep: push %rbx\n movapd %xmm0, %xmm1\n"
        "sweep_in: mov %rdi, %rbx\n xor %edx, %edx\n"
        "1: movsd 16(%rbx), %xmm2\n addsd %xmm1, %xmm2\n movsd %xmm2, 16(%rbx)\n"
        "add $32, %rbx\n inc %rdx\n cmp %rsi, %rdx\n jl 1b\n"
        "sweep_out: lea (%rdx,%rbx), %rax\n sub %rdi, %rax\n pop %rbx\n ret\n.size sweep, .-sweep\n");
/* A region around another one. */
__attribute__((noipa)) static double around(struct s *p, long n, double by)
{
    push(p, n, by);
    p[1].c += 1;
    push(p, n, by);
    return p[n / 2].c;
}
static int is(const char *what, int argc, char **argv) { return argc > 1 && !strcmp(argv[1], what); }
int main(int argc, char **argv)
{
    const long n = COUNT;
    struct s *p = malloc(n * sizeof *p);
    double total = 0;
    for (long i = 0; i < n; i++)
        p[i] = (struct s){i, 2 * i, i % 13, i % 7};
    if (is("late", argc, argv)) /* only one of the two is there from the start */
        for (int k = 0; k < 10; k++)
            push(p, n, 0.125);
    for (int k = 1; k <= CALLS; k++) {
        if (is("around", argc, argv))
            total += around(p, n, 1.0 / k);
        push(p, n, 1.0 / k);
        if (is("between", argc, argv) && k % 5 == 0) {
            p[k].c += k;
            p[n - 1].d -= k;
        }
        if (is("sweep", argc, argv))
            total += sweep(p, n, 0.5 * k);
        total += pull(p, n, k);
        if (is("twice", argc, argv) && k % 4 == 0)
            total += pull(p, n, k);
        if (is("move", argc, argv) && k == 20) {
            moved = malloc(n * sizeof *p);
            memcpy(moved, p, n * sizeof *p);
            free(p);
            p = moved;
        }
        if (is("fork", argc, argv) && k == 20) {
            int status = 0;
            const pid_t child = fork();
            if (!child) {
                push(p, n, 1);
                _exit(pull(p, n, 1) > 0 ? 7 : 8);
            }
            waitpid(child, &status, 0);
            total += WEXITSTATUS(status);
        }
    }
    double rest = 0;
    for (long i = 0; i < n; i++)
        rest += p[i].a + p[i].b + p[i].c + p[i].d;
    printf("%.17g %.17g\n", total, rest);
    return 5;
}
