/* Smoothed particles in cells, with loops annotated for `layout-advise views`: density and force over pairs of cells (all
 * pairs: quadratic), drift and two kicks (linear). Each kernel has a version over a vector of particles and one over a
 * vector of pointers into memory in another order; density and force have one that branches and one that masks. A compiler
 * that knows nothing of the annotations leaves them out, so this file is the original too.
 *
 *   sph_views KERNEL [PARTICLES [CELLS [CALLS]]]    prints the results' hash and sum, and the kernel's times
 *
 * SPDX-License-Identifier: MIT */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

/* 288 bytes, of which no kernel uses more than a third. */
struct Particle {
    double x[3], v[3], a[3];
    double v_full[3];
    double m, h, rho, pressure, sound, u, u_full, u_dt;
    double h_dt, rho_dh, count, div_v, alpha, balsara;
    double dt, dt_least;
    double metals[6];
    std::int64_t id, cell;
};

typedef std::vector<Particle> Cell;
typedef std::vector<Particle *> Scattered;

static double squared(const Particle &p, const Particle &q)
{
    const double dx = p.x[0] - q.x[0], dy = p.x[1] - q.x[1], dz = p.x[2] - q.x[2];
    return dx * dx + dy * dy + dz * dz;
}

/* The part of a neighbour in a force along the line between both: pressures and a viscosity. */
static double pull(const Particle &p, const Particle &q)
{
    const double dx = p.x[0] - q.x[0], dy = p.x[1] - q.x[1], dz = p.x[2] - q.x[2];
    const double approach = dx * (p.v[0] - q.v[0]) + dy * (p.v[1] - q.v[1]) + dz * (p.v[2] - q.v[2]);
    const double inward = approach < 0.0 ? approach : 0.0;
    const double viscous = -0.4 * (p.sound + q.sound) * inward / (p.rho + q.rho);
    return q.m * (p.pressure / (p.rho * p.rho) + q.pressure / (q.rho * q.rho) + viscous);
}

/* density: sums of masses and of their derivative by the smoothing length */

__attribute__((noinline)) void density_branch(Cell &local, Cell &active)
{
    [[clang::soa_conversion]]
    for (auto &p : local) {
        double rho = 0.0, rho_dh = 0.0, count = 0.0;
        [[clang::soa_conversion]] [[clang::soa_conversion_hoist(1)]]
        for (const auto &q : active) {
            const double left = p.h * p.h - squared(p, q);
            if (left > 0.0) {
                rho += q.m * left * left * left;
                rho_dh -= q.m * left * left;
                count += left;
            }
        }
        p.rho += rho;
        p.rho_dh += rho_dh;
        p.count += count;
    }
}

__attribute__((noinline)) void density_mask(Cell &local, Cell &active)
{
    [[clang::soa_conversion]]
    for (auto &p : local) {
        double rho = 0.0, rho_dh = 0.0, count = 0.0;
        [[clang::soa_conversion]] [[clang::soa_conversion_hoist(1)]]
        for (const auto &q : active) {
            const double inside = std::max(p.h * p.h - squared(p, q), 0.0);
            rho += q.m * inside * inside * inside;
            rho_dh -= q.m * inside * inside;
            count += inside;
        }
        p.rho += rho;
        p.rho_dh += rho_dh;
        p.count += count;
    }
}

__attribute__((noinline)) void density_mask_scattered(Scattered &local, Scattered &active)
{
    [[clang::soa_conversion]]
    for (auto *p : local) {
        double rho = 0.0, rho_dh = 0.0, count = 0.0;
        [[clang::soa_conversion]] [[clang::soa_conversion_hoist(1)]]
        for (const auto *q : active) {
            const double inside = std::max(p->h * p->h - squared(*p, *q), 0.0);
            rho += q->m * inside * inside * inside;
            rho_dh -= q->m * inside * inside;
            count += inside;
        }
        p->rho += rho;
        p->rho_dh += rho_dh;
        p->count += count;
    }
}

__attribute__((noinline)) void density_branch_scattered(Scattered &local, Scattered &active)
{
    [[clang::soa_conversion]]
    for (auto *p : local) {
        double rho = 0.0, rho_dh = 0.0, count = 0.0;
        [[clang::soa_conversion]] [[clang::soa_conversion_hoist(1)]]
        for (const auto *q : active) {
            const double left = p->h * p->h - squared(*p, *q);
            if (left > 0.0) {
                rho += q->m * left * left * left;
                rho_dh -= q->m * left * left;
                count += left;
            }
        }
        p->rho += rho;
        p->rho_dh += rho_dh;
        p->count += count;
    }
}

