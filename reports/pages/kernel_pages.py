"""The report about OpenCL kernels: for the terminal and as one HTML page."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.markup import escape
from rich.table import Table

from layout_advise.reports.model.kernels import (
    CLOCK_NAMES,
    DevicePlan,
    DifferenceCause,
    KernelDevice,
    KernelLayout,
    KernelProgramReport,
    KernelUse,
    OpenclReport,
    RecordReport,
)
from layout_advise.reports.pages.console import PlainConsole
from layout_advise.reports.pages.html import environment
from layout_advise.reports.words import quantities

STYLE = {"change": "green", "keep": "cyan", "undecided": "yellow"}
MOST_EDGES = 12


def kernel_line(kernel: KernelUse) -> str:
    """A launch in a line."""
    sizes = "×".join(map(str, kernel.global_size))
    groups = "" if kernel.local_size is None else f" in groups of {'×'.join(map(str, kernel.local_size))}"
    calls = f", {kernel.calls} calls" if kernel.calls != 1 else ""
    share = "" if kernel.share is None else f", {kernel.share:.0%} of the kernels' time"
    return f"{kernel.name} ({kernel.file}:{kernel.line}), {sizes} work items{groups}{calls}{share}"


def clusters(record: RecordReport) -> str:
    """The clusters of the field graph."""
    return names(record.clusters)


CAUSES: Mapping[DifferenceCause, str] = {
    "not-run": "not accessed by the recorded work items",
    "copied-whole": "recorded as part of a whole record, of which less is used",
    "other-memory": "other buffers accessed between both, which recording does not see",
    "turns": "loops that run more or less often than assumed, or branches not taken",
}


def differing(record: RecordReport) -> str:
    """The ways in which the graph of recorded accesses differs from that of the source; empty where nothing was recorded."""
    if not record.recorded_clusters:
        return ""
    if not record.differences:
        return "both graphs have the same edges"
    counts = Counter(one.cause for one in record.differences)
    return "edges that differ: " + "; ".join(f"{count} by {CAUSES[cause]}" for cause, count in counts.most_common())


def edges_up_to(length: float) -> str:
    """The edges that make some clusters."""
    return f"edges up to {length:,.0f} bytes" if length else "no edges"


def names(groups: Sequence[Sequence[str]]) -> str:
    """Clusters as text."""
    return " ".join("{" + " ".join(group) + "}" for group in groups) or "–"


def record_line(record: RecordReport) -> str:
    """A record in a line."""
    used = sum(member.accessed for member in record.members)
    elements = f"{quantities.number(record.count)} elements of {record.bytes} bytes"
    return f"{record.name}: {elements}, {used} of {len(record.members)} members used"


def ranked(device: KernelDevice) -> list[KernelLayout]:
    """The layouts, the fastest first; what was not measured last."""
    return sorted(device.layouts, key=lambda one: -(one.speedup.median if one.speedup else one.screened or 0.0))


def gain(layout: KernelLayout) -> str:
    """The speedup with its interval, or that of the screening."""
    if layout.speedup is not None:
        return quantities.interval(layout.speedup)
    return "–" if layout.screened is None else f"{layout.screened:.2f}× in one process"


def evidence(device: KernelDevice, layout: KernelLayout) -> str:
    """The outcome of comparing what it computes, and if it is the one that is advised."""
    text = layout.evidence if layout.reason is None else f"{layout.evidence}: {layout.reason}"
    return f"{text}; advised" if layout.id == device.verdict.candidate else text


def told_first(device: KernelDevice) -> KernelLayout | None:
    """The layout that the verdict is about, whose source is shown."""
    wanted = device.verdict.candidate or device.verdict.about
    return next((one for one in device.layouts if one.id == wanted and one.source), None)


def marshalling(layout: KernelLayout) -> str:
    """The conversion there and back, and when it is paid."""
    one = layout.marshalling
    if one is None:
        return "–"
    there, back = min(one.kernel_in_ms, one.host_in_ms), min(one.kernel_out_ms, one.host_out_ms)
    rounds = quantities.number(one.break_even_calls) + " rounds" if one.break_even_calls is not None else ""
    paid = (
        f"paid after {rounds.removesuffix('s') if one.break_even_calls == 1 else rounds}"
        if rounds
        else "no sure gain to pay it"
    )
    by = "kernel" if one.kernel_in_ms <= one.host_in_ms else "host"
    return f"{there:.2f} + {back:.2f} ms by {by}, {paid}"


def sized(device: KernelDevice) -> str:
    """The layout that was tried with other work-group sizes."""
    return f"layout {device.verdict.candidate or device.verdict.about}"


def of_original(device: KernelDevice) -> str:
    """The original's times, and how it differs from itself."""
    if device.original_ns is None:
        return ""
    named = f"Original {quantities.nanoseconds(device.original_ns)} by {CLOCK_NAMES[device.clock]}"
    text = f"{named}, {quantities.nanoseconds(device.original_wall_ns)} of {CLOCK_NAMES['wall']}"
    if device.noise is None:
        return f"{text}."
    return f"{text}; against itself {quantities.interval(device.noise)} in {device.noise.restores} fresh processes."


