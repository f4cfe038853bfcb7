"""The price of having a buffer elsewhere: transfers to a device and back, and conversions on it or on the host."""

from __future__ import annotations

from collections.abc import Callable

from layout_advise.opencl.host.launch import Bytes
from layout_advise.opencl.host.session import DeviceSession
from layout_advise.opencl.host.variants import KernelVariant
from layout_advise.opencl.measure.conversion import conversion_on_device, conversion_on_host, fastest
from layout_advise.opencl.measure.jobs import BufferMove


def moves_of(session: DeviceSession, variant: KernelVariant, original: KernelVariant) -> tuple[tuple[BufferMove, ...], ...]:
    """By launch and buffer of the original: what brings the buffer to this device in the variant's layout, and back."""
    found = []
    for launch, homes in zip(original.launches, variant.homes, strict=True):
        row = []
        for data, (layout, _) in zip(launch.buffers, homes, strict=True):
            sent, fetched = _transfers(session, data)
            if layout is None or len(data) < layout.record.bytes:
                row.append(BufferMove(sent, fetched))
                continue
            kernel_in, kernel_out = conversion_on_device(session, layout, data)
            host_in, host_out = conversion_on_host(layout, data)
            row.append(BufferMove(sent, fetched, *(1e6 * ms for ms in (kernel_in, kernel_out, host_in, host_out))))
        found.append(tuple(row))
    return tuple(found)


def _transfers(session: DeviceSession, data: Bytes) -> tuple[float, float]:
    """Nanoseconds of a buffer's transfer to the device and from it."""
    if not len(data):
        return 0.0, 0.0
    buffer = session.buffer(data)
    actions: tuple[Callable[[], object], ...] = (
        lambda: session.write(buffer, data),
        lambda: session.read(buffer, len(data)),
    )
    sent, fetched = (1e6 * fastest(action, session.queue.finish) for action in actions)
    return sent, fetched
