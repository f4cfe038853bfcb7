"""Other work-group sizes: whether the advised layout gains with these, too."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.mockup.timing.statistics import undisturbed_ratio
from layout_advise.opencl.host.launch import Launch, LocalArgument, checked_kernel
from layout_advise.opencl.host.variants import KernelVariant, original, variant
from layout_advise.opencl.measure.clock import Clock
from layout_advise.opencl.measure.jobs import DeviceName, KernelJob
from layout_advise.opencl.measure.processes import over_processes, times_of
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.rewrite.layouts import BufferLayout
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.kernels import GroupSize

SIZES = (16, 64, 256)
PROCESSES = 3
_BOUND = ("get_local_size", "get_local_id", "get_group_id", "get_num_groups", "barrier", "work_group_barrier")
"""Functions by which a kernel's result may hang on the size of its groups."""


def free_sizes(program: KernelProgram, launch: Launch, most: int) -> tuple[int, ...]:
    """The sizes that a kernel of one dimension can be run with as well; none where its groups mean something."""
    kernel = checked_kernel(program, launch)
    if len(launch.global_size) != 1 or any(isinstance(argument, LocalArgument) for argument in launch.arguments):
        return ()
    text = program.source.text
    if any(word in text for word in _BOUND) or "reqd_work_group_size" in text or kernel.node is None:
        return ()
    own = launch.local_size[0] if launch.local_size else 0
    return tuple(size for size in SIZES if size != own and size <= most and launch.global_size[0] % size == 0)


def group_sizes(
    program: KernelProgram, launches: Sequence[Launch], layouts: Sequence[BufferLayout], device: DeviceName, clock: Clock
) -> tuple[GroupSize, ...]:
    """Original and advised layout with other sizes, where all kernels are free of their groups."""
    most = device.find().max_work_group_size
    sizes = set.intersection(*(set(free_sizes(program, launch, most)) for launch in launches))
    found = []
    for size in sorted(sizes):
        resized = [launch.of_group((size,)) for launch in launches]
        variants: tuple[KernelVariant, ...] = (original(resized), variant("advised", program, resized, layouts))
        rows = over_processes(KernelJob(device, variants, OPENCL.seconds / 2), PROCESSES)
        if any(outcome.problem for row in rows for outcome in row):
            continue
        base, new = times_of(rows, 0, clock), times_of(rows, 1, clock)
        ratio = undisturbed_ratio(base, new)
        found.append(GroupSize((size,), min(base), Interval(ratio.median, ratio.lo, ratio.hi, ratio.restores)))
    return tuple(found)
