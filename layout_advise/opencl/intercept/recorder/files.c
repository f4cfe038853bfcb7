/* The files of a record (recorder.h tells which). */
#define _GNU_SOURCE
#include "recorder.h"

#include <stdarg.h>
#include <sys/stat.h>

FILE *order;
static uint64_t events;

static FILE *opened(int number, const char *name)
{
    char path[PATH];
    const char *folder = getenv("LAYOUT_ADVISE_RECORD");
    if (number >= 0)
        snprintf(path, sizeof path, "%s/%d/%s", folder, number, name);
    else
        snprintf(path, sizeof path, "%s/%s", folder, name);
    return fopen(path, "wb");
}

/* One line, or a part of one, of the file order; the lock is held. */
void note(const char *format, ...)
{
    if (getenv("LAYOUT_ADVISE_RECORD") == NULL || events > MOST_EVENTS)
        return;
    if (order == NULL)
        order = opened(-1, "order");
    if (order == NULL)
        return;
    if (events++ == MOST_EVENTS) {
        fputs("\nmore\n", order);
        return;
    }
    va_list rest;
    va_start(rest, format);
    vfprintf(order, format, rest);
    va_end(rest);
}

void write_text(int number, const char *name, const char *text)
{
    FILE *file = opened(number, name);
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

void write_counts(void)
{
    FILE *file = opened(-1, "counts");
    if (file == NULL)
        return;
    for (size_t k = 0; k < use_count; k++)
        fprintf(file, "%s %" PRIu64 " %" PRIu64 " %.9f\n", uses[k].name, uses[k].calls, uses[k].rounds, uses[k].seconds);
    fclose(file);
}

int clEnqueueReadBuffer(handle queue, handle buffer, uint32_t blocking, size_t offset, size_t bytes, void *to,
                        uint32_t waits, const handle *wait, handle *event);

static void write_buffer(int number, unsigned argument, const struct memory *memory, handle queue)
{
    __typeof__(&clEnqueueReadBuffer) read;
    void *symbol = next("clEnqueueReadBuffer"), *data = malloc(memory->bytes ? memory->bytes : 1);
    char name[32];
    memcpy(&read, &symbol, sizeof read);
    snprintf(name, sizeof name, "b%u", argument);
    FILE *file = data != NULL ? opened(number, name) : NULL;
    if (file != NULL && read(queue, memory->id, READ_BLOCKING, 0, memory->bytes, data, 0, NULL, NULL) == 0)
        fwrite(data, 1, memory->bytes, file);
    if (file != NULL)
        fclose(file);
    free(data);
}

static void write_sizes(FILE *file, const char *word, unsigned dimensions, const size_t *sizes)
{
    if (sizes == NULL)
        return;
    fputs(word, file);
    for (unsigned k = 0; k < dimensions; k++)
        fprintf(file, " %zu", sizes[k]);
    fputc('\n', file);
}

static void write_argument(FILE *file, int number, const struct kernel *kernel, unsigned k, handle queue)
{
    const struct argument *one = &kernel->arguments[k];
    const struct memory *memory = NULL;
    if (one->value != NULL && one->bytes == sizeof(handle))
        memory = memory_of(*(handle *)one->value);
    if (one->shared)
        fprintf(file, "shared\n");
    else if (memory != NULL && memory->kind == BUFFER) {
        fprintf(file, "buffer %p %zu\n", memory->id, memory->bytes);
        write_buffer(number, k, memory, queue);
    } else if (memory != NULL)
        fprintf(file, "%s\n", memory->kind == PART_OF_BUFFER ? "part" : "image");
    else if (one->value == NULL)
        fprintf(file, "scratch %zu\n", one->bytes);
    else {
        fprintf(file, "value ");
        for (size_t b = 0; b < one->bytes; b++)
            fprintf(file, "%02x", ((unsigned char *)one->value)[b]);
        fputc('\n', file);
    }
}

void write_launch(int number, const struct kernel *kernel, handle queue, unsigned dimensions, const size_t *offset,
                  const size_t *global, const size_t *local)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/%d", getenv("LAYOUT_ADVISE_RECORD"), number);
    if (mkdir(path, 0700) != 0)
        return;
    const struct program *program = kernel->program;
    if (program != NULL && program->source != NULL)
        write_text(number, "source", program->source);
    if (program != NULL && program->parts > 1)
        write_text(number, "linked", "");
    write_text(number, "options", program != NULL && program->options != NULL ? program->options : "");
    FILE *file = opened(number, "launch");
    if (file == NULL)
        return;
    fprintf(file, "kernel %s\n", kernel->name);
    write_sizes(file, "offset", dimensions, offset);
    write_sizes(file, "global", dimensions, global);
    write_sizes(file, "local", dimensions, local);
    for (unsigned k = 0; k < kernel->count; k++)
        write_argument(file, number, kernel, k, queue);
    fclose(file);
}

__attribute__((destructor)) static void finish(void)
{
    if (order != NULL)
        fflush(order);
    if (getenv("LAYOUT_ADVISE_RECORD") != NULL && use_count > 0)
        write_counts();
}