/* force: accelerations and the change of energy */

__attribute__((noinline)) void force_branch(Cell &local, Cell &active)
{
    [[clang::soa_conversion]]
    for (auto &p : local) {
        double ax = 0.0, ay = 0.0, az = 0.0, heat = 0.0;
        [[clang::soa_conversion]] [[clang::soa_conversion_hoist(1)]]
        for (const auto &q : active) {
            const double left = p.h * p.h - squared(p, q);
            if (left > 0.0) {
                const double by = pull(p, q) * left * left;
                ax += by * (p.x[0] - q.x[0]);
                ay += by * (p.x[1] - q.x[1]);
                az += by * (p.x[2] - q.x[2]);
                heat += by * left;
            }
        }
        p.a[0] += ax;
        p.a[1] += ay;
        p.a[2] += az;
        p.u_dt += heat;
    }
}

__attribute__((noinline)) void force_mask(Cell &local, Cell &active)
{
    [[clang::soa_conversion]]
    for (auto &p : local) {
        double ax = 0.0, ay = 0.0, az = 0.0, heat = 0.0;
        [[clang::soa_conversion]] [[clang::soa_conversion_hoist(1)]]
        for (const auto &q : active) {
            const double inside = std::max(p.h * p.h - squared(p, q), 0.0);
            const double by = pull(p, q) * inside * inside;
            ax += by * (p.x[0] - q.x[0]);
            ay += by * (p.x[1] - q.x[1]);
            az += by * (p.x[2] - q.x[2]);
            heat += by * inside;
        }
        p.a[0] += ax;
        p.a[1] += ay;
        p.a[2] += az;
        p.u_dt += heat;
    }
}

__attribute__((noinline)) void force_branch_scattered(Scattered &local, Scattered &active)
{
    [[clang::soa_conversion]]
    for (auto *p : local) {
        double ax = 0.0, ay = 0.0, az = 0.0, heat = 0.0;
        [[clang::soa_conversion]] [[clang::soa_conversion_hoist(1)]]
        for (const auto *q : active) {
            const double left = p->h * p->h - squared(*p, *q);
            if (left > 0.0) {
                const double by = pull(*p, *q) * left * left;
                ax += by * (p->x[0] - q->x[0]);
                ay += by * (p->x[1] - q->x[1]);
                az += by * (p->x[2] - q->x[2]);
                heat += by * left;
            }
        }
        p->a[0] += ax;
        p->a[1] += ay;
        p->a[2] += az;
        p->u_dt += heat;
    }
}

__attribute__((noinline)) void force_mask_scattered(Scattered &local, Scattered &active)
{
    [[clang::soa_conversion]]
    for (auto *p : local) {
        double ax = 0.0, ay = 0.0, az = 0.0, heat = 0.0;
        [[clang::soa_conversion]] [[clang::soa_conversion_hoist(1)]]
        for (const auto *q : active) {
            const double inside = std::max(p->h * p->h - squared(*p, *q), 0.0);
            const double by = pull(*p, *q) * inside * inside;
            ax += by * (p->x[0] - q->x[0]);
            ay += by * (p->x[1] - q->x[1]);
            az += by * (p->x[2] - q->x[2]);
            heat += by * inside;
        }
        p->a[0] += ax;
        p->a[1] += ay;
        p->a[2] += az;
        p->u_dt += heat;
    }
}

/* drift and kicks: each particle by itself */

__attribute__((noinline)) void drift(Cell &local)
{
    [[clang::soa_conversion]]
    for (auto &p : local) {
        p.x[0] += p.dt * p.v_full[0];
        p.x[1] += p.dt * p.v_full[1];
        p.x[2] += p.dt * p.v_full[2];
        p.u += p.dt * p.u_dt;
        p.h += p.dt * p.h_dt;
    }
}

__attribute__((noinline)) void drift_scattered(Scattered &local)
{
    [[clang::soa_conversion]]
    for (auto *p : local) {
        p->x[0] += p->dt * p->v_full[0];
        p->x[1] += p->dt * p->v_full[1];
        p->x[2] += p->dt * p->v_full[2];
        p->u += p->dt * p->u_dt;
        p->h += p->dt * p->h_dt;
    }
}

