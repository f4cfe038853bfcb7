"""A library that pretends to be OpenCL, and a host program of it: what no driver here has, or no driver should do."""

from __future__ import annotations

import subprocess
from pathlib import Path

LIBRARY = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void *handle;
static char things[64];
static handle made(int *error)
{
    static int count;
    if (error != NULL)
        *error = 0;
    return &things[count++];
}
int clGetPlatformIDs(uint32_t room, handle *found, uint32_t *count)
{
    (void)room, (void)found, (void)count;
    return -1001;
}
handle clCreateProgramWithSource(handle c, uint32_t n, const char **s, const size_t *l, int *e)
{
    (void)c, (void)n, (void)s, (void)l;
    return made(e);
}
handle clCreateProgramWithBinary(handle c, uint32_t n, const handle *d, const size_t *l, const unsigned char **b, int *s,
                                 int *e)
{
    (void)c, (void)n, (void)d, (void)l, (void)b, (void)s;
    return made(e);
}
handle clCreateProgramWithIL(handle c, const void *il, size_t l, int *e)
{
    (void)c, (void)il, (void)l;
    return made(e);
}
int clBuildProgram(handle p, uint32_t n, const handle *d, const char *o, void (*f)(handle, void *), void *x)
{
    (void)p, (void)n, (void)d, (void)f, (void)x;
    return o != NULL && strcmp(o, "-DFAILS") == 0 ? -11 : 0;
}
int clCompileProgram(handle p, uint32_t n, const handle *d, const char *o, uint32_t h, const handle *q, const char **m,
                     void (*f)(handle, void *), void *x)
{
    (void)p, (void)n, (void)d, (void)o, (void)h, (void)q, (void)m, (void)f, (void)x;
    return 0;
}
handle clLinkProgram(handle c, uint32_t n, const handle *d, const char *o, uint32_t k, const handle *p,
                     void (*f)(handle, void *), void *x, int *e)
{
    (void)c, (void)n, (void)d, (void)o, (void)k, (void)p, (void)f, (void)x;
    return made(e);
}
int clGetProgramInfo(handle p, uint32_t what, size_t room, void *value, size_t *needed)
{
    (void)p, (void)what, (void)room;
    memcpy(value, &(handle){things}, sizeof(handle));
    *needed = sizeof(handle);
    return 0;
}
int clGetProgramBuildInfo(handle p, handle d, uint32_t what, size_t room, void *value, size_t *needed)
{
    (void)p, (void)d, (void)what, (void)needed;
    snprintf(value, room, "a note\nkernel.cl:3:1: error: use of undeclared identifier 'oops'\nerror: another\n");
    return 0;
}
handle clCreateKernel(handle p, const char *n, int *e) { (void)p, (void)n; return made(e); }
int clSetKernelArg(handle k, uint32_t n, size_t b, const void *v) { (void)k, (void)n, (void)b, (void)v; return 0; }
int clSetKernelArgSVMPointer(handle k, uint32_t n, const void *v) { (void)k, (void)n, (void)v; return 0; }
handle clCreateBuffer(handle c, uint64_t f, size_t b, void *d, int *e)
{
    (void)c, (void)f, (void)b, (void)d;
    return made(e);
}
handle clCreateSubBuffer(handle b, uint64_t f, uint32_t t, const void *r, int *e)
{
    (void)b, (void)f, (void)t, (void)r;
    return made(e);
}
handle clCreateImage(handle c, uint64_t f, const void *m, const void *s, void *d, int *e)
{
    (void)c, (void)f, (void)m, (void)s, (void)d;
    return made(e);
}
handle clCreateImage2D(handle c, uint64_t f, const void *m, size_t w, size_t h, size_t r, void *d, int *e)
{
    (void)c, (void)f, (void)m, (void)w, (void)h, (void)r, (void)d;
    return made(e);
}
handle clCreateSampler(handle c, uint32_t n, uint32_t a, uint32_t f, int *e)
{
    (void)c, (void)n, (void)a, (void)f;
    return made(e);
}
handle clCreatePipe(handle c, uint64_t f, uint32_t s, uint32_t n, const void *p, int *e)
{
    (void)c, (void)f, (void)s, (void)n, (void)p;
    return made(e);
}
int clEnqueueReadBuffer(handle q, handle b, uint32_t w, size_t o, size_t n, void *to, uint32_t c, const handle *l, handle *e)
{
    (void)q, (void)b, (void)w, (void)o, (void)c, (void)l, (void)e;
    memset(to, 0, n);
    return 0;
}
int clEnqueueNDRangeKernel(handle q, handle k, uint32_t d, const size_t *o, const size_t *g, const size_t *l, uint32_t c,
                           const handle *w, handle *e)
{
    (void)q, (void)k, (void)d, (void)o, (void)g, (void)l, (void)c, (void)w, (void)e;
    return 0;
}
int clFinish(handle q) { (void)q; return 0; }
"""

HOST = r"""
#define CL_TARGET_OPENCL_VERSION 220
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <string.h>

