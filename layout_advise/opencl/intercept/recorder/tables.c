/* The memory, programs and kernels that the program has made, and the launches of each kernel. */
#define _GNU_SOURCE
#include "recorder.h"

static struct memory memories[MOST];
static struct program programs[MOST];
static size_t memory_count, program_count, kernel_count;
static uint64_t serials;
struct kernel *kernels[MOST];
struct use uses[MOST];
size_t use_count;
uint64_t epoch = 1;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct memory *memory_of(handle id)
{
    for (size_t k = 0; k < memory_count; k++)
        if (memories[k].id == id)
            return &memories[k];
    return NULL;
}

/* The number of the memory; has_data: the host gave its content. */
void know_memory(handle id, enum memory_kind kind, size_t bytes, int has_data)
{
    if (id == NULL)
        return;
    pthread_mutex_lock(&lock);
    struct memory *old = memory_of(id);
    if (old == NULL && memory_count < MOST)
        old = &memories[memory_count++];
    if (old != NULL) {
        *old = (struct memory){id, kind, bytes, serials++};
        if (kind == BUFFER)
            note("%c %" PRIu64 "\n", has_data ? 'w' : 'n', old->serial);
    }
    pthread_mutex_unlock(&lock);
}

struct program *program_of(handle id)
{
    for (size_t k = program_count; k-- > 0;)
        if (programs[k].id == id)
            return &programs[k];
    return NULL;
}

void know_program(handle id, char *source)
{
    pthread_mutex_lock(&lock);
    if (id != NULL && program_count < MOST)
        programs[program_count++] = (struct program){id, source, NULL, 0};
    pthread_mutex_unlock(&lock);
}

struct kernel *kernel_of(handle id)
{
    for (size_t k = kernel_count; k-- > 0;)
        if (kernels[k]->id == id)
            return kernels[k];
    return NULL;
}

void know_kernel(handle id, handle program, const char *name)
{
    pthread_mutex_lock(&lock);
    struct kernel *one = id != NULL && kernel_count < MOST ? calloc(1, sizeof *one) : NULL;
    if (one != NULL) {
        one->id = id;
        one->program = program_of(program);
        one->name = strdup(name);
        kernels[kernel_count++] = one;
    }
    pthread_mutex_unlock(&lock);
}

/* The host reads (r), writes (w) or changes (c) a buffer. */
void host_touched(handle id, char how)
{
    pthread_mutex_lock(&lock);
    const struct memory *memory = memory_of(id);
    if (memory != NULL && memory->kind == BUFFER)
        note("%c %" PRIu64 "\n", how, memory->serial);
    else
        note("o\n");
    epoch++;
    pthread_mutex_unlock(&lock);
}

char written(handle id, size_t offset, size_t bytes)
{
    const struct memory *memory = memory_of(id);
    return memory != NULL && offset == 0 && bytes == memory->bytes ? 'w' : 'c';
}

void something_else(void)
{
    pthread_mutex_lock(&lock);
    note("o\n");
    epoch++;
    pthread_mutex_unlock(&lock);
}

/* The use that a kernel's launches are counted as; *is_new for the first one. */
struct use *use_of(const struct kernel *kernel, int *is_new)
{
    const char *source = kernel->program != NULL && kernel->program->source != NULL ? kernel->program->source : "";
    *is_new = 0;
    for (size_t k = 0; k < use_count; k++)
        if (strcmp(uses[k].name, kernel->name) == 0 && strcmp(uses[k].source, source) == 0)
            return &uses[k];
    if (use_count == MOST)
        return NULL;
    *is_new = 1;
    uses[use_count] = (struct use){strdup(kernel->name), strdup(source), 0, 0, 0, 0};
    return &uses[use_count++];
}
