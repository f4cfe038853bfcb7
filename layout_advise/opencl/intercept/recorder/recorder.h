/* Preloaded into a program that uses OpenCL: writes down each kernel's source, build options, arguments and buffers at one of
 * its launches, and how often and how long each was launched. The program computes what it computed before.
 *
 * LAYOUT_ADVISE_RECORD names an empty folder. Launch number k of the first of each kernel goes to the folder k in it (files
 * launch, source, options, bN for buffer N), the counts to the file counts, one line a kernel. The file order has what happens
 * to buffers, one line each: n BUFFER (made without data), w (the host writes all of it), c (a part), r (the host reads),
 * k KERNEL BUFFER... (a launch), o (something else), and more where there is too much of it. The file failed has the log of the
 * first program that did not build, the file platforms is there where the program found none. Calls are passed on to the
 * library that the program would have called; queues are drained before a recorded launch and around a timed one. */
#pragma once
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#pragma GCC visibility push(hidden) /* the program's own functions may have these names */

extern struct kernel *kernels[MOST];
extern struct use uses[MOST];
extern size_t use_count;
extern uint64_t epoch; /* grows when the host touches a buffer */
extern FILE *order;
extern pthread_mutex_t lock;

/* library.c: a function of the library behind this one. */
void *next(const char *name);

/* tables.c: what the program has made. The *_of want the lock held. */
struct memory *memory_of(handle id);
struct program *program_of(handle id);
struct kernel *kernel_of(handle id);
struct use *use_of(const struct kernel *kernel, int *is_new);
void know_memory(handle id, enum memory_kind kind, size_t bytes, int has_data);
void know_program(handle id, char *source);
void know_kernel(handle id, handle program, const char *name);
void host_touched(handle id, char how);
char written(handle id, size_t offset, size_t bytes);
void something_else(void);

/* files.c: what is written down. */
void note(const char *format, ...);
void write_text(int number, const char *name, const char *text);
void write_counts(void);
void write_launch(int number, const struct kernel *kernel, handle queue, unsigned dimensions, const size_t *offset,
                  const size_t *global, const size_t *local);

#pragma GCC visibility pop

/* A function of the same type as this one, of the library behind. */
#define NEXT(name)                                                                                                            \
    static __typeof__(&name) real;                                                                                            \
    if (real == NULL) {                                                                                                       \
        void *symbol = next(#name);                                                                                           \
        memcpy(&real, &symbol, sizeof real);                                                                                  \
    }
