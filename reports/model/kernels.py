"""OpenCL kernels as data: the contract ``layout-advise.opencl/1`` that ``layout-advise opencl`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from layout_advise.reports.model.candidate import Evidence, Interval, Verification
from layout_advise.reports.model.hotspot import Verdict

OPENCL_SCHEMA = "layout-advise.opencl/1"
KernelClock = Literal["device", "wall", "cpu"]
"""Events of the device, the host's clock, or the time that all threads of the process ran."""
CLOCK_NAMES: Mapping[KernelClock, str] = {"device": "events", "wall": "elapsed time", "cpu": "processor time"}
CLAIMED_BY: Mapping[KernelClock, str] = {**CLOCK_NAMES, "device": "events and elapsed time"}
"""What claims are by, where times are by this clock."""


class KernelUse(msgspec.Struct, frozen=True):
    """A launch that was studied. ``calls`` is how often the program makes it, ``share`` its part of all kernels' time (None
    where that is not known)."""

    name: str
    file: str
    line: int
    calls: int
    global_size: tuple[int, ...]
    local_size: tuple[int, ...] | None
    share: float | None = None


class MemberReport(msgspec.Struct, frozen=True):
    """A member of a record, in bytes; ``accessed``: some kernel uses it."""

    name: str
    type: str
    offset: int
    bytes: int
    accessed: bool


class FieldEdge(msgspec.Struct, frozen=True):
    """An edge of the field graph: ``bytes`` is the memory distance of two members (Kofler et al. 2015)."""

    a: str
    b: str
    bytes: float


DifferenceCause = Literal["not-run", "copied-whole", "other-memory", "turns"]
"""No recorded work item accesses one of both members; the source uses less of a copied record; other buffers are accessed
between both, which recording does not see; loops run as often as was not assumed, or branches are not taken."""


class EdgeDifference(msgspec.Struct, frozen=True):
    """An edge that the field graphs of the source and of recorded accesses do not share: both distances in bytes (None: no
    edge) and the cause."""

    a: str
    b: str
    source: float | None
    recorded: float | None
    cause: DifferenceCause


class ClustersByEpsilon(msgspec.Struct, frozen=True):
    """The clusters where ``epsilon`` is more than ``above`` bytes, up to the next one's."""

    above: float
    clusters: tuple[tuple[str, ...], ...]


class RecordReport(msgspec.Struct, frozen=True):
    """A record in buffers: its field graph from the source, and the clusters of members that are never ``epsilon`` bytes
    apart. ``note``: why it keeps its layout, or None."""

    name: str
    bytes: int
    count: int
    members: tuple[MemberReport, ...]
    edges: tuple[FieldEdge, ...]
    epsilon: int
    clusters: tuple[tuple[str, ...], ...]
    atomic: tuple[str, ...] = ()
    note: str | None = None
    recorded: tuple[FieldEdge, ...] = ()
    """The edges from accesses that were recorded, where that was asked for."""
    recorded_clusters: tuple[tuple[str, ...], ...] = ()
    differences: tuple[EdgeDifference, ...] = ()
    """Of both graphs."""
    by_epsilon: tuple[ClustersByEpsilon, ...] = ()
    """The clusters for other lengths of edges."""


class Marshalling(msgspec.Struct, frozen=True):
    """Bringing the buffers into a layout and back, once, in ms, by a kernel and by a loop of the host. The faster counts:
    ``break_even_calls`` is after how many rounds of launches it is paid back, None where no gain
    that counts is sure."""

    kernel_in_ms: float
    kernel_out_ms: float
    host_in_ms: float
    host_out_ms: float
    break_even_calls: int | None


class KernelLayout(msgspec.Struct, frozen=True):
    """One layout on one device. ``screened`` is its speedup in the one process that looked for the best, ``speedup`` and
    ``wall`` those over fresh processes by the device's ``clock`` and by the host's, ``net`` with the marshalling taken in.
    ``source`` is the rewritten program, ``marshalling_source`` two kernels for each record, into the layout and back."""

    id: str
    label: str
    layout: dict[str, str]
    evidence: Evidence
    reason: str | None
    verification: Verification | None
    screened: float | None
    speedup: Interval | None
    wall: Interval | None
    net: float | None
    marshalling: Marshalling | None
    source: str = ""
    marshalling_source: str = ""


class GroupSize(msgspec.Struct, frozen=True):
    """Another work-group size: by the device's ``clock`` ns of the original, and the advised layout's speedup with it."""

    local_size: tuple[int, ...]
    original_ns: float
    speedup: Interval | None


class KernelDevice(msgspec.Struct, frozen=True):
    """A device and what was measured there. Times in ns are of all launches studied, as often as the program makes them;
    ``clock`` is that of ``original_ns``, of ``noise`` and of speedups without another name: on the machine's processor the
    time that all threads of the process ran, else the device's events.
    ``calibration``: by which one the first tiles were chosen, its age and figures; None where there is none."""

    platform: str
    name: str
    version: str
    compute_units: int
    clock: KernelClock
    original_ns: float | None
    original_wall_ns: float | None
    noise: Interval | None
    layouts: tuple[KernelLayout, ...]
    verdict: Verdict
    group_sizes: tuple[GroupSize, ...] = ()
    calibration: str | None = None


class KernelProgramReport(msgspec.Struct, frozen=True):
    """A program of the device (one source): its launches, the records in their buffers, and each device. ``notes`` say what
    was left alone."""

    name: str
    kernels: tuple[KernelUse, ...]
    records: tuple[RecordReport, ...]
    devices: tuple[KernelDevice, ...]
    notes: tuple[str, ...] = ()


class PlacedKernel(msgspec.Struct, frozen=True):
    """A kernel at one place of the order: the device and layout that the plan has for it, how often it runs there, and ns of
    one launch by the host's clock."""

    name: str
    device: str
    layout: str
    launches: int
    ns: float


class OtherPlan(msgspec.Struct, frozen=True):
    """Another plan: ns of all launches, copies and conversions, and how many times as fast the chosen plan is."""

    label: str
    ns: float
    gain: Interval


class DevicePlan(msgspec.Struct, frozen=True):
    """One plan for the kernels of a program over several devices. ``order`` is the nest in which they and the host's
    accesses run; times in ns are of all of it, ``moving_ns`` the part of copies and conversions. ``changes``: kernels run on
    several devices, and that is surely faster than all of them on any one."""

    order: str
    kernels: tuple[PlacedKernel, ...]
    ns: float
    moving_ns: float
    others: tuple[OtherPlan, ...]
    changes: bool
    text: str
    notes: tuple[str, ...] = ()


class OpenclReport(msgspec.Struct, frozen=True):
    """All that one run found."""

    schema: str
    version: str
    created: str
    command: tuple[str, ...]
    programs: tuple[KernelProgramReport, ...]
    policy: dict[str, float]
    notes: tuple[str, ...] = ()
    plan: DevicePlan | None = None
    """One plan over all devices, where that was asked for."""


def encode_opencl(report: OpenclReport) -> bytes:
    """The report as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def decode_opencl(data: bytes) -> OpenclReport:
    """Reads a report back; raises msgspec's errors where it is none."""
    return msgspec.json.decode(data, type=OpenclReport)
