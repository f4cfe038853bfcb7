"""The calls of other kinds than the one that the report is about: stopped at and observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from layout_advise.choose.policy import CHOOSE
from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.other_sizes import has_other_rows, of_other_sizes
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.layoutalgebra.explore.relayout import of_another
from layout_advise.observe.case import Case
from layout_advise.observe.find_kinds import Kinds, at_kind
from layout_advise.observe.observe import Observation
from layout_advise.observe.policy import OBSERVE
from layout_advise.tracer.process.stopped_program import Snapshots
from layout_advise.tracer.snapshot.agent_process import AgentProcess

NONE: Mapping[str, Structure | None] = MappingProxyType({})


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
        if kind.ns is not None and kind.ns < CHOOSE.alone_call_ns:
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
    return meets or any(not r.structure.placed for r in candidate.relayouts)


def instances(mine: Sequence[Structure], others: Sequence[Structure]) -> dict[str, Structure | None]:
    """By id: the structures of ``mine`` that another call has elsewhere, as they are there; None where that has other
    fields or another shape, it is not known which of several blocks it is, or something else lies there now.

    A layout belongs to all that is allocated at one place: a grid on the next level, a list that is freed and allocated
    again, also where the new block begins at the same address or within the old one. Found by name and place of
    allocation, else by type and place of allocation. A block that is there in both may have rows of another length: one
    that is used with other sizes at each call."""
    gone = [s for s in mine if _is_allocated(s) and not _is_among(s, others)]
    come = [s for s in others if _is_allocated(s) and not _is_among(s, mine)]
    found: dict[str, Structure | None] = {}
    for key in (_by_name, _by_type):
        for one in (s for s in gone if found.get(s.id) is None):
            alike = [s for s in come if key(s) == key(one)]
            if alike:
                alone = len(alike) == sum(key(s) == key(one) for s in gone) == 1
                found[one.id] = of_other_sizes(one, alike[0]) if alone else None
    return {s.id: None for s in gone if _meets(s, others)} | found | _with_other_rows(mine, others)


def _with_other_rows(mine: Sequence[Structure], others: Sequence[Structure]) -> dict[str, Structure]:
    """By id: the structures that another call has in the same block, and alone there, with rows of another length."""
    found = {}
    for one in (s for s in mine if s.placed):
        same = [s for s in others if s.placed and blocks_of([s]) == blocks_of([one])]
        alone = len(same) == 1 == sum(s.placed and blocks_of([s]) == blocks_of([one]) for s in mine)
        if alone and has_other_rows(one, same[0]) and (there := of_other_sizes(one, same[0])) is not None:
            found[one.id] = there
    return found


def _is_allocated(structure: Structure) -> bool:
    return structure.kind == "heap" and structure.alloc_site is not None and structure.placed


def _is_among(structure: Structure, others: Sequence[Structure]) -> bool:
    return blocks_of([structure]) <= blocks_of(others)


def _meets(structure: Structure, others: Sequence[Structure]) -> bool:
    start, size = next(iter(blocks_of([structure])))
    return any(start < other + count and other < start + size for other, count in blocks_of(others))


def _by_name(structure: Structure) -> tuple[object, ...]:
    return structure.alloc_site, structure.element_bytes, structure.name


def _by_type(structure: Structure) -> tuple[object, ...]:
    return structure.alloc_site, structure.element_bytes, structure.type


def moved(candidate: Candidate, found: Mapping[str, Structure | None]) -> Candidate | str:
    """``candidate`` as another call has it, where its structures are what is ``found`` there; or why it is none there."""
    layouts = []
    for layout in candidate.relayouts:
        there = found.get(layout.structure.id, layout.structure)
        fit = layout if there is layout.structure else of_another(layout, there) if there is not None else None
        if fit is None:
            return f"{layout.structure.name} lies elsewhere at this call, and the layout does not fit what is there"
        layouts.append(fit)
    return replace(candidate, relayouts=tuple(layouts))


def with_structures(now: Observation, seen: Observation, found: Mapping[str, Structure | None] = NONE) -> Observation:
    """The observation of another call, with the structures of ``seen``, those ``found`` elsewhere as they are there."""
    return Observation(
        now.region,
        now.trace,
        tuple(replace(d, structure=found.get(d.structure.id) or d.structure) for d in seen.derived),
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
    return {(s.block_base or s.base, s.bytes) for s in structures if s.placed}
