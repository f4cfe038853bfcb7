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

static void launch(struct host host, cl_kernel one, size_t items, size_t group)
{
    check(clEnqueueNDRangeKernel(host.queue, one, 1, NULL, &items, &group, 0, NULL, NULL), "clEnqueueNDRangeKernel");
}

static void fetch(struct host host, cl_mem from, void *to, size_t bytes)
{
    check(clEnqueueReadBuffer(host.queue, from, CL_TRUE, 0, bytes, to, 0, NULL, NULL), "clEnqueueReadBuffer");
}
