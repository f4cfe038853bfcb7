"""The calls of other kinds than the one that the report is about: stopped at and observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from layout_advise.choose.policy import CHOOSE
from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.observe.case import Case
from layout_advise.observe.find_kinds import Kinds, at_kind
from layout_advise.observe.observe import Observation
from layout_advise.observe.policy import OBSERVE
from layout_advise.tracer.process.stopped_program import Snapshots
from layout_advise.tracer.snapshot.agent_process import AgentProcess


@dataclass(frozen=True, slots=True)
class Other:
    """The program stopped at a call of another kind, and what this call touches."""

    case: Case
    program: AgentProcess
    seen: Observation
    snapshots: Callable[[], Snapshots]


@dataclass(frozen=True, slots=True)
class Others:
    """The other kinds of calls of the hotspot: those to measure, and why the rest is not, by the call that stands for it."""

    tried: tuple[Other, ...] = ()
    left_out: Mapping[int, str] = field(default_factory=dict)


def in_order(kinds: Kinds, call: int, wanted: int | None) -> Kinds:
    """``kinds`` with that of ``call`` first, where the user asked for it or hardly another one takes more time."""
    enough = 0.0 if wanted is not None else OBSERVE.nearly_most * kinds.found[0].share
    mine = [kind for kind in kinds.found if call in kind.members and kind.share >= enough]
    return replace(kinds, found=(*mine, *(kind for kind in kinds.found if kind not in mine)))


def observe_others(case: Case, stack: ExitStack, snapshots: Callable[[Case, AgentProcess, ExitStack], Snapshots]) -> Others:
    """Stop the program at calls of the other kinds too, which live as long as ``stack``, and see what they touch."""
    tried: list[Other] = []
    left_out: dict[int, str] = {}
    for number, kind in enumerate(case.kinds[1:], 1):
        if kind.share < CHOOSE.least_kind_share:
            left_out[kind.call] = "too little of the hotspot's time"
            continue
        if kind.ns is not None and kind.ns < CHOOSE.short_call_ns:
            left_out[kind.call] = "too short to be timed one by one"
            continue
        if len(tried) == CHOOSE.most_kinds - 1:
            left_out[kind.call] = f"at most {CHOOSE.most_kinds} kinds are measured"
            continue
        case.space.progress.step(f"stopping the program at call {kind.call}, for {kind.text}")
        own = at_kind(case, (kind, *case.kinds[:number], *case.kinds[number + 1 :]))
        try:
            program = stack.enter_context(own.park(kind.call))
            now = own.observe(program, kind.call)
        except LayoutAdviseError as error:
            left_out[kind.call] = error.line()
            continue
        if now.trace.truncated:
            left_out[kind.call] = "its trace is not whole"
            continue
        tried.append(Other(own, program, now, partial(snapshots, own, program, stack)))
    return Others(tuple(tried), left_out)


def concerns(candidate: Candidate, now: Observation) -> bool:
    """Tells whether the call touches memory that the candidate re-lays; where that is objects behind pointers, it may."""
    mine, touched = blocks_of(r.structure for r in candidate.relayouts), blocks_of(now.structures)
    meets = any(a < b + size and b < a + count for a, count in mine for b, size in touched)
    return meets or any(r.structure.via is not None for r in candidate.relayouts)


def with_structures(now: Observation, seen: Observation) -> Observation:
    """The observation of another call, with the structures of ``seen``."""
    return Observation(
        now.region,
        now.trace,
        seen.derived,
        now.written,
        now.touched,
        team=now.team,
        varying=now.varying | seen.varying,
        put=now.put,
        puts=now.puts,
        attribution=now.attribution,
    )


def blocks_of(structures: Iterable[Structure]) -> set[tuple[int, int]]:
    """Start and size of the memory of structures; scattered objects behind pointers have no one place."""
    return {(s.block_base or s.base, s.bytes) for s in structures if s.via is None}
