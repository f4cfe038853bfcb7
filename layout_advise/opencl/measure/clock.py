"""The clock that speedups on a device are of (decision 91).

On a device that is this machine's processor, the time that all threads of the process ran is the kernel's own: other work on
the machine lengthens it less than the device's events, which go on while a kernel waits for its turn. Other devices have
their events.
"""

from __future__ import annotations

from typing import Any

from layout_advise.opencl.host.platforms import is_processor
from layout_advise.opencl.measure.jobs import VariantOutcome
from layout_advise.reports.model.kernels import KernelClock

Clock = KernelClock
"""The names of the times of a :class:`VariantOutcome`."""
RAN_HERE = 0.05
"""Part of the events' time. A device of the type CPU whose kernels take less of this process runs them elsewhere."""


def clock_of(device: Any) -> Clock:
    """The clock for a device, by its type."""
    return "cpu" if is_processor(device) else "device"


def clock_seen(clock: Clock, original: VariantOutcome) -> Clock:
    """The clock by what the kernels took: the device's events where it is called a processor, but runs in no thread here."""
    return "device" if clock == "cpu" and original.cpu < RAN_HERE * original.device else clock


def time_by(outcome: VariantOutcome, clock: Clock) -> float:
    """The time of an outcome, ns."""
    return float(getattr(outcome, clock))
