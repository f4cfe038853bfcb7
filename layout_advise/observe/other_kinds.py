"""The calls of other kinds than the one that the report is about: stopped at, observed, and what was verified there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from layout_advise.build.mockups import Made
from layout_advise.build.recipes import Recipe
from layout_advise.case import Case
from layout_advise.choose.call_kinds import LEAST_SHARE, MOST_KINDS
from layout_advise.choose.find_kinds import Kinds, at_kind
from layout_advise.decide.verdict import SHORT_CALL_NS, undecided
from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.derive import plain_reason
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.observe.observe import Observation
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.tracer.process.stopped_program import Snapshots, StoppedProgram
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.verify.verify import Finding

NEARLY_MOST = 0.75
"""A kind of calls with this part of the greatest share may stand first: the program need not be stopped at another call."""


@dataclass(frozen=True, slots=True)
class Other:
    """The program stopped at a call of another kind, and what this call touches."""

    case: Case
    program: StoppedProgram
    seen: Observation
    snapshots: Callable[[], Snapshots]


@dataclass(frozen=True, slots=True)
class Others:
    """The other kinds of calls of the hotspot: those to measure, and why the rest is not, by the call that stands for it."""

    tried: tuple[Other, ...] = ()
    left_out: Mapping[int, str] = field(default_factory=dict)


NO_OTHERS = Others()


@dataclass(frozen=True, slots=True)
class Ready:
    """The mock-ups for the calls of another kind, compared at up to three of them. ``unaffected``: candidates (recipe names)
    that re-lay memory which these calls do not touch."""

    other: Other
    seen: Observation
    made: dict[str, Made]
    unaffected: frozenset[str]
    calls: int
    same: bool


def in_order(kinds: Kinds, call: int, wanted: int | None) -> Kinds:
    """``kinds`` with that of ``call`` first, where the user asked for it or hardly another one takes more time."""
    enough = 0.0 if wanted is not None else NEARLY_MOST * kinds.found[0].share
    mine = [kind for kind in kinds.found if call in kind.members and kind.share >= enough]
    return replace(kinds, found=(*mine, *(kind for kind in kinds.found if kind not in mine)))


def observe_others(case: Case, stack: ExitStack, snapshots: Callable[[Case, AgentProcess, ExitStack], Snapshots]) -> Others:
    """Stop the program at calls of the other kinds too, which live as long as ``stack``, and see what they touch."""
    tried: list[Other] = []
    left_out: dict[int, str] = {}
    for number, kind in enumerate(case.kinds[1:], 1):
        if kind.share < LEAST_SHARE:
            left_out[kind.call] = "too little of the hotspot's time"
            continue
        if kind.ns is not None and kind.ns < SHORT_CALL_NS:
            left_out[kind.call] = "too short to be timed one by one"
            continue
        if len(tried) == MOST_KINDS - 1:
            left_out[kind.call] = f"at most {MOST_KINDS} kinds are measured"
            continue
        case.progress.step(f"stopping the program at call {kind.call}, for {kind.text}")
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
    """Whether the call touches memory that the candidate re-lays; where that is objects behind pointers, it may."""
    mine, touched = blocks_of(r.structure for r in candidate.relayouts), blocks_of(now.structures)
    meets = any(a < b + size and b < a + count for a, count in mine for b, size in touched)
    return meets or any(r.structure.via is not None for r in candidate.relayouts)


def untried(seen: Observation, others: Others) -> tuple[str, ...]:
    """Structures that only calls of other kinds use and that could be laid out otherwise."""
    known = blocks_of(seen.structures)
    found = [s for one in others.tried for s in one.seen.structures if plain_reason(s) is None]
    return tuple(dict.fromkeys(s.name for s in found if not blocks_of((s,)) <= known))


def doubt_untried(verdict: Verdict, names: Sequence[str]) -> Verdict:
    """No ``keep`` where calls of other kinds use structures of their own, for which no layout was tried."""
    if verdict.action != "keep" or not names:
        return verdict
    text = f"no measured layout is faster, but {', '.join(names)}, which only calls of another kind use, was not re-laid."
    return undecided("not-all-tried", text)


def with_structures(now: Observation, seen: Observation) -> Observation:
    """What another call touches, with the structures of ``seen``."""
    return Observation(
        now.region,
        now.trace,
        seen.derived,
        now.written,
        now.touched,
        team=now.team,
        varying=now.varying | seen.varying,
        attribution=now.attribution,
    )


def blocks_of(structures: Iterable[Structure]) -> set[tuple[int, int]]:
    """Where the memory of structures begins, and how much it is; scattered objects behind pointers have no one place."""
    return {(s.block_base or s.base, s.bytes) for s in structures if s.via is None}


def reject(
    found: dict[str, Finding],
    good: Sequence[Recipe],
    here: Mapping[str, Finding],
    made: Mapping[str, Made],
    choices: Mapping[str, Candidate | str],
    call: int,
) -> None:
    """Note in ``found`` what differed at ``call``, and the greatest distance of sums that rounding explains."""
    for recipe in good:
        one, choice = here.get(recipe.name), choices.get(recipe.name)
        reason = choice if isinstance(choice, str) else one.reason if one else made[recipe.name].reason
        if reason is not None:
            found[recipe.name] = Finding(f"at call {call}: {reason}")
        elif one is not None and one.max_ulp > found[recipe.name].max_ulp:
            found[recipe.name] = replace(found[recipe.name], max_ulp=one.max_ulp)


def not_all_kinds(verdict: Verdict) -> Verdict:
    """No answer where calls with much of the hotspot's time were not measured."""
    if verdict.action == "undecided":
        return verdict
    text = f"calls with a good part of the hotspot's time were not measured. Of the others: {verdict.text}"
    return undecided("kinds-not-measured", text)
