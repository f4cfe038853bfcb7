"""Calibration kernels, timed on a device in every tile: what a tree for its tiles is trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from layout_advise.errors import MockupError
from layout_advise.opencl.host.launch import BufferArgument, Launch, ValueArgument
from layout_advise.opencl.host.variants import original, variant
from layout_advise.opencl.measure.clock import Clock, time_by
from layout_advise.opencl.measure.jobs import DeviceName, KernelJob
from layout_advise.opencl.measure.processes import in_fresh_process
from layout_advise.opencl.rewrite.layouts import layout
from layout_advise.opencl.source.read import read_program

TILES = (1, 4, 16, 64, 256, 1024, 4096)
"""Elements in a tile; 1 is an array of structures."""
GROUP = 64
SECONDS = 0.05
"""A layout is timed for about so long; at least three calls."""


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """The features that a tile hangs on: bytes of an element in the cluster, its members, the elements in a buffer, how many
    of them a work item goes through, of how many at once it reads a member (``around``: 5 for a five-point stencil), and the
    ``dimensions`` of the range (decision 92)."""

    bytes: int
    members: int
    elements: int
    trips: int
    around: int = 1
    dimensions: int = 1

    @property
    def features(self) -> tuple[float, ...]:
        """The shape as the tree has it."""
        return tuple(map(float, astuple(self)))


def _large(members: int) -> int:
    """Elements of the largest buffers."""
    return 1 << (20 if members <= 6 else 19)


@dataclass(frozen=True, slots=True)
class TileSample:
    """A calibration kernel: ns by tile."""

    shape: ClusterShape
    times: dict[int, float]

    def known(self, tile: int) -> int:
        """The tile itself; of one that is too long for the shape the longest that fits."""
        return max(known for known in self.times if known <= tile)


MEMBERS = (2, 3, 4, 6, 8, 12)
SHAPES = (
    *(
        ClusterShape(4 * members, members, elements, trips)
        for members in MEMBERS
        for elements in (1 << 10, 1 << 14, 1 << 17, _large(members))
        for trips in (1, 16)
    ),
    *(
        ClusterShape(4 * members, members, elements, 1, around, dimensions)
        for members in (2, 4, 6, 12)
        for elements in (1 << 12, 1 << 16, _large(members))
        for around, dimensions in ((3, 1), (1, 2), (5, 2))
    ),
)
"""From the first cache to 16 MiB and more, of which each layout has a buffer of its own; streams, then stencils, and streams
over ranges of two dimensions, as these are indexed otherwise."""


def calibration_source(members: int) -> str:
    """Kernels over records of floats: each item changes its own element, sums up some elements from its own on, or reads one
    member of those beside it in one dimension, or of its own or those around it in two, and the others of its own, and
    writes the last one."""
    names = [f"m{k}" for k in range(members)]
    fields = " ".join(f"float {name};" for name in names)
    changed = "\n".join(f"    r[i].{name} = r[i].{name} * 0.5f + 1.0f;" for name in names)
    summed = " + ".join(f"r[k].{name}" for name in names)
    own = "".join(f" + r[i].{name}" for name in names[1:-1])
    last = names[-1]
    return f"""typedef struct {{ {fields} }} element;
__kernel void change(__global element *r, __global float *out, int size)
{{
    const size_t i = get_global_id(0);
{changed}
}}
__kernel void total(__global const element *r, __global float *out, int trips)
{{
    const size_t i = get_global_id(0), n = get_global_size(0);
    float sum = 0;
    for (int t = 0; t < trips; t++) {{
        const size_t k = (i + t) % n;
        sum += {summed};
    }}
    out[i] = sum;
}}
__kernel void beside(__global element *r, __global float *out, int size)
{{
    const int i = get_global_id(0), n = get_global_size(0);
    const float here = r[i].m0, left = r[max(i - 1, 0)].m0, right = r[min(i + 1, n - 1)].m0;
    r[i].{last} = here + 0.1f * (left + right - 2 * here){own};
}}
__kernel void plane(__global element *r, __global float *out, int size)
{{
    const int x = get_global_id(0), y = get_global_id(1), i = y * size + x;
    r[i].{last} = r[i].m0 * 0.5f{own};
}}
__kernel void around(__global element *r, __global float *out, int size)
{{
    const int x = get_global_id(0), y = get_global_id(1), height = get_global_size(1), i = y * size + x;
    const float here = r[i].m0, left = r[y * size + max(x - 1, 0)].m0, right = r[y * size + min(x + 1, size - 1)].m0;
    const float up = r[max(y - 1, 0) * size + x].m0, down = r[min(y + 1, height - 1) * size + x].m0;
    r[i].{last} = here + 0.1f * (left + right + up + down - 4 * here){own};
}}
"""


_KERNELS = {(3, 1): "beside", (1, 2): "plane", (5, 2): "around"}


def calibration_launch(shape: ClusterShape) -> Launch:
    """The kernel of a shape with its buffers; its number is that of the turns, or the width of two dimensions."""
    width = max(GROUP, 1 << (shape.elements.bit_length() // 2))
    plane = shape.dimensions == 2
    kernel = _KERNELS.get((shape.around, shape.dimensions), "change" if shape.trips == 1 else "total")
    size = width if plane else shape.trips
    items = (width, shape.elements // width) if plane else (shape.elements,)
    random = np.random.default_rng(shape.members).uniform(0, 1, shape.members * shape.elements).astype(np.float32)
    buffers = random.view(np.uint8), np.zeros(4 * shape.elements, dtype=np.uint8)
    given = (BufferArgument(0), BufferArgument(1), ValueArgument(np.int32(size).tobytes()))
    return Launch(calibration_source(shape.members), "", kernel, given, buffers, items, (GROUP, 1)[: len(items)])


def sampled(shape: ClusterShape, device: DeviceName, clock: Clock = "device", seconds: float = SECONDS) -> TileSample:
    """The kernel of a shape in every tile that fits, interleaved in a fresh process; by the time that all its threads ran
    (``clock`` is ``cpu``) where the processor is the device, as other work lengthens it less. Raises MockupError where one
    of them does not run or computes something else."""
    launch = calibration_launch(shape)
    program = read_program(launch.source)
    (record,) = program.records
    tiles = [tile for tile in TILES if 1 < tile <= shape.elements]
    whole = (tuple(range(shape.members)),)
    tiled = [variant(str(tile), program, [launch], [layout(record, whole, (tile,))]) for tile in tiles]
    outcomes = in_fresh_process(KernelJob(device, (original([launch]), *tiled), seconds))
    for outcome in outcomes:
        why = outcome.problem or (outcome.compared.problem if outcome.compared is not None else "")
        if why:
            raise MockupError(f"cannot calibrate {device.name}", why, "a kernel of the calibration must run")
    return TileSample(shape, {tile: time_by(one, clock) for tile, one in zip((1, *tiles), outcomes, strict=True)})


def samples(
    device: DeviceName, shapes: Sequence[ClusterShape], tell: Callable[[str], None], clock: Clock, seconds: float = SECONDS
) -> list[TileSample]:
    """All shapes, one after the other."""
    found = []
    for number, shape in enumerate(shapes, 1):
        tell(f"{device.name}: calibration kernel {number} of {len(shapes)}")
        found.append(sampled(shape, device, clock, seconds))
    return found
