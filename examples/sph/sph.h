/* What the versions of sph share: particles that lie in memory in no order of space, and the list of each one's neighbours.
 * A version defines before it: the type `particles`, allocate, put, position, nudge, density_of, and the hotspot `density`.
 * SPDX-License-Identifier: MIT */
struct cells {
    long side;
    long *first; /* of each cell in `member`, and one more */
    int *member;
};

static long cell_of(const struct cells *c, const double x[3])
{
    long cell = 0;
    for (int k = 0; k < 3; k++)
        cell = cell * c->side + (long)(x[k] * (double)c->side);
    return cell;
}

static struct cells sort_into_cells(const double (*x)[3], long n, double width)
{
    struct cells c = {(long)(1.0 / width), NULL, checked(malloc((size_t)n * sizeof(int)))};
    const long cells = c.side * c.side * c.side;
    c.first = checked(calloc((size_t)cells + 2, sizeof(long)));
    for (long i = 0; i < n; i++)
        c.first[cell_of(&c, x[i]) + 2]++;
    for (long i = 2; i < cells + 2; i++)
        c.first[i] += c.first[i - 1];
    for (long i = 0; i < n; i++)
        c.member[c.first[cell_of(&c, x[i]) + 1]++] = (int)i;
    return c;
}

/* The particles within `reach` of particle i, those of the 27 cells about its own. */
static long neighbours_of(const struct cells *c, const double (*x)[3], long i, double reach, int *found)
{
    long number = 0, from[3], to[3];
    for (int k = 0; k < 3; k++) {
        const long own = (long)(x[i][k] * (double)c->side);
        from[k] = own > 0 ? own - 1 : own;
        to[k] = own < c->side - 1 ? own + 1 : own;
    }
    for (long a = from[0]; a <= to[0]; a++)
        for (long b = from[1]; b <= to[1]; b++)
            for (long d = from[2]; d <= to[2]; d++) {
                const long cell = (a * c->side + b) * c->side + d;
                for (long m = c->first[cell]; m < c->first[cell + 1]; m++) {
                    double r2 = 0.0;
                    for (int k = 0; k < 3; k++) {
                        const double t = x[c->member[m]][k] - x[i][k];
                        r2 += t * t;
                    }
                    if (r2 < reach * reach && number < MOST)
                        found[number++] = c->member[m];
                }
            }
    return number;
}

static void list_neighbours(struct lists *l, const double (*x)[3], long n, double reach)
{
    const struct cells c = sort_into_cells(x, n, reach);
    l->first = checked(malloc((size_t)(n + 1) * sizeof *l->first));
    l->neighbour = checked(malloc((size_t)n * MOST * sizeof *l->neighbour));
    l->first[0] = 0;
    for (long i = 0; i < n; i++)
        l->first[i + 1] = l->first[i] + (int)neighbours_of(&c, x, i, reach, l->neighbour + l->first[i]);
    free(c.first);
    free(c.member);
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 60000, 40, 500, 10000000);
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    struct lists l;
    particles p = allocate(o.size);
    double(*x)[3] = checked(malloc((size_t)o.size * sizeof *x));
    double h = 0.5; /* such that about forty lie within it */
    uint64_t seed = 1;
    while (h * h * h * 4.19 * (double)o.size > 40.0)
        h *= 0.984375;
    for (long i = 0; i < o.size; i++) {
        for (int k = 0; k < 3; k++)
            x[i][k] = next_random(&seed);
        put(p, i, x[i], (1.0 + 0.125 * next_random(&seed)) / (double)o.size);
    }
    list_neighbours(&l, (const double(*)[3])x, o.size, 1.0625 * h);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        density(p, &l, o.size, o.sweeps, h);
        stop(&w);
        for (long i = step % 7; i < o.size; i += 7)
            nudge(p, i, 0.0078125 * h);
    }
    for (long i = 0; i < o.size; i++)
        hash = mix(hash, density_of(p, i));
    finish(&o, &w, hash);
}
