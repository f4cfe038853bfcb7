"""Advice on a launch that a Python program makes with pyopencl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from layout_advise.errors import UsageError
from layout_advise.opencl.host.launch import Argument, BufferArgument, Bytes, Launch, LocalArgument, ValueArgument
from layout_advise.opencl.host.platforms import opencl
from layout_advise.opencl.study import StudyOptions, study
from layout_advise.reports.model.kernels import OpenclReport


def advise(
    queue: Any,
    kernel: Any,
    global_size: Sequence[int],
    local_size: Sequence[int] | None,
    *arguments: Any,
    options: str = "",
    calls: int = 1,
    settings: StudyOptions | None = None,
) -> OpenclReport:
    """The report of one launch, on the device of ``queue``, with the data that the buffers hold now.

    ``kernel`` and what follows are given as to the kernel itself; ``options`` are those that the program was built with,
    ``calls`` how often the program launches it while its buffers stay on the device. Nothing is launched on ``queue``.
    """
    launch = launch_of(queue, kernel, global_size, local_size, arguments, options, calls)
    return study([launch], [queue.device], settings or StudyOptions(), ("python",))


def launch_of(
    queue: Any,
    kernel: Any,
    global_size: Sequence[int],
    local_size: Sequence[int] | None,
    arguments: Sequence[Any],
    options: str,
    calls: int,
) -> Launch:
    """A launch with copies of its buffers. Raises UsageError for a program without source, and for images."""
    cl = opencl()
    program = kernel.program if hasattr(kernel, "program") else kernel.get_info(cl.kernel_info.PROGRAM)
    source = program.get_info(cl.program_info.SOURCE)
    if not source:
        raise UsageError(
            f"cannot read kernel {kernel.function_name}", "its program was made of a binary", "build it of source"
        )
    buffers: list[Any] = []
    data: list[Bytes] = []
    given: list[Argument] = []
    for argument in arguments:
        if isinstance(argument, cl.Buffer):
            if argument not in buffers:
                buffers.append(argument)
                data.append(np.empty(argument.size, dtype=np.uint8))
                cl.enqueue_copy(queue, data[-1], argument)
            given.append(BufferArgument(buffers.index(argument)))
        elif isinstance(argument, cl.LocalMemory):
            given.append(LocalArgument(argument.size))
        elif isinstance(argument, cl.MemoryObject):
            raise UsageError(
                f"cannot lay out the arguments of {kernel.function_name}", "one is an image", "it stays as it is"
            )
        else:
            given.append(ValueArgument(np.asarray(argument).tobytes()))
    sizes = tuple(global_size), tuple(local_size) if local_size is not None else None
    return Launch(source, options, kernel.function_name, tuple(given), tuple(data), *sizes, None, calls, "kernel.cl")
