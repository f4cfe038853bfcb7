/* wave.c with a plane for each field and parity, and the promise that they do not overlap. SPDX-License-Identifier: MIT */
#include "../common.h"

#define X 1000
#define Y 1000
#define FIELDS 4

/* The step uses two of the four fields; both parities of all of them are stored. */
enum field { POTENTIAL, RECOVERY, ACTIVATION, TISSUE };

static double datarr[FIELDS][2][X + 1][Y + 1];

typedef double plane[X + 1][Y + 1];
typedef double row[Y + 1];

/* One explicit Euler step of a modified FitzHugh-Nagumo model (Aliev and Panfilov, 1996) with a 5-point Laplacian.
 * Further sweeps compute the same step again. */
__attribute__((noinline)) static void step_of(const row *restrict u_now, const row *restrict v_now, row *restrict u_next,
                                              row *restrict v_next, long nx, long ny, long sweeps)
{
    const double dt = 0.02, diffusion = 1.25, k = 8.0, a = 0.15, eps = 0.002, mu1 = 0.2, mu2 = 0.3;
    for (long s = 0; s < sweeps; s++, keep_sweeps_apart())
        for (long x = 1; x < nx; x++)
            for (long y = 1; y < ny; y++) {
                const double u = u_now[x][y], v = v_now[x][y];
                const double around = u_now[x - 1][y] + u_now[x + 1][y] + u_now[x][y - 1] + u_now[x][y + 1];
                const double reaction = k * u * (u - a) * (1.0 - u) - u * v;
                u_next[x][y] = u + dt * (diffusion * (around - 4.0 * u) + reaction);
                v_next[x][y] = v + dt * (eps + mu1 * v / (mu2 + u)) * (k * u * (a + 1.0 - u) - v);
            }
}

static void wave_step(int now, long nx, long ny, long sweeps)
{
    plane *const u = datarr[POTENTIAL], *const v = datarr[RECOVERY];
    step_of(u[now], v[now], u[1 - now], v[1 - now], nx, ny, sweeps);
}

/* A stimulated edge, and a refractory patch that makes the front curl. The outermost cells stay at rest. */
static void initialise(long nx, long ny)
{
    uint64_t seed = 1;
    for (long x = 0; x <= nx; x++)
        for (long y = 0; y <= ny; y++)
            for (int p = 0; p < 2; p++) {
                const int inside = x > 0 && x < nx && y > 0 && y < ny;
                datarr[POTENTIAL][p][x][y] = inside && y < 1 + ny / 8 ? 0.9 : 0.0;
                datarr[RECOVERY][p][x][y] = inside && x < nx / 2 && y < ny / 4 ? 1.5 : 0.0;
                datarr[ACTIVATION][p][x][y] = -1.0;
                datarr[TISSUE][p][x][y] = next_random(&seed);
            }
}

static struct checksum checksum_of(int p, long nx, long ny)
{
    struct checksum hash = {0, 0.0};
    for (long x = 0; x <= nx; x++)
        for (long y = 0; y <= ny; y++)
            for (int f = 0; f < FIELDS; f++)
                hash = mix(hash, datarr[f][p][x][y]);
    return hash;
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1000, 300, 320, X);
    struct stopwatch w = new_stopwatch(&o);
    initialise(o.size, o.size);
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        wave_step((int)(step % 2), o.size, o.size, o.sweeps);
        stop(&w);
    }
    finish(&o, &w, checksum_of((int)(o.steps % 2), o.size, o.size));
}