static const char *source = "typedef struct { float a; int b; } S;\n"
    "__kernel void odd(__global S *p, __global float *q) { p[get_global_id(0)].a = q[0]; }\n"
    "__kernel void even(__global S *p) { size_t i = get_global_id(0); p[i].a = p[i].b; }\n";

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const unsigned char bytes[] = "x", *binary = bytes;
    const size_t length = 1, items = 8;
    cl_program good = clCreateProgramWithSource(NULL, 1, &source, NULL, NULL), program = good;
    if (strcmp(how, "platform") == 0)
        return clGetPlatformIDs(0, NULL, NULL) == 0 ? 0 : 3;
    if (strcmp(how, "build") == 0)
        return clBuildProgram(good, 0, NULL, "-DFAILS", NULL, NULL) == 0 ? 0 : 3;
    clBuildProgram(good, 0, NULL, "", NULL, NULL);
    if (strcmp(how, "binary") == 0)
        program = clCreateProgramWithBinary(NULL, 1, NULL, &length, &binary, NULL, NULL);
    if (strcmp(how, "il") == 0)
        program = clCreateProgramWithIL(NULL, bytes, length, NULL);
    if (strcmp(how, "linked") == 0 || strcmp(how, "one") == 0) {
        cl_program parts[] = {clCreateProgramWithSource(NULL, 1, &source, NULL, NULL), good};
        clCompileProgram(parts[0], 0, NULL, "-DK=3", 0, NULL, NULL, NULL, NULL);
        program = clLinkProgram(NULL, 0, NULL, "", strcmp(how, "one") == 0 ? 1 : 2, parts, NULL, NULL, NULL);
    }
    cl_kernel odd = clCreateKernel(program, "odd", NULL), even = clCreateKernel(good, "even", NULL);
    cl_mem p = clCreateBuffer(NULL, 0, 64, NULL, NULL), q = clCreateBuffer(NULL, 0, 64, NULL, NULL);
    if (strcmp(how, "part") == 0)
        q = clCreateSubBuffer(p, 0, CL_BUFFER_CREATE_TYPE_REGION, &(cl_buffer_region){0, 32}, NULL);
    if (strcmp(how, "image") == 0)
        q = clCreateImage(NULL, 0, NULL, NULL, NULL, NULL);
    if (strcmp(how, "image2d") == 0)
        q = clCreateImage2D(NULL, 0, NULL, 4, 4, 0, NULL, NULL);
    if (strcmp(how, "sampler") == 0)
        q = (cl_mem)clCreateSampler(NULL, 0, 0, 0, NULL);
    if (strcmp(how, "pipe") == 0)
        q = clCreatePipe(NULL, 0, 4, 4, NULL, NULL);
    clSetKernelArg(odd, 0, sizeof p, &p);
    clSetKernelArg(even, 0, sizeof p, &p);
    if (strcmp(how, "shared") == 0)
        clSetKernelArgSVMPointer(odd, 1, bytes);
    else
        clSetKernelArg(odd, 1, sizeof q, strcmp(how, "null") == 0 ? NULL : &q);
    clEnqueueNDRangeKernel(NULL, odd, 1, NULL, &items, NULL, 0, NULL, NULL);
    clEnqueueNDRangeKernel(NULL, even, 1, NULL, &items, NULL, 0, NULL, NULL);
    return 0;
}
"""


def built(folder: Path) -> Path:
    """The host program, linked with the library that pretends."""
    (folder / "library.c").write_text(LIBRARY)
    (folder / "host.c").write_text(HOST)
    common = ["gcc", "-std=gnu11", "-O0", "-Wall", "-Wno-deprecated-declarations"]
    subprocess.run([*common, "-shared", "-fPIC", "-o", "libOpenCL.so", "library.c"], cwd=folder, check=True)
    words = [*common, "-o", "host", "host.c", f"-L{folder}", f"-Wl,-rpath,{folder}", "-lOpenCL"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / "host"
