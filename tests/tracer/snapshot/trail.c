/* A solver's loop: the program fills a queue between the calls and changes some of the records; each call empties it. With a
 * second argument it gets another queue, in memory of its own, every so many calls (0: never; below 0: the call after so many
 * is made from deeper down); with a third one it reserves
 * 32 GiB of which it uses nothing, and writes into that file what its page tables take. What each call returns is printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
struct node { double weight, step; long seen, rest[5]; };
struct queue { long head, tail, first[32]; };
static struct queue own, *queue = &own;
__attribute__((noipa)) double propagate(struct node *nodes, double by)
{
    double sum = 0;
    while (queue->head < queue->tail) {
        struct node *from = nodes + queue->first[queue->head++];
        for (long k = 0; k < 40; k++)
            if (!from[k].seen) {
                from[k].weight += from[k].step * by;
                sum += from[k].weight;
            }
    }
    return sum;
}
__attribute__((noipa)) double deeper(struct node *nodes, double by)
{
    volatile char room[512] = {1};
    return propagate(nodes, by) + room[1];
}
static void write_page_tables(const char *name)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r"), *out = fopen(name, "w");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmPTE:", 6))
            fputs(line + 6, out);
    fclose(out);
    fclose(status);
}
int main(int argc, char **argv)
{
    long n = 20000, calls = atol(argv[1]), period = argc > 2 ? atol(argv[2]) : 0;
    struct node *nodes = calloc(n, sizeof *nodes);
    for (long i = 0; i < n; i++)
        nodes[i] = (struct node){i % 97, 1.0 / (i + 1), i % 5 == 0, {1, 2, 3, 4, 5}};
    unsigned long random = 1;
    if (argc > 3)
        mmap(0, 32ul << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (long c = 0; c < calls; c++) {
        if (argc > 3 && c % 20 == 0)
            write_page_tables(argv[3]);
        if (period && c % period == period - 1)
            queue = (struct queue *)((char *)calloc(1, 1 << 20) + c % 3 * 4096);
        queue->head = queue->tail = 0;
        for (int k = 0; k < 20; k++) {
            random = random * 6364136223846793005ul + 1442695040888963407ul;
            queue->first[queue->tail++] = (random >> 33) % (n - 40);
        }
        printf("%a\n", (c == -period ? deeper : propagate)(nodes, 0.5 * (c % 3)));
        for (int k = 0; k < 8; k++) {
            struct node *one = &nodes[(c * 8 + k) * 31 % n];
            one->seen = !one->seen;
            one->step += 1.0 / (c + 1);
        }
    }
}
