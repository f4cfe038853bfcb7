"""From launches to a report: the records in their buffers, field graphs, and the search on each device."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from layout_advise import __version__
from layout_advise.errors import LayoutAdviseError, MockupError, ProgramError, SourceError, UsageError
from layout_advise.opencl.candidates import Choice, GraphOfRecord, key
from layout_advise.opencl.describe import device_report, record_report
from layout_advise.opencl.graph.fields import FieldGraph, united
from layout_advise.opencl.graph.recorded import recorded_graph
from layout_advise.opencl.groups import group_sizes
from layout_advise.opencl.host.launch import Launch, checked_kernel
from layout_advise.opencl.intercept.events import BufferEvent
from layout_advise.opencl.measure.clock import clock_of
from layout_advise.opencl.measure.jobs import name_of
from layout_advise.opencl.measure.processes import items_of
from layout_advise.opencl.measure.record import record_job
from layout_advise.opencl.placement.measured import PlacedProgram
from layout_advise.opencl.placement.planned import device_plan
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.records import RecordFound, records_of
from layout_advise.opencl.search import DeviceSearch
from layout_advise.opencl.searched import Searched
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.opencl.source.read import read_program
from layout_advise.opencl.tiles.choose import by_tree
from layout_advise.opencl.tiles.stored import stored
from layout_advise.opencl.verdict import elapsed_gain, winner
from layout_advise.reports.model.kernels import (
    OPENCL_SCHEMA,
    DevicePlan,
    KernelDevice,
    KernelProgramReport,
    KernelUse,
    OpenclReport,
)

LEFT_ALONE = (SourceError, UsageError, MockupError)
"""Errors of one kernel that leave the others of a program to be studied."""


@dataclass(frozen=True, slots=True)
class _LeftAlone:
    """Kernels that were not studied: the errors, and a note on each."""

    errors: list[LayoutAdviseError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, kernels: Sequence[str], error: LayoutAdviseError) -> None:
        """Notes why kernels are left alone."""
        self.errors.append(error)
        why = f"{error.what}: {error.why}" if error.why else error.what
        self.notes.append(" ".join(f"{', '.join(dict.fromkeys(kernels))} is left alone: {why}.".split()))


@dataclass(frozen=True, slots=True)
class PlanInput:
    """The input of a plan over devices: the order in which buffers are used (None: not known), and which launch each kernel
    in it is."""

    events: tuple[BufferEvent, ...] | None
    numbers: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """Settings of a study. ``measure`` is False where only the field graph is wanted."""

    processes: int = OPENCL.processes
    measure: bool = True
    group_sizes: bool = True
    recorded: bool = False
    """Also record the accesses of some work items, and compare the field graphs."""
    plan: PlanInput | None = None
    """Also make one plan over all devices."""


def study(
    launches: Sequence[Launch],
    devices: Sequence[Any],
    options: StudyOptions,
    command: Sequence[str] = (),
    shares: Mapping[str, float] | None = None,
    notes: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _text: None,
) -> OpenclReport:
    """The report of launches, grouped by the program that they are of. ``shares`` is the part of the time by kernel."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, launch in enumerate(launches):
        groups.setdefault((launch.source, launch.options), []).append(number)
    programs: list[KernelProgramReport] = []
    placed: list[PlacedProgram] = []
    left = _LeftAlone()
    for numbers in groups.values():
        try:
            program, fitting = _fitting(launches, numbers, left)
            group = [launches[number] for number in fitting]
            report, choices = _program(program, group, devices, options, shares or {}, tell)
        except LEFT_ALONE as error:
            left.add([launches[number].kernel for number in numbers], error)
            continue
        programs.append(report)
        placed.append(PlacedProgram(program, tuple(fitting), tuple(group), choices))
    if left.errors and not programs:
        raise left.errors[0]
    plan, why = _plan(placed, devices, options, tell)
    return OpenclReport(
        schema=OPENCL_SCHEMA,
        version=__version__,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        command=tuple(command),
        programs=tuple(programs),
        policy={name: float(value) for name, value in asdict(OPENCL).items()},
        notes=(*notes, *left.notes, *why),
        plan=plan,
    )


