"""Kernels built and run on one device."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from layout_advise.errors import SourceError
from layout_advise.opencl.host.launch import Argument, BufferArgument, Bytes, LocalArgument
from layout_advise.opencl.host.platforms import opencl

_FRAME = re.compile(
    r"clBuildProgram failed|Build on <|\(options: |Error\(s\) while|Device .* failed to build|\d+ errors? gen"
)
"""What pyopencl and drivers write around a compiler's own words."""


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """Nanoseconds of one launch: on the device, by its event; from the host's call until it is done; and those that all
    threads of the process ran meanwhile, which is the kernel's own time where the processor is the device."""

    device: float
    wall: float
    cpu: float


class DeviceSession:
    """A context and a queue with profiling on one device."""

    def __init__(self, device: Any) -> None:
        cl = opencl()
        self.device = device
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)

    def build(self, source: str, options: str, name: str = "kernel.cl") -> Any:
        """A built program. Raises SourceError with the compiler's first complaint."""
        cl = opencl()
        program = cl.Program(self.context, source)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return program.build(options=options.split(), cache_dir=False)
        except (cl.Error, RuntimeError) as error:
            raise SourceError(f"{name} does not build on {self.device.name}", complaint(str(error)), "") from error

    def buffer(self, data: Bytes) -> Any:
        """A buffer of the device with this content."""
        cl = opencl()
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=data if len(data) else np.zeros(1, np.uint8))

    def read(self, buffer: Any, size: int) -> Bytes:
        """The first bytes of a buffer."""
        data = np.empty(size, dtype=np.uint8)
        if size:
            opencl().enqueue_copy(self.queue, data, buffer)
        return data

    def write(self, buffer: Any, data: Bytes) -> None:
        """Fills a buffer."""
        if len(data):
            opencl().enqueue_copy(self.queue, buffer, data)

    def copy(self, source: Any, to: Any, size: int) -> None:
        """Copies one buffer of the device to another."""
        if size:
            opencl().enqueue_copy(self.queue, to, source, byte_count=size)

    def prepared(self, program: Any, kernel: str, arguments: Sequence[Argument], buffers: Sequence[Any]) -> Any:
        """The kernel with its arguments set."""
        cl = opencl()
        made = cl.Kernel(program, kernel)
        for number, argument in enumerate(arguments):
            if isinstance(argument, BufferArgument):
                made.set_arg(number, buffers[argument.number])
            elif isinstance(argument, LocalArgument):
                made.set_arg(number, cl.LocalMemory(argument.bytes))
            else:
                made.set_arg(number, np.frombuffer(argument.data, dtype=np.uint8))
        return made

    def launch(
        self,
        kernel: Any,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...] | None,
        offset: tuple[int, ...] | None = None,
    ) -> LaunchTime:
        """Runs a kernel once and waits for it."""
        self.queue.finish()
        start, busy = time.perf_counter_ns(), time.process_time_ns()
        event = opencl().enqueue_nd_range_kernel(self.queue, kernel, global_size, local_size, global_work_offset=offset)
        event.wait()
        wall, cpu = time.perf_counter_ns() - start, time.process_time_ns() - busy
        return LaunchTime(float(event.profile.end - event.profile.start), float(wall), float(cpu))


def complaint(log: str) -> str:
    """The first error in a build log, or its first line that is not of the driver's frame around it."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    said = [line for line in lines if not _FRAME.match(line)]
    return next((line for line in said if "error:" in line), said[0] if said else "no log")
