/* Calls that make programs and kernels, and set their arguments. */
#define _GNU_SOURCE
#include "recorder.h"

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
