"""Replays of a hotspot that is not lifted: its loads and stores, replayed in the old and in other layouts.

Before a replay is timed, its check build has to make the accesses of the program in the program's order: recorded anew by
the clone, compared one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import LayoutAdviseError, ReplayError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.effort import plans_for
from layout_advise.mockup.emit.replay import emit_replay
from layout_advise.mockup.evidence.touch_nest import Touch, TouchNest, frame, touches
from layout_advise.mockup.machine.cfg import Cfg, build_cfg
from layout_advise.mockup.run.build import build
from layout_advise.mockup.timing.measure import measure
from layout_advise.mockup.timing.plan import Memory, Timed
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import REPLAY, Variant
from layout_advise.observe.case import Case
from layout_advise.observe.observe import Observation
from layout_advise.propose.source import forbidden
from layout_advise.tracer.backends.clone.address import choose_address
from layout_advise.tracer.backends.clone.image import build_clone
from layout_advise.tracer.process.stopped_program import Snapshots, StoppedProgram
from layout_advise.workspace import Workspace

OWN = "replay"
"""The replay in the program's own layout, as its files are called."""
MOST_ACCESSES = 1 << 25
"""Calls with more accesses are not replayed: each is recorded and compared."""
FLAGS, CHECK_FLAGS = ("-O2",), ("-O1",)
_SITE = np.uint64(48)
_OUTSIDE = ("syscall", "sysenter", "int")


@dataclass(frozen=True, slots=True)
class Replays:
    """``ratios`` are replay-old over replay-new times, by candidate; ``reasons`` why a candidate was not replayed,
    ``reason`` why nothing was. ``sources`` are the C texts; ``timings`` hold the original's times too."""

    ratios: Mapping[str, Ratio] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    snapshot: Literal["criu", "fork"] = "fork"
    timings: Timings | None = None
    reason: str | None = None


def replay_all(
    case: Case,
    parked: StoppedProgram,
    seen: Observation,
    candidates: Sequence[Candidate],
    snapshots: Callable[[], Snapshots],
) -> Replays:
    """Replay the call in the old layout and in ``candidates``; what cannot be done is said, never raised."""
    try:
        body = _body(seen)
        expected = _record(case.space, parked, seen)
        builds, reasons, sources = _built(case, parked, candidates, body, expected, put=bool(seen.put))
        if len(builds) < 2:
            return Replays(reasons=reasons, reason="no candidate could be replayed")
        return _timed(case, seen, candidates, builds, reasons, sources, snapshots())
    except LayoutAdviseError as error:
        return Replays(reason=error.line())


def _body(seen: Observation) -> tuple[Touch | TouchNest, ...]:
    trace = seen.trace
    if seen.team is not None:
        raise ReplayError("the accesses cannot be replayed", "several threads make them")
    if trace.backend != "clone":
        raise ReplayError("the accesses cannot be replayed", "the order of a trace is compared with the clone's only")
    if trace.accesses > MOST_ACCESSES:
        raise ReplayError("the accesses cannot be replayed", f"there are more than {MOST_ACCESSES} of them")
    cfg = build_cfg(seen.region)
    _closed(cfg)
    return touches(trace, cfg, frame(trace))


def _closed(cfg: Cfg) -> None:
    """Nothing but the hotspot's own code may run: what a call or the kernel does is not in the nests."""
    if cfg.calls:
        names = sorted({call.name or hex(call.target or 0) for call in cfg.calls.values()})
        raise ReplayError("the accesses cannot be replayed", f"the hotspot calls {', '.join(names)}")
    for block in cfg.blocks.values():
        for insn in block.insns:
            if insn.mnemonic in _OUTSIDE:
                raise ReplayError("the accesses cannot be replayed", f"{insn.text} at {insn.address:#x}")


def _record(space: Workspace, parked: StoppedProgram, seen: Observation) -> NDArray[np.uint64]:
    """The accesses in the program's order, without those to the hotspot's own frame."""
    image = build_clone(seen.region, choose_address(parked.mappings(), seen.region.entry))
    file = space.scratch / "replay.records"
    try:
        with parked.fork() as fork:
            fork.trace(image, file, seen.trace.accesses + 4096)
        records = np.fromfile(file, np.uint64)
    finally:
        file.unlink(missing_ok=True)
    return records[~np.isin((records >> _SITE).astype(np.int64), list(frame(seen.trace)))]


