// Hotspots that call what is not lifted with them, for test_kept_calls.py: `kept_calls which`.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <vector>

struct Body {
    double x, y, z, vx, vy, vz, m, q;
};
struct Force {
    virtual double of(double x, double v) const = 0;
};
struct Spring : Force {
    double of(double x, double v) const override { return v - 0.25 * x; }
};
struct Drag : Force {
    double of(double x, double v) const override { return v - 0.5 * x * v; }
};
static double spent;
static Body *bodies;

// an instruction that no mock-up has
static inline void not_lifted() { unsigned short word; __asm__ volatile("fnstcw %0" : "=m"(word)); }

__attribute__((noipa)) double place_of(long i) { not_lifted(); return bodies[i].x; }
__attribute__((noipa)) double by_size(long i) { not_lifted(); return bodies[i].x > 1e9 ? 1.0 : 0.5; }
__attribute__((noipa)) double from_outside(long i) { not_lifted(); return bodies[i].vx; }
__attribute__((noipa)) double velocity_of(long i) { return bodies[i].vx; }
__attribute__((noipa)) double damped(long i) { return bodies[i].vx * 0.5 + 1e-3 * bodies[i].m; }

// allocates, asks the clock, calls virtual functions, and has ways that no call takes
__attribute__((noinline)) void step(Body *p, long n, double dt, const Force *const *forces, std::vector<long> &lost)
{
    timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long i = 0; i < n; i++) {
        p[i].vx += dt * forces[i & 1]->of(p[i].x, p[i].vx);
        p[i].x += dt * p[i].vx;
        if ((i & 63) == 0) {
            volatile double *brief = (double *)malloc(64);
            brief[3] = p[i].x;
            p[i].x += 1e-9 * brief[3] + 1e-12 * (double)(lrand48() & 7);
            free((void *)brief);
        }
        if (p[i].x > 1e9)
            lost.push_back(i);
        if (p[i].x < -1e9)
            throw std::runtime_error("lost");
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    spent += (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}

// the callee reads what would be re-laid (place_of; by_size only whether it is large), or what would stay where it is (from_outside)
__attribute__((noinline)) void behind(Body *p, long n, double dt, double (*velocity)(long))
{
    for (long i = 0; i < n; i++)
        p[i].x += dt * velocity(i);
}

// the function that is called is a part of the region, and stays a call: it uses another member
__attribute__((noinline)) void beside_directly(Body *p, long n, double dt)
{
    for (long i = 0; i < n; i++)
        p[i].x += dt * p[i].vy * from_outside(i);
}

// two functions, the one or the other in turn
__attribute__((noinline)) void in_turn(Body *p, long n, double dt, double (*const *velocities)(long))
{
    for (long i = 0; i < n; i++)
        p[i].x += dt * velocities[i & 1](i);
}

// what it does cannot be done again
__attribute__((noinline)) void prints(Body *p, long n, double dt)
{
    for (long i = 0; i < n; i++) {
        p[i].x += dt * p[i].vx;
        if (i % 4096 == 0)
            fprintf(stderr, "%g\n", p[i].x);
    }
}

int main(int, char **words)
{
    const long n = 40000;
    bodies = (Body *)malloc(n * sizeof(Body));
    for (long i = 0; i < n; i++)
        bodies[i] = Body{1e-5 * (double)i, 1, 2, 0.5, 0.25, 0.125, 1, 0};
    const Spring spring;
    const Drag drag;
    const Force *const forces[2] = {&spring, &drag};
    std::vector<long> lost;
    double (*const velocities[2])(long) = {velocity_of, damped};
    for (int t = 0; t < 600; t++) {
        if (!strcmp(words[1], "step"))
            step(bodies, n, 1e-3, forces, lost);
        else if (!strcmp(words[1], "behind"))
            behind(bodies, n, 1e-3, place_of);
        else if (!strcmp(words[1], "compares"))
            behind(bodies, n, 1e-3, by_size);
        else if (!strcmp(words[1], "beside"))
            behind(bodies, n, 1e-3, from_outside);
        else if (!strcmp(words[1], "beside_directly"))
            beside_directly(bodies, n, 1e-3);
        else if (!strcmp(words[1], "in_turn"))
            in_turn(bodies, n, 1e-3, velocities);
        else
            prints(bodies, n, 1e-3);
    }
    double sum = 0;
    for (long i = 0; i < n; i++)
        sum += bodies[i].x;
    printf("%g %zu\n", sum, lost.size());
}
