"""The price of another layout: marshalling on the device and on the host, with the transfers that each needs."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from layout_advise.opencl.host.launch import Bytes
from layout_advise.opencl.host.platforms import opencl
from layout_advise.opencl.host.session import DeviceSession
from layout_advise.opencl.host.variants import KernelVariant
from layout_advise.opencl.measure.jobs import ConversionTime
from layout_advise.opencl.rewrite.layouts import BufferLayout
from layout_advise.opencl.rewrite.marshal import IN_KERNEL, OUT_KERNEL, gathered, marshalling_source, scattered

REPEATS = 3
"""Each way is timed so often; the fastest counts, as what disturbs only adds."""


def converted(session: DeviceSession, variant: KernelVariant, original: KernelVariant) -> ConversionTime:
    """The time that it takes more than today, in ms: the host keeps the program's layout, transfers are as large as today's.
    The kernel's way is its own time; the host's that of NumPy's copies, as the transfers are the same in both layouts."""
    device, host = [0.0, 0.0], [0.0, 0.0]
    for launch, homes in zip(original.launches, variant.homes, strict=True):
        for data, (layout, _) in zip(launch.buffers, homes, strict=True):
            if layout is None or len(data) < layout.record.bytes:
                continue
            for sums, found in (
                (device, conversion_on_device(session, layout, data)),
                (host, conversion_on_host(layout, data)),
            ):
                sums[0] += found[0]
                sums[1] += found[1]
    return ConversionTime(*device, *host)


def conversion_on_host(layout: BufferLayout, data: Bytes) -> tuple[float, float]:
    """Milliseconds of NumPy's copies into a layout and back."""
    buffers = scattered(layout, data)
    return fastest(lambda: scattered(layout, data)), fastest(lambda: gathered(layout, buffers, data))


def conversion_on_device(session: DeviceSession, layout: BufferLayout, data: Bytes) -> tuple[float, float]:
    """Milliseconds of the kernels that copy into a layout and back."""
    program = session.build(marshalling_source(layout), "")
    count = len(data) // layout.record.bytes
    aos = session.buffer(data)
    parts = [session.buffer(part) for part in scattered(layout, data)]
    found = []
    for name in (IN_KERNEL, OUT_KERNEL):
        kernel = _kernel(session, program, name, [aos, *parts])
        session.launch(kernel, (count,), None)
        found.append(min(session.launch(kernel, (count,), None).wall for _ in range(REPEATS)) / 1e6)
    return found[0], found[1]


def _kernel(session: DeviceSession, program: Any, name: str, buffers: list[Any]) -> Any:
    kernel = opencl().Kernel(program, name)
    kernel.set_args(*buffers)
    return kernel


def fastest(action: Callable[[], object], finish: Callable[[], object] = lambda: None) -> float:
    """The least milliseconds of some runs of an action, each until ``finish`` returns."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter_ns()
        action()
        finish()
        times.append((time.perf_counter_ns() - start) / 1e6)
    return min(times)
