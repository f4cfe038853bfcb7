"""A program over particles for tests of the agent, and mock-ups of its hotspot by hand."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from layout_advise.tracer.process.agent import ABI_HEADER
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.agent_process import AgentProcess

N = 20000

PROGRAM = r"""
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct p { double x, v, rest[6]; };
static struct p *ps;
double total, scale[4] = {1, 2, 3, 4};
__attribute__((noipa)) static double hot(struct p *q, long n, double dt) {
    double s = 0;
    for (long i = 0; i < n; i++) { q[i].x += q[i].v * dt; s += q[i].x; }
    return s;
}
__attribute__((noipa, target("avx"))) void wide(double *out, __m256d a, __m256d b) {
    _mm256_storeu_pd(out, _mm256_add_pd(a, b));
}
__attribute__((noipa)) void crash(int *where) { *where = 1; }
__attribute__((target("avx"))) static void call_wide(int k) {
    wide(scale, _mm256_set1_pd(k), _mm256_loadu_pd(scale));
}
int main(int argc, char **argv) {
    long n = atol(argv[1]);
    ps = calloc(n, sizeof *ps);
    for (long i = 0; i < n; i++) { ps[i].x = i; ps[i].v = 0.5 * i; }
    free(malloc(1000));
    for (int k = 0; k < 10; k++) { total += hot(ps, n, 0.25); call_wide(k); }
    if (argc > 2 && !strcmp(argv[2], "crash")) crash(NULL);
    if (argc > 2 && !strcmp(argv[2], "hang")) for (;;) {}
    printf("%g %g\n", total, scale[3]);
    return 7;
}
"""

MOCKUP = r"""
#include "abi.h"
#include <stddef.h>
#include <string.h>
struct p { double x, v, rest[6]; };
const uint32_t la_abi = LA_ABI, la_buffer_count = %(arrays)d;
const struct la_buffer_spec la_buffers[%(arrays)d] = {{8 * %(n)d, 64, 0, 0}, {8 * %(n)d, 64, 128, 0}};
static struct p *old(struct la_context *c) { return (struct p *)c->in.gpr[7]; }
void la_copy_in(struct la_context *c) {
    for (long i = 0; i < %(n)d; i++) {
        ((double *)c->buffers[0])[i] = old(c)[i].x;
        ((double *)c->buffers[1])[i] = old(c)[i].v;
    }
}
void la_run(struct la_context *c) {
    double *x = (double *)c->buffers[0], *v = (double *)c->buffers[1], s = 0, dt;
    memcpy(&dt, c->in.vector[0], 8);
    for (long i = 0; i < (long)c->in.gpr[6]; i++) { x[i] += v[i] * dt; s += x[i]; }
    memcpy(c->out.vector[0], &s, 8);
    %(extra)s
}
void la_copy_out(struct la_context *c) {
    for (long i = 0; i < %(n)d; i++) old(c)[i].x = ((double *)c->buffers[0])[i];
}
"""

IDENTITY = r"""
#include "abi.h"
#include <string.h>
struct p { double x, v, rest[6]; };
const uint32_t la_abi = LA_ABI, la_buffer_count = 0;
const struct la_buffer_spec la_buffers[1] = {{0, 0, 0, 0}};
void la_copy_in(struct la_context *c) { (void)c; }
void la_copy_out(struct la_context *c) { (void)c; }
void la_run(struct la_context *c) {
    struct p *q = (struct p *)c->in.gpr[7];
    double s = 0, dt;
    memcpy(&dt, c->in.vector[0], 8);
    for (long i = 0; i < (long)c->in.gpr[6]; i++) { q[i].x += q[i].v * dt; s += q[i].x; }
    memcpy(c->out.vector[0], &s, 8);
}
"""


def build_program(folder: Path, text: str, name: str, *flags: str) -> Path:
    source, target = folder / f"{name}.c", folder / name
    source.write_text(text)
    subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Wextra", str(source), "-o", str(target), *flags], check=True)
    return target


def build_mockup(folder: Path, name: str, extra: str = "", arrays: int = 2) -> Path:
    text = MOCKUP % {"n": N, "extra": extra, "arrays": arrays}
    return build_program(folder, text, name, "-shared", "-fPIC", "-ffp-contract=off", f"-I{ABI_HEADER.parent}")


def particles_of(stopped: AgentProcess, lines: int = N) -> Range:
    (found,) = [a for a in stopped.allocations() if a.bytes == 64 * lines]
    return Range(found.address, found.address + found.bytes)


def as_double(data: bytes) -> float:
    return float(struct.unpack("<d", data[:8])[0])