def _built(
    case: Case,
    parked: StoppedProgram,
    candidates: Sequence[Candidate],
    body: tuple[Touch | TouchNest, ...],
    expected: NDArray[np.uint64],
    *,
    put: bool,
) -> tuple[dict[str, Path], dict[str, str], dict[str, str]]:
    """The replays that make the program's accesses in its order; reasons for the others; the sources. ``put``: something is
    put back between the calls."""
    builds: dict[str, Path] = {}
    reasons: dict[str, str] = {}
    sources: dict[str, str] = {}
    name = case.profiled.function.name
    wanted: list[tuple[str, Candidate | None]] = [(OWN, None), *((c.id, c) for c in candidates)]
    for number, (key, candidate) in enumerate(wanted):
        case.space.progress.count("checking replays", number, len(wanted))
        try:
            checked = emit_replay(body, name, candidate, check=True, put=put)
            _check(case.space, parked, key, checked, candidate, expected)
            sources[key] = emit_replay(body, name, candidate, put=put)
            builds[key] = _compile(case.space, f"{key}-replay" if candidate else OWN, sources[key], FLAGS)
        except LayoutAdviseError as error:
            if candidate is None:
                raise
            reasons[key] = error.line()
    return builds, reasons, sources


def _compile(space: Workspace, name: str, text: str, flags: tuple[str, ...]) -> Path:
    built = build(text, space.region.mockups / f"{name}.so", "gcc", flags)
    if built.path is None:
        raise ReplayError("a replay could not be compiled", built.reason or "")
    return built.path


def _check(
    space: Workspace,
    parked: StoppedProgram,
    name: str,
    text: str,
    candidate: Candidate | None,
    expected: NDArray[np.uint64],
) -> None:
    shared = _compile(space, f"{name}-replay.check", text, CHECK_FLAGS)
    file = space.scratch / "replay.records"
    try:
        with parked.fork() as fork:
            number = fork.load(shared)
            done = fork.run(number, forbidden=forbidden(candidate), records=(file, expected.size + 4096))
        if done.mismatches:
            raise ReplayError(f"the replay {name} is wrong", f"{done.mismatches} accesses do not follow the layout's map")
        if not np.array_equal(np.fromfile(file, np.uint64), expected):
            raise ReplayError(f"the replay {name} is wrong", "its accesses are not the program's in the program's order")
    finally:
        file.unlink(missing_ok=True)


def _timed(
    case: Case,
    seen: Observation,
    candidates: Sequence[Candidate],
    builds: Mapping[str, Path],
    reasons: Mapping[str, str],
    sources: Mapping[str, str],
    snapshots: Snapshots,
) -> Replays:
    variants = [Timed(REPLAY, builds[OWN])]
    variants += [Timed(Variant(c.id), builds[c.id], forbidden(c)) for c in candidates if c.id in builds]
    plan, _ = plans_for(case.chosen.in_situ_ns or 1e6, case.settings.restores, "thread-cpu", case.chosen.canary)
    timings = measure(
        snapshots,
        variants,
        Memory(seen.written, seen.touched),
        replace(plan, cold_calls=0),
        lambda i, n: case.space.progress.count("timing replays", i, n),
        drop=False,
    )
    ratios = {str(v.name): r for v in variants[1:] if (r := timings.ratio(REPLAY, v.name)) is not None}
    failed = {str(v): why for v, why in timings.failed.items()}
    return Replays(ratios, {**reasons, **failed}, sources, snapshots.kind, timings)


def sentence(replays: Replays) -> str:
    """A sentence on what the replays show, and what they do not; empty where there are none."""
    if not replays.ratios:
        return ""
    best = max(replays.ratios, key=lambda name: replays.ratios[name].median)
    ratio = replays.ratios[best]
    present, other, ends = "the present layout", best, (ratio.lo, ratio.hi)
    slower = ratio.median
    if slower < 1:
        present, other, ends = f"{best}, the best of the layouts replayed,", present, (1 / ratio.hi, 1 / ratio.lo)
        slower = 1 / slower
    return (
        f" Its loads and stores alone, replayed in the program's order without the computation, take {slower:.2f} "
        f"times as long in {present} as in {other} (95 % interval {ends[0]:.2f} to {ends[1]:.2f}, "
        f"{ratio.restores} processes). That is no speedup of the hotspot: how much of its time they are is not known."
    )
