"""The plan of the whole program: the order of its regions, and for each structure a layout or where to convert it.

Part of the contract in :mod:`layout_advise.reports.model.contract`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from layout_advise.reports.model.candidate import Interval


class InRegion(msgspec.Struct, frozen=True):
    """The gain of a layout in one region. ``share``: the part of all samples that no region before it has; ``speedup`` is 1
    where the region does not touch the structures, None where the layout could not be measured there."""

    hotspot: str
    """The region as it is printed."""
    share: float
    speedup: Interval | None
    build: Literal["", "plain", "restrict", "lanes", "simd"] = ""
    """The variant of the layout that ``speedup`` is of, the fastest one; empty where none was measured, or several layouts
    take turns."""
    plain: Interval | None = None
    """The speedup of the layout in its plain variant; None where that was not measured."""


class OrderStep(msgspec.Struct, frozen=True):
    """A step of the folded order of regions: an entry of ``hotspot``, or ``turns`` repetitions of ``body``."""

    hotspot: str | None = None
    turns: int = 1
    body: tuple[OrderStep, ...] = ()


class RegionOrderReport(msgspec.Struct, frozen=True):
    """In which order the regions are entered. ``text`` is the nest in a line (``for 500 { density; drift×2 }``), empty where
    the order is not known, with the ``reason``; ``entries`` of each region, where they were counted."""

    text: str
    steps: tuple[OrderStep, ...] = ()
    """The same as data."""
    entries: dict[str, int] = {}
    reason: str = ""


class PlanPlace(msgspec.Struct, frozen=True):
    """A place of the order: the layout there (a candidate's id; None: as it is), how often it is entered, and whether the
    structures are converted before each entry."""

    hotspot: str
    """The region as it is printed."""
    candidate: str | None
    """Id of the layout there; None: the present one."""
    entries: int
    """How often it is entered."""
    converted: bool = False
    """Whether the structures are converted before each entry."""


class TriedRegion(msgspec.Struct, frozen=True):
    """A region in a run of the program in which the calls of all regions of a plan ran as their mock-ups on its layouts."""

    hotspot: str
    """The region as it is printed."""
    candidate: str
    """Id of the mock-up that its calls ran as."""
    first: int
    """The first call that was in the trial; those before it were the original's."""
    calls: int
    """The calls from that one on, in an ordinary run."""
    mockups: int
    """So many of them ran as the mock-up ..."""
    left_out: int
    """... and so many were left to the original: the mock-up does not do them."""
    within: int
    """Calls that the mock-up of another region made itself, as the original."""
    conversions: int
    """Copies of the data from the present layout into the mock-up's and back."""


class PlanTrial(msgspec.Struct, frozen=True):
    """A plan that was run: one start of the program with the calls of all its regions as mock-ups on its layouts at once,
    which ended and printed as ordinarily. The present layout stayed the truth: what the program, or a mock-up of another
    layout, wrote was copied in before a call, and what the call wrote was copied back after it."""

    reason: str = ""
    """The reason why it was not run; empty where it was."""
    regions: tuple[TriedRegion, ...] = ()
    """The calls of each region that ran so."""
    speedup: Interval | None = None
    """The whole program's CPU time over that of a run under the plan, without the copies and the trial's own time: what the
    layouts gain if they are there for good. Its ends are those of all pairs of runs."""
    with_copies: float | None = None
    """The same with the copies; the trial's own time is left out of it too."""
    rounds: int = 0
    """So many times both were run."""
    original_s: float = 0.0
    """CPU seconds of an ordinary run, with the mock-ups loaded and not used."""
    layout_s: float = 0.0
    """CPU seconds of a run under the plan, without ``copies_s`` and ``own_s``."""
    predicted_s: float = 0.0
    """CPU seconds of a run under the plan, as the plan predicts them from ``original_s``."""
    copies_s: float = 0.0
    """CPU seconds of copies in a run under the plan, taken off ``layout_s``."""
    own_s: float = 0.0
    """CPU seconds of the trial itself in a run under the plan, taken off ``layout_s``: loading, looking for what was
    written, saving registers."""
    flushed: bool = False
    """Whether the data were copied before many calls: half of the runs then had the copies flushed from the caches."""
    held: bool = False
    """Whether each access of each region was held against the map of its layout, in a run of its own before."""
    exit_status: int = 0
    """The program's exit status, as ordinarily."""
    output_bytes: int = 0
    """Bytes on standard output, as ordinarily."""
    own_words: int = 0
    """Words of the output that differ from run to run, and were not compared."""


class StructurePlan(msgspec.Struct, frozen=True):
    """The plan of ``structures`` (names), which are laid out together.

    ``action``: ``change`` where the lower end of ``program`` is a gain that is worth it, ``keep`` where no layout that all
    regions were measured with gains, else ``undecided``. ``candidate`` is the layout that is permanent, None where it is the
    present one or ``places`` differ; ``label`` its words. ``program`` is the speedup of the whole program, ``regions`` those
    under the plan; ``measured`` the part of the samples that these hold. ``converting``: conversions take that part of the
    present time. ``losing`` are the regions that are surely slower. ``second`` is the best other plan. Where regions
    that use the structures too were not measured, and could undo the gain, ``action`` is ``undecided``.
    """

    structures: tuple[str, ...]
    action: Literal["change", "keep", "undecided"]
    candidate: str | None
    label: str
    places: tuple[PlanPlace, ...]
    program: Interval
    regions: tuple[InRegion, ...]
    measured: float
    converting: float = 0.0
    losing: tuple[str, ...] = ()
    second: str = ""
    second_program: Interval | None = None
    """The second best plan's speedup of the whole program."""
    plain_program: Interval | None = None
    """The speedup of the whole program where the permanent layout's loops are written plainly in all regions; None where
    ``program`` is that, or where it is not known."""
    cpu_time: bool = False
    """True where the program waits, or runs on several processors at once: its speedup is one of its CPU time and not of the
    time that passes."""
    unmeasured: tuple[str, ...] = ()
    """Regions that use the structures too and were not measured: nothing is known of them but that."""
    unmeasured_share: float = 0.0
    """The part of the program's samples that fell in these."""
    unmeasured_take: float = 1.0
    """The lower ends of ``program``, ``second_program`` and ``plain_program`` hold that these take so many times as long."""
    if_they_stay: Interval | None = None
    """``program`` where these take as long as now; None where there are none."""
    may_take: float | None = None
    """So many times as long these may take under the plan, and the program still gains; None where there are none, or the
    plan gains nothing."""
    trial: PlanTrial | None = None
    """The plan in the running program, or why it was not run; None where that was not tried, as of plans that change
    nothing. Where the program did surely not gain so, with few copies, ``action`` is ``undecided`` whatever was
    predicted."""


class Transfer(msgspec.Struct, frozen=True):
    """The way of data between a machine and the one that the program runs on: it was stated, and not measured."""

    bytes_per_second: float
    """So many bytes are sent in a second."""
    latency_ns: float
    """For each structure that is sent, whatever its size, in ns."""


class PlanMachine(msgspec.Struct, frozen=True):
    """Another machine, or this one in another way (with more threads), whose times are those of a run there."""

    name: str
    """As the plan calls it."""
    cpu: str
    """The processor's name there."""
    threads: int
    """The most that a region of the run there had."""
    transfer: Transfer
    """The way of data to this machine and back."""
    assumed: bool
    """Whether ``transfer`` was stated by the user here, and not by the run there."""


class MachinePlace(msgspec.Struct, frozen=True):
    """The machine on which a place of the order runs, and the layout there. A region that is named at several places with
    one answer is told once, with all its entries."""

    hotspot: str
    """The region as it is printed."""
    machine: str | None
    """The name of the machine; None: this one."""
    candidate: str | None
    """Id of the layout there; None: the present one."""
    entries: int
    """How often it is entered so."""


class MachinesPlan(msgspec.Struct, frozen=True):
    """The plan over machines: for each place of the order a machine and a layout, with the data sent to where it is needed.
    ``action``: ``change`` where running regions elsewhere surely gains enough over the best of this machine alone, ``keep``
    where it gains nothing, else ``undecided``."""

    action: Literal["change", "keep", "undecided"]
    machines: tuple[PlanMachine, ...]
    """The machines besides this one."""
    places: tuple[MachinePlace, ...]
    """The machine and the layout of each place of the order; empty where there is no plan."""
    program: Interval | None
    """The whole program's speedup over today, with all transfers and conversions; None where there is no plan."""
    here: Interval | None
    """The same of the best plan on this machine alone."""
    over_here: Interval | None
    """The speedup of the first over the second."""
    moving: float = 0.0
    """Transfers and conversions take that part of the present time."""
    missing: tuple[str, ...] = ()
    """What is not known: regions without times on a machine, and why."""
    reason: str = ""
    """Why there is no plan; empty where there is one."""


class ProgramPlan(msgspec.Struct, frozen=True):
    """The plan of the whole program, the structures by which it gains most first. ``held`` are regions that could not be
    measured: they count as unchanged, and stay at the present layouts."""

    order: RegionOrderReport
    """In which order the regions are entered."""
    structures: tuple[StructurePlan, ...]
    """The plans, by what they gain; none where one region was studied, and the plan is one over machines."""
    held: tuple[str, ...] = ()
    machines: MachinesPlan | None = None
    """The plan over this machine and others; None where no ``--machine-profile`` was given."""