__attribute__((noinline)) void kick1(Cell &local)
{
    [[clang::soa_conversion]]
    for (auto &p : local) {
        const double half = 0.5 * p.dt;
        p.v_full[0] += half * p.a[0];
        p.v_full[1] += half * p.a[1];
        p.v_full[2] += half * p.a[2];
        p.u_full += half * p.u_dt;
        p.dt = std::min(p.dt, p.h / (p.sound + std::sqrt(p.v[0] * p.v[0] + p.v[1] * p.v[1] + p.v[2] * p.v[2])));
    }
}

__attribute__((noinline)) void kick1_scattered(Scattered &local)
{
    [[clang::soa_conversion]]
    for (auto *p : local) {
        const double half = 0.5 * p->dt;
        p->v_full[0] += half * p->a[0];
        p->v_full[1] += half * p->a[1];
        p->v_full[2] += half * p->a[2];
        p->u_full += half * p->u_dt;
        p->dt = std::min(p->dt, p->h / (p->sound + std::sqrt(p->v[0] * p->v[0] + p->v[1] * p->v[1] + p->v[2] * p->v[2])));
    }
}

__attribute__((noinline)) void kick2(Cell &local)
{
    [[clang::soa_conversion]]
    for (auto &p : local) {
        const double half = 0.5 * p.dt;
        p.v[0] = p.v_full[0] += half * p.a[0];
        p.v[1] = p.v_full[1] += half * p.a[1];
        p.v[2] = p.v_full[2] += half * p.a[2];
        p.u = p.u_full += half * p.u_dt;
        p.pressure = 0.6667 * p.rho * p.u;
        p.sound = std::sqrt(std::max(1.6667 * p.pressure / p.rho, 0.01));
    }
}

__attribute__((noinline)) void kick2_scattered(Scattered &local)
{
    [[clang::soa_conversion]]
    for (auto *p : local) {
        const double half = 0.5 * p->dt;
        p->v[0] = p->v_full[0] += half * p->a[0];
        p->v[1] = p->v_full[1] += half * p->a[1];
        p->v[2] = p->v_full[2] += half * p->a[2];
        p->u = p->u_full += half * p->u_dt;
        p->pressure = 0.6667 * p->rho * p->u;
        p->sound = std::sqrt(std::max(1.6667 * p->pressure / p->rho, 0.01));
    }
}

/* The program: a row of cells; those that are neighbours are a pair, and each cell is one with itself. */

static double drawn(std::uint64_t &state)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 11) / 9007199254740992.0;
}

static void fill(Cell &cell, std::size_t number, std::uint64_t &state)
{
    std::int64_t id = 0;
    for (auto &p : cell) {
        p = Particle();
        for (int k = 0; k < 3; k++) {
            p.x[k] = drawn(state);
            p.v[k] = p.v_full[k] = drawn(state) - 0.5;
            p.a[k] = 0.1 * drawn(state);
        }
        p.x[0] += static_cast<double>(number);
        p.m = 1.0 / static_cast<double>(cell.size());
        p.h = 0.6 + 0.1 * drawn(state);
        p.rho = 1.0 + drawn(state);
        p.u = p.u_full = p.sound = 1.0 + drawn(state);
        p.pressure = 0.6667 * p.rho * p.u;
        p.dt = 1e-6;
        p.id = id++;
        p.cell = static_cast<std::int64_t>(number);
    }
}

struct World {
    std::vector<Cell> cells;
    std::vector<Scattered> pointers;
};

struct Kernel {
    const char *name;
    void (*pair)(Cell &, Cell &);
    void (*pair_scattered)(Scattered &, Scattered &);
    void (*one)(Cell &);
    void (*one_scattered)(Scattered &);
};