def terminal(report: OpenclReport, *, width: int = 110, colour: bool = False) -> str:
    """The report as text."""
    out = io.StringIO()
    console = PlainConsole(
        file=out, width=width, force_terminal=colour, no_color=not colour, highlight=False, _environ={},
        color_system="standard" if colour else None,
    )  # fmt: skip
    for program in report.programs:
        _program(console, program)
    if report.plan is not None:
        _plan(console, report.plan)
    for note in report.notes:
        console.print(escape(note), soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _program(console: PlainConsole, program: KernelProgramReport) -> None:
    for kernel in program.kernels:
        console.print(f"[bold]{escape(kernel_line(kernel))}[/]", soft_wrap=True)
    for record in program.records:
        console.print(escape(record_line(record)), soft_wrap=True)
        console.print(escape(f"  field graph, edges below {record.epsilon} bytes: {clusters(record)}"), soft_wrap=True)
        if record.recorded_clusters:
            console.print(escape(f"  field graph, of recorded accesses: {names(record.recorded_clusters)}"), soft_wrap=True)
            console.print(escape(f"  {differing(record)}"), soft_wrap=True)
        for one in record.by_epsilon if not program.devices else ():
            console.print(escape(f"    {edges_up_to(one.above)}: {names(one.clusters)}"), soft_wrap=True)
        if record.note:
            console.print(escape(f"  {record.note}"), soft_wrap=True)
    for device in program.devices:
        _device(console, device)
    for note in program.notes:
        console.print(escape(note), soft_wrap=True)


def _device(console: PlainConsole, device: KernelDevice) -> None:
    verdict = device.verdict
    console.print()
    console.print(escape(f"{device.name} ({device.platform})"), soft_wrap=True)
    console.print(f"  [{STYLE[verdict.action]}]{escape(verdict.text)}[/]", soft_wrap=True)
    if not device.layouts:
        return
    console.print(escape(f"  {of_original(device)}"), soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name in ("", "layout", f"speedup by {CLOCK_NAMES[device.clock]}", "marshalling", "evidence"):
        table.add_column(name)
    for one in ranked(device):
        table.add_row(one.id, escape(one.label), gain(one), marshalling(one), escape(evidence(device, one)))
    console.print(table)
    if device.calibration is not None:
        console.print(escape(f"  first tiles by the {device.calibration}"), soft_wrap=True)
    for size in device.group_sizes:
        local = "×".join(map(str, size.local_size))
        text = f"  groups of {local}: original {quantities.nanoseconds(size.original_ns)}, {sized(device)} "
        console.print(escape(text + quantities.interval(size.speedup)), soft_wrap=True)


def _plan(console: PlainConsole, plan: DevicePlan) -> None:
    console.print()
    console.print(escape(plan.text), style=STYLE["change"] if plan.changes else None, soft_wrap=True)
    console.print(escape(f"  order: {plan.order}"), soft_wrap=True)
    moved = (
        f"  {quantities.nanoseconds(plan.ns)} in all, {quantities.nanoseconds(plan.moving_ns)} of it copies and conversions"
    )
    console.print(escape(moved), soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    for name in ("kernel", "device", "layout", "launches", "each"):
        table.add_column(name)
    for one in plan.kernels:
        row = (one.name, one.device, one.layout, str(one.launches), quantities.nanoseconds(one.ns))
        table.add_row(*map(escape, row))
    console.print(table)
    for other in plan.others:
        text = f"  {other.label}: {quantities.nanoseconds(other.ns)}; the plan is {quantities.interval(other.gain)}"
        console.print(escape(text), soft_wrap=True)
    for note in plan.notes:
        console.print(escape(f"  {note}"), soft_wrap=True)


def page(report: OpenclReport) -> str:
    """The report as one HTML file."""
    programs = [
        {
            "data": program,
            "kernels": [kernel_line(kernel) for kernel in program.kernels],
            "records": [
                {"data": r, "line": record_line(r), "clusters": clusters(r), "differing": differing(r)}
                for r in program.records
            ],
            "devices": [
                {
                    "data": d,
                    "original": of_original(d),
                    "sized": sized(d),
                    "first": told_first(d),
                    "layouts": [
                        {"data": one, "gain": gain(one), "marshalling": marshalling(one), "evidence": evidence(d, one)}
                        for one in ranked(d)
                    ],
                }
                for d in program.devices
            ],
        }
        for program in report.programs
    ]
    return (
        environment()
        .get_template("kernels.html")
        .render(report=report, programs=programs, clocks=CLOCK_NAMES, names=names, edges_up_to=edges_up_to, causes=CAUSES)
    )