def _fitting(launches: Sequence[Launch], numbers: Sequence[int], left: _LeftAlone) -> tuple[KernelProgram, list[int]]:
    """The program of these launches, and those whose arguments fit; of the others it is noted. Raises what is wrong with the
    program, or with all of them."""
    first = launches[numbers[0]]
    program = read_program(first.source, first.options, first.name)
    fitting: list[int] = []
    wrong: list[tuple[str, UsageError]] = []
    for number in numbers:
        try:
            checked_kernel(program, launches[number])
            fitting.append(number)
        except UsageError as error:
            wrong.append((launches[number].kernel, error))
    if not fitting:
        raise wrong[0][1]
    for kernel, why in wrong:
        left.add([kernel], why)
    return program, fitting


def _plan(
    programs: Sequence[PlacedProgram], devices: Sequence[Any], options: StudyOptions, tell: Callable[[str], None]
) -> tuple[DevicePlan | None, tuple[str, ...]]:
    """The plan over all devices, and in notes why there is none."""
    given = options.plan
    if given is None:
        return None, ()
    names = [name_of(device) for device in devices]
    try:
        return device_plan(given.events, given.numbers, programs, names, options.processes, tell), ()
    except (ProgramError, MockupError) as error:
        return None, (f"{error.line()}.",)


def _program(
    program: KernelProgram,
    launches: Sequence[Launch],
    devices: Sequence[Any],
    options: StudyOptions,
    shares: Mapping[str, float],
    tell: Callable[[str], None],
) -> tuple[KernelProgramReport, tuple[Choice, ...]]:
    """The report of one program, and the layouts that were best on some device."""
    first = launches[0]
    uses = tuple(_use(program, launch, shares) for launch in launches)
    found = records_of(program, launches)
    notes: list[str] = []
    if not found:
        notes.append(f"No buffer of {first.name} holds a structure: there is no layout to change.")
    free = [one.graph for one in found if one.note is None]
    usrs = {one.record.usr for one in found if one.note is None}
    using = [one for one in launches if usrs & {p.record for p in checked_kernel(program, one).parameters}]
    name = ", ".join(dict.fromkeys(launch.kernel for launch in using))
    measured: list[KernelDevice] = []
    best: dict[object, Choice] = {}
    for device in devices if free and options.measure else ():
        report, choice = _on_device(program, using, free, device, options, name, tell)
        measured.append(report)
        if choice is not None:
            best.setdefault(key(choice), choice)
    seen = {one.record.name: _recorded(program, launches, one, devices[0]) for one in found if options.recorded and devices}
    reports = tuple(
        record_report(one.record, one.graph, one.count, one.note, seen.get(one.record.name), one.kernels) for one in found
    )
    whole = KernelProgramReport(first.name, uses, reports, tuple(measured), tuple(notes))
    return whole, tuple(best.values())


def _use(program: KernelProgram, launch: Launch, shares: Mapping[str, float]) -> KernelUse:
    kernel = checked_kernel(program, launch)
    return KernelUse(
        kernel.name,
        launch.name,
        kernel.line,
        launch.calls,
        launch.global_size,
        launch.local_size,
        shares.get(kernel.name),
    )


def _recorded(program: KernelProgram, launches: Sequence[Launch], one: RecordFound, device: Any) -> FieldGraph | None:
    """The field graph of the accesses of some work items; None where they cannot be noted."""
    if one.note is not None:
        return None
    kernels = [(launch, checked_kernel(program, launch)) for launch in launches]
    jobs = [
        record_job(program, one.record, launch, name_of(device))
        for launch, kernel in kernels
        if one.record in program.records_of(kernel)
    ]
    return united([recorded_graph(one.record, items_of(job)) for job in jobs])


def _on_device(
    program: KernelProgram,
    launches: Sequence[Launch],
    records: Sequence[GraphOfRecord],
    device: Any,
    options: StudyOptions,
    name: str,
    tell: Callable[[str], None],
) -> tuple[KernelDevice, Choice | None]:
    """The report of a device, and the layout that was best there, if it gains."""
    known = stored(device)
    tile = by_tree(known.tree) if known is not None else None
    search = DeviceSearch(program, launches, records, name_of(device), clock_of(device), tell, tile)
    found: Searched = search.run(options.processes)
    best = winner(found)
    sizes = (
        group_sizes(program, launches, best.variant.layouts, found.device, found.clock)
        if best is not None and options.group_sizes
        else ()
    )
    gains = best is not None and (elapsed_gain(best, found) or 0) > 1
    report = device_report(device, found, name, sizes, known.told if known is not None else None)
    return report, best.variant.layouts if best is not None and gains else None
