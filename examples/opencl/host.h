/* What the host programs here share: a device, a program from a file, a launch. SPDX-License-Identifier: MIT */
#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct host {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
};

static void check(cl_int code, const char *what)
{
    if (code != CL_SUCCESS) {
        fprintf(stderr, "%s: OpenCL error %d\n", what, code);
        exit(1);
    }
}

static struct host start(const char *file, const char *options)
{
    static char source[1 << 16];
    FILE *text = fopen(file, "rb");
    if (text == NULL) {
        perror(file);
        exit(1);
    }
    source[fread(source, 1, sizeof source - 1, text)] = '\0';
    fclose(text);
    cl_platform_id platform;
    cl_device_id device;
    cl_int code;
    check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), "clGetDeviceIDs");
    struct host host;
    host.context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    check(code, "clCreateContext");
    host.queue = clCreateCommandQueue(host.context, device, 0, &code);
    check(code, "clCreateCommandQueue");
    const char *lines = source;
    host.program = clCreateProgramWithSource(host.context, 1, &lines, NULL, &code);
    check(code, "clCreateProgramWithSource");
    check(clBuildProgram(host.program, 1, &device, options, NULL, NULL), "clBuildProgram");
    return host;
}

static cl_mem buffer(struct host host, void *data, size_t bytes)
{
    cl_int code;
    cl_mem made = clCreateBuffer(host.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, data, &code);
    check(code, "clCreateBuffer");
    return made;
}

static cl_kernel kernel(struct host host, const char *name)
{
    cl_int code;
    cl_kernel made = clCreateKernel(host.program, name, &code);
    check(code, name);
    return made;
}

/* An argument of any type but local memory. */
#define give(kernel, number, value) check(clSetKernelArg(kernel, number, sizeof(value), &(value)), "clSetKernelArg")

static inline void launch(struct host host, cl_kernel one, size_t items, size_t group)
{
    check(clEnqueueNDRangeKernel(host.queue, one, 1, NULL, &items, &group, 0, NULL, NULL), "clEnqueueNDRangeKernel");
}

static inline void launch_rows(struct host host, cl_kernel one, size_t width, size_t height)
{
    const size_t items[] = {width, height}, group[] = {width % 64 == 0 ? 64 : 1, 1};
    check(clEnqueueNDRangeKernel(host.queue, one, 2, NULL, items, group, 0, NULL, NULL), "clEnqueueNDRangeKernel");
}

static inline void send(struct host host, cl_mem to, const void *from, size_t bytes)
{
    check(clEnqueueWriteBuffer(host.queue, to, CL_TRUE, 0, bytes, from, 0, NULL, NULL), "clEnqueueWriteBuffer");
}

/* Word number k of the command line as a number, or what there is without it. */
static inline size_t number(int argc, char **argv, int k, size_t otherwise)
{
    return argc > k ? strtoul(argv[k], NULL, 10) : otherwise;
}

/* Zeroed memory, or the end. */
static inline void *memory(size_t count, size_t bytes)
{
    void *made = calloc(count ? count : 1, bytes);
    if (made == NULL) {
        perror("calloc");
        exit(1);
    }
    return made;
}

/* Numbers between 0 and 1 that look like chance, the same in each run. */
static inline float chance(void)
{
    static unsigned state = 2015;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (float)(1 << 24);
}

static void fetch(struct host host, cl_mem from, void *to, size_t bytes)
{
    check(clEnqueueReadBuffer(host.queue, from, CL_TRUE, 0, bytes, to, 0, NULL, NULL), "clEnqueueReadBuffer");
}
