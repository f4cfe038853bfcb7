/* Preloaded into a program that uses OpenCL: writes down each kernel's source, build options, arguments and buffers at one of
 * its launches, and how often and how long each was launched. The program computes what it computed before.
 *
 * LAYOUT_ADVISE_RECORD names an empty folder. Launch number k of the first of each kernel goes to the folder k in it (files
 * launch, source, options, bN for buffer N), the counts to the file counts, one line a kernel. The file order has what happens
 * to buffers, one line each: n BUFFER (made without data), w (the host writes all of it), c (a part), r (the host reads),
 * k KERNEL BUFFER... (a launch), o (something else), and more where there is too much of it. The file failed has the log of the
 * first program that did not build, the file platforms is there where the program found none. Calls are passed on to the
 * library that the program would have called; queues are drained before a recorded launch and around a timed one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

typedef void *handle;

enum { MOST = 4096, MOST_ARGUMENTS = 128, FUNCTION_NAME = 0x1190, READ_BLOCKING = 1, PATH = 4096 };
enum { COMMAND_TYPE = 0x11D2, USER_EVENT = 0x1204, BUILD_LOG = 0x1183, DEVICES_OF_PROGRAM = 0x1163 };
enum { USES_HOST_DATA = 1 << 3 | 1 << 5, MAPPED_TO_WRITE = 1 << 1, MAPPED_ANEW = 1 << 2, MOST_EVENTS = 1 << 20 };
enum memory_kind { NO_MEMORY, BUFFER, PART_OF_BUFFER, NOT_A_BUFFER };

struct memory {
    handle id;
    enum memory_kind kind;
    size_t bytes;
    uint64_t serial; /* handles are used again */
};

struct program {
    handle id;
    char *source, *options;
    int parts; /* how many programs it was linked of; 0: it was not linked */
};

struct argument {
    size_t bytes;
    void *value; /* NULL: local memory, or never set */
    int set, shared; /* shared: virtual memory of host and device */
};

struct kernel {
    handle id;
    struct program *program;
    char *name;
    struct argument arguments[MOST_ARGUMENTS];
    unsigned count;
};

struct use { /* all launches of kernels of one name and source */
    char *name, *source;
    uint64_t calls, rounds, epoch;
    double seconds;
};

static struct memory memories[MOST];
static struct program programs[MOST];
static struct kernel *kernels[MOST];
static struct use uses[MOST];
static size_t memory_count, program_count, kernel_count, use_count;
static uint64_t epoch = 1; /* grows when the host touches a buffer */
static uint64_t serials, events;
static FILE *order;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- the library behind this one */

static int is_opencl(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    const char *slash = strrchr(info->dlpi_name, '/');
    if (strstr(slash ? slash : info->dlpi_name, "libOpenCL") == NULL)
        return 0;
    *(void **)found = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return *(void **)found != NULL;
}

static void *next(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) { /* loaded by a module of its own: not among the libraries that come next */
        void *library = NULL;
        dl_iterate_phdr(is_opencl, &library);
        if (library == NULL)
            library = dlopen("libOpenCL.so.1", RTLD_LAZY);
        found = library ? dlsym(library, name) : NULL;
    }
    if (found == NULL) {
        fprintf(stderr, "layout-advise: %s is not in the program's OpenCL library\n", name);
        abort();
    }
    return found;
}

