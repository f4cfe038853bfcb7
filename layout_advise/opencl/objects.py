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

    ``kernel`` and what follows are given as to the kernel itself; ``options`` are those that the program was built with
    (empty: as the driver has them), ``calls`` how often it launches the kernel while its buffers stay on the device. Nothing
    is launched on ``queue``.
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
    """A launch with copies of its buffers. Raises UsageError for a program without source, and for arguments that are left
    alone: images, pipes, samplers, parts of buffers, shared virtual memory."""
    cl = opencl()
    program = kernel.program if hasattr(kernel, "program") else kernel.get_info(cl.kernel_info.PROGRAM)
    source = program.get_info(cl.program_info.SOURCE)
    if not source:
        raise UsageError(
            f"cannot read kernel {kernel.function_name}", "its program was made of a binary", "build it of source"
        )
    options = options or program.get_build_info(queue.device, cl.program_build_info.OPTIONS)
    buffers: list[Any] = []
    given: list[Argument] = []
    for argument in (_memory_of(argument) for argument in arguments):
        if isinstance(argument, cl.Buffer):
            if argument not in buffers:
                buffers.append(argument)
            given.append(BufferArgument(buffers.index(argument)))
        elif isinstance(argument, cl.LocalMemory):
            given.append(LocalArgument(argument.size))
        elif why := _obstacle(argument):
            raise UsageError(f"cannot lay out the arguments of {kernel.function_name}", why, "the kernel stays as it is")
        else:
            given.append(ValueArgument(np.asarray(argument).tobytes()))
    if any(buffer.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT) is not None for buffer in buffers):
        why = "one is a part of a buffer (a sub-buffer)"
        raise UsageError(f"cannot lay out the arguments of {kernel.function_name}", why, "the kernel stays as it is")
    data = tuple(_content(queue, buffer) for buffer in buffers)
    sizes = tuple(global_size), tuple(local_size) if local_size is not None else None
    return Launch(source, options, kernel.function_name, tuple(given), data, *sizes, None, calls, "kernel.cl")


def _memory_of(argument: Any) -> Any:
    """The buffer below an array of pyopencl that begins where its buffer does; else the argument itself."""
    whole = hasattr(argument, "base_data") and getattr(argument, "offset", 1) == 0
    return argument.base_data if whole else argument


def _obstacle(argument: Any) -> str:
    """The reason why an argument cannot be copied; empty for values."""
    cl = opencl()
    if argument is None:
        return "one is no buffer, but None"
    if isinstance(argument, (cl.SVM, cl.SVMPointer)):
        return "one is shared virtual memory"
    if isinstance(argument, (cl.MemoryObjectHolder, cl.Sampler)):
        return "one is an image, a pipe or a sampler"
    return "one is a part of a buffer" if hasattr(argument, "base_data") else ""


def _content(queue: Any, buffer: Any) -> Bytes:
    """The bytes that a buffer holds now."""
    data = np.empty(buffer.size, dtype=np.uint8)
    opencl().enqueue_copy(queue, data, buffer)
    return data
