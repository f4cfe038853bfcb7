"""Kernels for tests, and the device that they run on."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from layout_advise.errors import MachineError
from layout_advise.opencl.host.launch import Argument, BufferArgument, Bytes, Launch, ValueArgument
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.host.session import DeviceSession
from layout_advise.opencl.host.variants import KernelVariant

FORCES = """
#define REAL float
typedef struct { REAL x, y, z; REAL vx, vy, vz; REAL m; int id; } Body;
REAL square(REAL v) { return v * v; }
__kernel void forces(__global Body *b, const int n, __global const float *scale)
{
    const int i = get_global_id(0);
    REAL ax = 0;
    for (int j = 0; j < n; j++) {
        const REAL d = square(b[j].x - b[i].x) + square(b[j].y - b[i].y) + square(b[j].z - b[i].z) + 0.01f;
        ax += b[j].m * scale[0] / d;
    }
    b[i].vx += ax;
    b[i].vy -= ax;
}
"""

MANY_USES = """
typedef struct { int a; float b; char c; float4 d; short e[3]; long f; int hits; } Item;
typedef struct { float low, high; } Range;
long helper(__global const Item *restrict p, Item own, int k) { return p[k].a + own.e[k % 3] + p->f; }
__global Item *moved(__global Item *p, int k) { return p + k; }
__kernel void many(__global Item *in, __global Item *out, __global Range *ranges, __local int *shared, int n)
{
    size_t i = get_global_id(0), n1 = n - 1;
    Item own = in[i], copies[2];
    __global Item *p = in + i, *q = &out[i];
    copies[0] = own; copies[1] = *p;
    Item *near = &copies[1];
    q->a = helper(in, own, (int)(i % 4)) + near->a + copies[0].e[1];
    (*q).b = moved(in, (int)i)->b * 2 + ranges[i % n].high;
    q->d = p->d.yxwz; q->d.x = 7; q->d.zw += (float2)(1, 2);
    for (int k = 0; k < 3; k++) out[i].e[k] = in[n1 - i].e[k] + (short)k;
    p = out; p += n1; p -= n1 - i;
    if (p == q && p <= out + n1 && q - out == (long)i) p->c = in[i].c + 1;
    p->f = sizeof(in[0]) + sizeof(Item);
    atomic_add(&out[i % 3].hits, 2);
    p++; p--; ++p; --p;
    shared[get_local_id(0)] = q->a;
    barrier(CLK_LOCAL_MEM_FENCE);
    ranges[i].low = shared[get_local_size(0) - 1 - get_local_id(0)];
    if (i == n1) out[i] = in[3];
}
"""


@cache
def _device() -> Any:
    try:
        return devices()[0]
    except MachineError as error:
        return error


def device() -> Any:
    """The first device; the test is skipped where there is none."""
    found = _device()
    if isinstance(found, MachineError):
        pytest.skip(found.line())
    return found


def random_bytes(count: int, seed: int = 1) -> Bytes:
    """Bytes of small floats: any of them is a valid number."""
    values = np.random.default_rng(seed).uniform(0.5, 2.0, -(-count // 4)).astype(np.float32)
    return values.view(np.uint8)[:count].copy()


def forces_launch(count: int = 64) -> Launch:
    """A launch of ``FORCES``."""
    arguments: tuple[Argument, ...] = (
        BufferArgument(0),
        ValueArgument(np.int32(count).tobytes()),
        BufferArgument(1),
    )
    return Launch(FORCES, "", "forces", arguments, (random_bytes(32 * count), random_bytes(4, 2)), (count,), (16,))


def left_by(session: DeviceSession, variant: KernelVariant, first: Launch) -> tuple[Bytes, ...]:
    """What the first launch of a variant leaves in the program's own layout."""
    launch = variant.launches[0]
    program = session.build(variant.source, launch.options)
    buffers = [session.buffer(data) for data in launch.buffers]
    kernel = session.prepared(program, launch.kernel, launch.arguments, buffers)
    session.launch(kernel, launch.global_size, launch.local_size, launch.offset)
    read = [session.read(buffer, len(data)) for buffer, data in zip(buffers, launch.buffers, strict=True)]
    return variant.originals(0, read, first)