/* A function of the same type as this one, of the library behind. */
#define NEXT(name)                                                                                                            \
    static __typeof__(&name) real;                                                                                            \
    if (real == NULL) {                                                                                                       \
        void *symbol = next(#name);                                                                                           \
        memcpy(&real, &symbol, sizeof real);                                                                                  \
    }

/* --- tables */

static struct memory *memory_of(handle id)
{
    for (size_t k = 0; k < memory_count; k++)
        if (memories[k].id == id)
            return &memories[k];
    return NULL;
}

static void note(const char *format, ...);

/* The number of the memory; has_data: the host gave its content. */
static void know_memory(handle id, enum memory_kind kind, size_t bytes, int has_data)
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

static struct program *program_of(handle id)
{
    for (size_t k = program_count; k-- > 0;)
        if (programs[k].id == id)
            return &programs[k];
    return NULL;
}

static void know_program(handle id, char *source)
{
    pthread_mutex_lock(&lock);
    if (id != NULL && program_count < MOST)
        programs[program_count++] = (struct program){id, source, NULL, 0};
    pthread_mutex_unlock(&lock);
}

static struct kernel *kernel_of(handle id)
{
    for (size_t k = kernel_count; k-- > 0;)
        if (kernels[k]->id == id)
            return kernels[k];
    return NULL;
}

static void know_kernel(handle id, handle program, const char *name)
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
static void host_touched(handle id, char how)
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

static char written(handle id, size_t offset, size_t bytes)
{
    const struct memory *memory = memory_of(id);
    return memory != NULL && offset == 0 && bytes == memory->bytes ? 'w' : 'c';
}

static void something_else(void)
{
    pthread_mutex_lock(&lock);
    note("o\n");
    epoch++;
    pthread_mutex_unlock(&lock);
}

/* --- what is written down */

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
static void note(const char *format, ...)
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

static void write_text(int number, const char *name, const char *text)
{
    FILE *file = opened(number, name);
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

static void write_counts(void)
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

static void write_launch(int number, const struct kernel *kernel, handle queue, unsigned dimensions, const size_t *offset,
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

/* The use that a kernel's launches are counted as; *is_new for the first one. */
static struct use *use_of(const struct kernel *kernel, int *is_new)
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

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((destructor)) static void finish(void)
{
    if (order != NULL)
        fflush(order);
    if (getenv("LAYOUT_ADVISE_RECORD") != NULL && use_count > 0)
        write_counts();
}

/* --- the calls that are watched */

handle clCreateProgramWithSource(handle context, uint32_t count, const char **strings, const size_t *lengths, int *error)
{
    NEXT(clCreateProgramWithSource)
    handle made = real(context, count, strings, lengths, error);
    size_t bytes = 0;
    for (uint32_t k = 0; k < count; k++)
        bytes += lengths != NULL && lengths[k] != 0 ? lengths[k] : strlen(strings[k]);
    char *source = calloc(bytes + 1, 1), *at = source;
    for (uint32_t k = 0; source != NULL && k < count; k++) {
        size_t length = lengths != NULL && lengths[k] != 0 ? lengths[k] : strlen(strings[k]);
        memcpy(at, strings[k], length);
        at += length;
    }
    know_program(made, source);
    return made;
}

handle clCreateProgramWithBinary(handle context, uint32_t count, const handle *devices, const size_t *lengths,
                                 const unsigned char **binaries, int *status, int *error)
{
    NEXT(clCreateProgramWithBinary)
    handle made = real(context, count, devices, lengths, binaries, status, error);
    know_program(made, NULL);
    return made;
}

handle clCreateProgramWithIL(handle context, const void *il, size_t length, int *error)
{
    NEXT(clCreateProgramWithIL)
    handle made = real(context, il, length, error);
    know_program(made, NULL);
    return made;
}

int clGetProgramInfo(handle program, uint32_t what, size_t bytes, void *value, size_t *needed);
int clGetProgramBuildInfo(handle program, handle device, uint32_t what, size_t bytes, void *value, size_t *needed);

/* Writes down why a program did not build: the log of the first device that has one. */
static void write_failure(handle program)
{
    enum { ROOM = 1 << 16, MOST_DEVICES = 64 };
    static int told;
    if (told || getenv("LAYOUT_ADVISE_RECORD") == NULL)
        return;
    void *symbols[] = {next("clGetProgramInfo"), next("clGetProgramBuildInfo")};
    __typeof__(&clGetProgramInfo) ask;
    __typeof__(&clGetProgramBuildInfo) ask_device;
    memcpy(&ask, &symbols[0], sizeof ask);
    memcpy(&ask_device, &symbols[1], sizeof ask_device);
    handle devices[MOST_DEVICES] = {NULL};
    size_t bytes = 0;
    char *log = calloc(ROOM, 1);
    if (log != NULL && ask(program, DEVICES_OF_PROGRAM, sizeof devices, devices, &bytes) == 0)
        for (size_t k = 0; k < bytes / sizeof(handle) && log[0] == '\0'; k++)
            ask_device(program, devices[k], BUILD_LOG, ROOM - 1, log, NULL);
    told = 1;
    write_text(-1, "failed", log != NULL && log[0] != '\0' ? log : "the driver gives no log");
    free(log);
}

static void know_options(handle program, const char *options)
{
    pthread_mutex_lock(&lock);
    struct program *known = program_of(program);
    if (known != NULL && options != NULL) {
        free(known->options);
        known->options = strdup(options);
    }
    pthread_mutex_unlock(&lock);
}

int clBuildProgram(handle program, uint32_t count, const handle *devices, const char *options,
                   void (*notify)(handle, void *), void *data)
{
    NEXT(clBuildProgram)
    know_options(program, options);
    int result = real(program, count, devices, options, notify, data);
    if (result != 0)
        write_failure(program);
    return result;
}

int clCompileProgram(handle program, uint32_t count, const handle *devices, const char *options, uint32_t headers,
                     const handle *header, const char **names, void (*notify)(handle, void *), void *data)
{
    NEXT(clCompileProgram)
    know_options(program, options);
    int result = real(program, count, devices, options, headers, header, names, notify, data);
    if (result != 0)
        write_failure(program);
    return result;
}

/* A program that is linked of one other has the source of that one. */
handle clLinkProgram(handle context, uint32_t count, const handle *devices, const char *options, uint32_t parts,
                     const handle *part, void (*notify)(handle, void *), void *data, int *error)
{
    NEXT(clLinkProgram)
    handle made = real(context, count, devices, options, parts, part, notify, data, error);
    pthread_mutex_lock(&lock);
    const struct program *first = parts == 1 ? program_of(part[0]) : NULL;
    char *source = first != NULL && first->source != NULL ? strdup(first->source) : NULL;
    char *compiled = first != NULL && first->options != NULL ? strdup(first->options) : NULL;
    pthread_mutex_unlock(&lock);
    know_program(made, source);
    know_options(made, compiled);
    pthread_mutex_lock(&lock);
    struct program *known = program_of(made);
    if (known != NULL)
        known->parts = (int)parts;
    pthread_mutex_unlock(&lock);
    free(compiled);
    return made;
}

int clGetPlatformIDs(uint32_t room, handle *platforms, uint32_t *count)
{
    NEXT(clGetPlatformIDs)
    uint32_t there = 0;
    int result = real(room, platforms, &there);
    if (count != NULL)
        *count = there;
    if ((result != 0 || there == 0) && getenv("LAYOUT_ADVISE_RECORD") != NULL)
        write_text(-1, "platforms", "");
    return result;
}

handle clCreateKernel(handle program, const char *name, int *error)
{
    NEXT(clCreateKernel)
    handle made = real(program, name, error);
    know_kernel(made, program, name);
    return made;
}

int clGetKernelInfo(handle kernel, uint32_t what, size_t bytes, void *value, size_t *needed);

int clCreateKernelsInProgram(handle program, uint32_t room, handle *made, uint32_t *count)
{
    NEXT(clCreateKernelsInProgram)
    uint32_t there = 0;
    int result = real(program, room, made, &there);
    if (count != NULL)
        *count = there;
    void *symbol = next("clGetKernelInfo");
    __typeof__(&clGetKernelInfo) ask;
    memcpy(&ask, &symbol, sizeof ask);
    for (uint32_t k = 0; result == 0 && made != NULL && k < there && k < room; k++) {
        char name[512] = "";
        if (ask(made[k], FUNCTION_NAME, sizeof name, name, NULL) == 0)
            know_kernel(made[k], program, name);
    }
    return result;
}

static void set_argument(handle id, uint32_t number, size_t bytes, const void *value, int shared)
{
    pthread_mutex_lock(&lock);
    struct kernel *kernel = kernel_of(id);
    if (kernel != NULL && number < MOST_ARGUMENTS) {
        struct argument *one = &kernel->arguments[number];
        free(one->value);
        *one = (struct argument){bytes, value != NULL ? malloc(bytes ? bytes : 1) : NULL, 1, shared};
        if (one->value != NULL)
            memcpy(one->value, value, bytes);
        if (number >= kernel->count)
            kernel->count = number + 1;
    }
    pthread_mutex_unlock(&lock);
}

int clSetKernelArg(handle kernel, uint32_t number, size_t bytes, const void *value)
{
    NEXT(clSetKernelArg)
    int result = real(kernel, number, bytes, value);
    if (result == 0)
        set_argument(kernel, number, bytes, value, 0);
    return result;
}

int clSetKernelArgSVMPointer(handle kernel, uint32_t number, const void *value)
{
    NEXT(clSetKernelArgSVMPointer)
    int result = real(kernel, number, value);
    if (result == 0)
        set_argument(kernel, number, 0, NULL, 1);
    return result;
}

handle clCreateBuffer(handle context, uint64_t flags, size_t bytes, void *data, int *error)
{
    NEXT(clCreateBuffer)
    handle made = real(context, flags, bytes, data, error);
    know_memory(made, BUFFER, bytes, (flags & USES_HOST_DATA) != 0);
    return made;
}

handle clCreateBufferWithProperties(handle context, const uint64_t *properties, uint64_t flags, size_t bytes, void *data,
                                   int *error)
{
    NEXT(clCreateBufferWithProperties)
    handle made = real(context, properties, flags, bytes, data, error);
    know_memory(made, BUFFER, bytes, (flags & USES_HOST_DATA) != 0);
    return made;
}

handle clCreateSubBuffer(handle buffer, uint64_t flags, uint32_t type, const void *region, int *error)
{
    NEXT(clCreateSubBuffer)
    handle made = real(buffer, flags, type, region, error);
    know_memory(made, PART_OF_BUFFER, 0, 0);
    return made;
}

handle clCreateImage(handle context, uint64_t flags, const void *format, const void *shape, void *data, int *error)
{
    NEXT(clCreateImage)
    handle made = real(context, flags, format, shape, data, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateImageWithProperties(handle context, const uint64_t *properties, uint64_t flags, const void *format,
                                  const void *shape, void *data, int *error)
{
    NEXT(clCreateImageWithProperties)
    handle made = real(context, properties, flags, format, shape, data, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateImage2D(handle context, uint64_t flags, const void *format, size_t width, size_t height, size_t row,
                       void *data, int *error)
{
    NEXT(clCreateImage2D)
    handle made = real(context, flags, format, width, height, row, data, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateImage3D(handle context, uint64_t flags, const void *format, size_t width, size_t height, size_t depth,
                       size_t row, size_t slice, void *data, int *error)
{
    NEXT(clCreateImage3D)
    handle made = real(context, flags, format, width, height, depth, row, slice, data, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateSampler(handle context, uint32_t normalized, uint32_t addressing, uint32_t filter, int *error)
{
    NEXT(clCreateSampler)
    handle made = real(context, normalized, addressing, filter, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreateSamplerWithProperties(handle context, const uint64_t *properties, int *error)
{
    NEXT(clCreateSamplerWithProperties)
    handle made = real(context, properties, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

handle clCreatePipe(handle context, uint64_t flags, uint32_t packet, uint32_t most, const void *properties, int *error)
{
    NEXT(clCreatePipe)
    handle made = real(context, flags, packet, most, properties, error);
    know_memory(made, NOT_A_BUFFER, 0, 0);
    return made;
}

int clEnqueueReadBuffer(handle queue, handle buffer, uint32_t blocking, size_t offset, size_t bytes, void *to,
                        uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueReadBuffer)
    host_touched(buffer, 'r');
    return real(queue, buffer, blocking, offset, bytes, to, waits, wait, event);
}

int clEnqueueWriteBuffer(handle queue, handle buffer, uint32_t blocking, size_t offset, size_t bytes, const void *from,
                         uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueWriteBuffer)
    host_touched(buffer, written(buffer, offset, bytes));
    return real(queue, buffer, blocking, offset, bytes, from, waits, wait, event);
}

void *clEnqueueMapBuffer(handle queue, handle buffer, uint32_t blocking, uint64_t flags, size_t offset, size_t bytes,
                         uint32_t waits, const handle *wait, handle *event, int *error)
{
    NEXT(clEnqueueMapBuffer)
    char how = flags & (MAPPED_TO_WRITE | MAPPED_ANEW) ? 'c' : 'r';
    if (flags & MAPPED_ANEW)
        how = written(buffer, offset, bytes);
    host_touched(buffer, how);
    return real(queue, buffer, blocking, flags, offset, bytes, waits, wait, event, error);
}

int clEnqueueCopyBuffer(handle queue, handle from, handle to, size_t from_offset, size_t to_offset, size_t bytes,
                        uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueCopyBuffer)
    something_else();
    return real(queue, from, to, from_offset, to_offset, bytes, waits, wait, event);
}

int clEnqueueCopyBufferRect(handle queue, handle from, handle to, const size_t *from_offset, const size_t *to_offset,
                            const size_t *region, size_t from_row, size_t from_slice, size_t to_row, size_t to_slice,
                            uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueCopyBufferRect)
    something_else();
    return real(queue, from, to, from_offset, to_offset, region, from_row, from_slice, to_row, to_slice, waits, wait, event);
}

int clEnqueueCopyImageToBuffer(handle queue, handle from, handle to, const size_t *origin, const size_t *region,
                               size_t offset, uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueCopyImageToBuffer)
    something_else();
    return real(queue, from, to, origin, region, offset, waits, wait, event);
}

int clEnqueueTask(handle queue, handle kernel, uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueTask)
    something_else();
    return real(queue, kernel, waits, wait, event);
}

int clEnqueueFillBuffer(handle queue, handle buffer, const void *pattern, size_t size, size_t offset, size_t bytes,
                        uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueFillBuffer)
    something_else();
    return real(queue, buffer, pattern, size, offset, bytes, waits, wait, event);
}

int clEnqueueReadBufferRect(handle queue, handle buffer, uint32_t blocking, const size_t *offset, const size_t *host_offset,
                            const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice, void *to,
                            uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueReadBufferRect)
    host_touched(buffer, 'r');
    return real(queue, buffer, blocking, offset, host_offset, region, row, slice, host_row, host_slice, to, waits, wait,
                event);
}

int clEnqueueWriteBufferRect(handle queue, handle buffer, uint32_t blocking, const size_t *offset, const size_t *host_offset,
                             const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice,
                             const void *from, uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueWriteBufferRect)
    host_touched(buffer, 'c');
    return real(queue, buffer, blocking, offset, host_offset, region, row, slice, host_row, host_slice, from, waits, wait,
                event);
}

int clFinish(handle queue);
int clGetEventInfo(handle event, uint32_t what, size_t bytes, void *value, size_t *needed);
int clWaitForEvents(uint32_t count, const handle *events);

/* Waits for what a launch waits for; 0 where the program itself must set one of the events, which may come later. */
static int waited(uint32_t count, const handle *events)
{
    if (count == 0)
        return 1;
    void *symbols[] = {next("clGetEventInfo"), next("clWaitForEvents")};
    __typeof__(&clGetEventInfo) ask;
    __typeof__(&clWaitForEvents) wait;
    memcpy(&ask, &symbols[0], sizeof ask);
    memcpy(&wait, &symbols[1], sizeof wait);
    for (uint32_t k = 0; k < count; k++) {
        uint32_t type = USER_EVENT;
        if (ask(events[k], COMMAND_TYPE, sizeof type, &type, NULL) != 0 || type == USER_EVENT)
            return 0;
    }
    return wait(count, events) == 0;
}

static void note_launch(const struct kernel *kernel, size_t number)
{
    char line[MOST_ARGUMENTS * 24] = "";
    size_t used = 0;
    for (unsigned k = 0; k < kernel->count; k++) {
        const struct argument *one = &kernel->arguments[k];
        const struct memory *memory = NULL;
        if (one->value != NULL && one->bytes == sizeof(handle))
            memory = memory_of(*(handle *)one->value);
        if (memory != NULL && memory->kind == BUFFER)
            used += (size_t)snprintf(line + used, sizeof line - used, " %" PRIu64, memory->serial);
    }
    note("k %zu%s\n", number, line);
}

int clEnqueueNDRangeKernel(handle queue, handle id, uint32_t dimensions, const size_t *offset, const size_t *global,
                           const size_t *local, uint32_t waits, const handle *wait, handle *event)
{
    NEXT(clEnqueueNDRangeKernel)
    __typeof__(&clFinish) drain;
    void *symbol = next("clFinish");
    int is_new = 0;
    memcpy(&drain, &symbol, sizeof drain);
    pthread_mutex_lock(&lock);
    struct kernel *kernel = getenv("LAYOUT_ADVISE_RECORD") != NULL && waited(waits, wait) ? kernel_of(id) : NULL;
    struct use *use = kernel != NULL ? use_of(kernel, &is_new) : NULL;
    if (use == NULL) {
        note("o\n");
        pthread_mutex_unlock(&lock);
        return real(queue, id, dimensions, offset, global, local, waits, wait, event);
    }
    drain(queue);
    if (is_new)
        write_launch((int)(use - uses), kernel, queue, dimensions, offset, global, local);
    note_launch(kernel, (size_t)(use - uses));
    if (use->epoch != epoch)
        use->rounds++;
    use->epoch = epoch;
    double start = now();
    int result = real(queue, id, dimensions, offset, global, local, waits, wait, event);
    drain(queue);
    use->seconds += now() - start;
    use->calls++;
    if ((use->calls & (use->calls - 1)) == 0) {
        write_counts();
        if (order != NULL)
            fflush(order);
    }
    pthread_mutex_unlock(&lock);
    return result;
}