static const Kernel KERNELS[] = {
    {"density_branch", density_branch, nullptr, nullptr, nullptr},
    {"density_mask", density_mask, nullptr, nullptr, nullptr},
    {"density_branch_scattered", nullptr, density_branch_scattered, nullptr, nullptr},
    {"density_mask_scattered", nullptr, density_mask_scattered, nullptr, nullptr},
    {"force_branch", force_branch, nullptr, nullptr, nullptr},
    {"force_mask", force_mask, nullptr, nullptr, nullptr},
    {"force_branch_scattered", nullptr, force_branch_scattered, nullptr, nullptr},
    {"force_mask_scattered", nullptr, force_mask_scattered, nullptr, nullptr},
    {"drift", nullptr, nullptr, drift, nullptr},
    {"drift_scattered", nullptr, nullptr, nullptr, drift_scattered},
    {"kick1", nullptr, nullptr, kick1, nullptr},
    {"kick1_scattered", nullptr, nullptr, nullptr, kick1_scattered},
    {"kick2", nullptr, nullptr, kick2, nullptr},
    {"kick2_scattered", nullptr, nullptr, nullptr, kick2_scattered},
};

/* One call of a kernel for each cell, or for each pair. */
static void sweep(const Kernel &kernel, World &world)
{
    const std::size_t n = world.cells.size();
    for (std::size_t c = 0; c < n; c++) {
        if (kernel.one != nullptr)
            kernel.one(world.cells[c]);
        if (kernel.one_scattered != nullptr)
            kernel.one_scattered(world.pointers[c]);
        for (std::size_t d = c > 0 ? c - 1 : 0; d < std::min(n, c + 2); d++) {
            if (kernel.pair != nullptr)
                kernel.pair(world.cells[c], world.cells[d]);
            if (kernel.pair_scattered != nullptr)
                kernel.pair_scattered(world.pointers[c], world.pointers[d]);
        }
    }
}

static World world_of(std::size_t cells, std::size_t particles)
{
    World world{std::vector<Cell>(cells, Cell(particles)), std::vector<Scattered>(cells)};
    std::uint64_t state = 17;
    std::vector<Particle *> all;
    for (std::size_t c = 0; c < cells; c++) {
        fill(world.cells[c], c, state);
        for (auto &p : world.cells[c])
            all.push_back(&p);
    }
    /* Pointers of a cell lead anywhere, as where particles were sorted into cells by pointer alone. */
    for (std::size_t k = all.size(); k > 1; k--)
        std::swap(all[k - 1], all[static_cast<std::size_t>(drawn(state) * static_cast<double>(k))]);
    for (std::size_t k = 0; k < all.size(); k++)
        world.pointers[k / particles].push_back(all[k]);
    return world;
}

static void tell(const World &world)
{
    std::uint64_t hash = 1469598103934665603u;
    double sum = 0.0;
    for (const auto &cell : world.cells)
        for (const auto &p : cell) {
            unsigned char bytes[sizeof p];
            std::memcpy(bytes, &p, sizeof p);
            for (unsigned char byte : bytes)
                hash = (hash ^ byte) * 1099511628211u;
            const double parts[] = {p.x[0], p.x[1], p.x[2], p.v[0], p.v_full[1], p.a[0], p.a[1], p.a[2], p.u, p.u_full, p.u_dt,
                                    p.h, p.rho, p.rho_dh, p.count, p.pressure, p.sound, p.dt};
            for (double part : parts)
                sum += std::fabs(part);
        }
    std::printf("hash %016llx sum %.17g\n", static_cast<unsigned long long>(hash), sum);
}

int main(int argc, char **argv)
{
    const std::string name = argc > 1 ? argv[1] : "";
    const auto number = [&](int at, unsigned long usual) { return argc > at ? std::strtoul(argv[at], nullptr, 10) : usual; };
    const std::size_t particles = number(2, 256), cells = number(3, 8), calls = number(4, 20);
    for (const Kernel &kernel : KERNELS) {
        if (name != kernel.name)
            continue;
        World world = world_of(cells, particles);
        std::vector<double> times;
        for (std::size_t k = 0; k < calls; k++) {
            const auto begun = std::chrono::steady_clock::now();
            sweep(kernel, world);
            times.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count());
        }
        tell(world);
        std::sort(times.begin(), times.end());
        std::fprintf(stderr, "sweep %.0f ns\n", times[times.size() / 10]);
        return 0;
    }
    std::fprintf(stderr, "sph_views KERNEL [PARTICLES [CELLS [CALLS]]]; kernels:");
    for (const Kernel &kernel : KERNELS)
        std::fprintf(stderr, " %s", kernel.name);
    std::fprintf(stderr, "\n");
    return 2;
}
