/* What the versions of sampo share: insects as agents of twelve numbers, in three sections: `grow` uses two of them, `forage`
 * six, `census` four. It has the shape of the program that Kofler, Cosenza and Fahringer study (2015), not its code. A version
 * defines before it: the type `agents`, allocate, and where the numbers of agent i are: STATE(a, i), AGE, X, Y, ENERGY, EGGS,
 * WAIT, HOST, SEX, ORIGIN, DOSE, GENES. SPDX-License-Identifier: MIT */
enum { CENSUS = 8 };

#define SECTION __attribute__((noinline)) void
#define AGENTS for (long i = 0; i < n; i++)
/* A version may write the loop in another way where the order of the agents does not matter, and name its arrays before. */
#ifndef EACH_AGENT
#define EACH_AGENT AGENTS
#define NAMED(a)
#endif

SECTION grow(agents a, long n)
{
    NAMED(a)
    EACH_AGENT
    {
        const int age = AGE(a, i) + 1, next = age > 40 + (int)(i & 7);
        STATE(a, i) = next ? (STATE(a, i) + 1) & 3 : STATE(a, i);
        AGE(a, i) = next ? 0 : age;
    }
}

SECTION forage(agents a, long n, float wind)
{
    NAMED(a)
    EACH_AGENT
    {
        const float reach = ENERGY(a, i) * 0.01f, towards = HOST(a, i) - X(a, i);
        const float hungry = WAIT(a, i) > 0.5f ? 0.0f : 1.0f;
        X(a, i) += reach * towards + wind;
        Y(a, i) += reach * 0.5f - 0.25f * wind;
        EGGS(a, i) += hungry * 0.125f * ENERGY(a, i);
        WAIT(a, i) = WAIT(a, i) > 0.5f ? WAIT(a, i) - 0.5f : 3.0f;
        ENERGY(a, i) = 0.9375f * ENERGY(a, i) + hungry * 0.25f;
        HOST(a, i) = 0.5f * HOST(a, i) + 0.125f * Y(a, i);
    }
}

SECTION census(agents a, long n)
{
    NAMED(a)
    EACH_AGENT
    {
        const float mixed = SEX(a, i) * GENES(a, i) + (1.0f - SEX(a, i)) * ORIGIN(a, i);
        DOSE(a, i) = 0.75f * DOSE(a, i) + 0.25f * mixed;
        GENES(a, i) += 0.03125f * (DOSE(a, i) - GENES(a, i));
    }
}

int main(int argc, char **argv)
{
    const struct options o = read_options(argc, argv, 1000000, 80, 20000, 50000000);
    const long n = o.size;
    struct stopwatch w = new_stopwatch(&o);
    struct checksum hash = {0, 0.0};
    agents a = allocate(n);
    NAMED(a)
    uint64_t seed = 1;
    AGENTS
    {
        STATE(a, i) = (int)(4.0 * next_random(&seed));
        AGE(a, i) = (int)(40.0 * next_random(&seed));
        X(a, i) = (float)next_random(&seed);
        Y(a, i) = (float)next_random(&seed);
        ENERGY(a, i) = (float)next_random(&seed);
        EGGS(a, i) = 0.0f;
        WAIT(a, i) = (float)(3.0 * next_random(&seed));
        HOST(a, i) = (float)next_random(&seed);
        SEX(a, i) = (float)(next_random(&seed) < 0.5);
        ORIGIN(a, i) = (float)next_random(&seed);
        DOSE(a, i) = 0.5f;
        GENES(a, i) = (float)next_random(&seed);
    }
    for (long step = 0; step < o.steps; step++) {
        start(&w);
        for (long s = 0; s < o.sweeps; s++) {
            for (int k = 0; k < CENSUS; k++) {
                grow(a, n);
                forage(a, n, 0.0009765625f);
            }
            census(a, n);
        }
        stop(&w);
    }
    AGENTS
    {
        hash = mix(mix(hash, (double)(STATE(a, i) + AGE(a, i))), (double)X(a, i));
        hash = mix(mix(hash, (double)EGGS(a, i)), (double)GENES(a, i));
    }
    finish(&o, &w, hash);
}
