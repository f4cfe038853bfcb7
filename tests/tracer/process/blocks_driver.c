/* The agent's table of heap blocks, in a program of its own: several threads allocate, give back and change at once, and what
 * the table says afterwards is what they have. It is built with names of its own for malloc and the rest, so that sanitizers
 * keep theirs. SPDX-License-Identifier: MIT */
#include "agent.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

void *agent_malloc(size_t n);
void *agent_calloc(size_t n, size_t m);
void *agent_realloc(void *old, size_t n);
void *agent_aligned_alloc(size_t alignment, size_t n);
void agent_free(void *p);

enum { THREADS = 4, SLOTS = 3000, STEPS = 60000 };
static struct {
    void *block;
    size_t bytes;
} held[THREADS][SLOTS];

int la_alive(void) { return 1; }
uint64_t la_apart(uint64_t size) /* anywhere: sanitizers have plans for the rest */
{
    (void)size;
    return 0;
}

static void step(unsigned *seed, int who)
{
    const int slot = rand_r(seed) % SLOTS;
    void **p = &held[who][slot].block;
    const size_t n = 1 + (size_t)rand_r(seed) % (rand_r(seed) % 50 ? 200 : 300000);
    held[who][slot].bytes = n;
    switch (*p ? rand_r(seed) % 3 : 3 + rand_r(seed) % 3) {
    case 0: *p = agent_realloc(*p, n); return;
    case 1:
    case 2:
        agent_free(*p);
        *p = NULL;
        return;
    case 3: *p = agent_malloc(n); return;
    case 4: *p = agent_calloc(1, n); return;
    default: *p = agent_aligned_alloc(64, held[who][slot].bytes = la_up(n, 64));
    }
}

static void *work(void *argument)
{
    const int who = (int)(long)argument;
    unsigned seed = 28 + (unsigned)who;
    for (int k = 0; k < STEPS; k++)
        step(&seed, who);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    long live = 0, wrong = 0, known = 0, with_stack = 0;
    agent_free(agent_malloc(1)); /* the allocator is looked up while there is one thread */
    la_stacks_start();
    la_blocks_start();
    for (long k = 0; k < THREADS; k++)
        pthread_create(&threads[k], NULL, work, (void *)k);
    for (long k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    la_blocks_stop();
    for (int who = 0; who < THREADS; who++)
        for (int slot = 0; slot < SLOTS; slot++)
            if (held[who][slot].block) {
                const struct la_block *found = la_block_at((uint64_t)held[who][slot].block);
                live++;
                wrong += !found || found->bytes != held[who][slot].bytes;
                agent_free(held[who][slot].block);
            }
    for (uint64_t k = 0; k < la_blocks_slots; k++) {
        known += la_blocks[k].address != 0;
        with_stack += la_blocks[k].address && la_blocks[k].stack;
    }
    printf("%ld %ld %ld %ld\n", live, wrong, known, with_stack);
    return 0;
}
