"""The accesses of some work items, noted by the kernel itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from layout_advise.opencl.host.launch import Argument, BufferArgument, Launch, ValueArgument, checked_kernel
from layout_advise.opencl.host.session import DeviceSession
from layout_advise.opencl.measure.jobs import DeviceName
from layout_advise.opencl.rewrite.rewrite import instrumented
from layout_advise.opencl.source.kernels import BufferRecord, KernelProgram

ITEMS = 16
"""So many work items are noted, evenly over the range."""
ROOM = 1 << 21
"""Entries for one of them; what comes behind these is not noted."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordJob:
    """A launch with the log among its arguments; ``log`` is the number of its buffer, ``room`` the entries of an item."""

    device: DeviceName
    launch: Launch
    log: int
    room: int


def record_job(
    program: KernelProgram, record: BufferRecord, launch: Launch, device: DeviceName, items: int = ITEMS, room: int = ROOM
) -> RecordJob:
    """The launch with its kernel noting the accesses to ``record``."""
    new = instrumented(program, record)
    kernel = checked_kernel(program, launch)
    every = max(1, -(-prod(launch.global_size) // items))
    noted = -(-prod(launch.global_size) // every)
    log = np.zeros((noted, room), dtype=np.uint32)
    log[:, 0] = room
    last = max(n for n, parameter in enumerate(kernel.parameters) if parameter.record == record.usr)
    number = len(launch.buffers)
    extra: Sequence[Argument] = (BufferArgument(number), _uint(room), _uint(every))
    arguments = (*launch.arguments[: last + 1], *extra, *launch.arguments[last + 1 :])
    buffers = (*launch.buffers, log.view(np.uint8).reshape(-1))
    made = replace(launch, source=new.text, options=new.options, arguments=arguments, buffers=buffers)
    return RecordJob(device, made, number, room)


def recorded_items(job: RecordJob) -> list[NDArray[np.uint32]]:
    """The members' numbers in the order of the accesses, by work item."""
    session, launch = DeviceSession(job.device.find()), job.launch
    program = session.build(launch.source, launch.options, launch.name)
    buffers = [session.buffer(data) for data in launch.buffers]
    kernel = session.prepared(program, launch.kernel, launch.arguments, buffers)
    session.launch(kernel, launch.global_size, launch.local_size, launch.offset)
    data = session.read(buffers[job.log], len(launch.buffers[job.log])).view(np.uint32).reshape(-1, job.room)
    return [row[2 : 2 + min(int(row[1]), job.room - 2)].copy() for row in data]


def _uint(value: int) -> ValueArgument:
    return ValueArgument(np.uint32(value).tobytes())
