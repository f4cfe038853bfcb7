"""The mock-ups compared at further calls, and at calls of other kinds: the program is started anew for each of them. Where
that would take too long for all of them, the fastest of a first race go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from layout_advise.build.policy import BUILD
from layout_advise.build.stage import Built, build_all, build_at_call
from layout_advise.choose.policy import CHOOSE
from layout_advise.errors import ProgramError, SnapshotError, TraceError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.stage import KindTimed, first_race, measure_kind, seconds_of
from layout_advise.mockup.evidence.kept_calls import taken_after_all
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.timing.variants import Variant
from layout_advise.observe.case import Case, outside_arguments
from layout_advise.observe.gather import gather_again, pools_elsewhere
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import Other, Others, blocks_of, concerns, instances, moved, with_structures
from layout_advise.propose.proposals import Proposed
from layout_advise.propose.recipes import Recipe
from layout_advise.propose.source import Source, source_of
from layout_advise.tracer.process.stopped_program import Snapshots, StoppedProgram
from layout_advise.tracer.sampling.turns import own_time
from layout_advise.tracer.snapshot.recorded_calls import RSP
from layout_advise.tracer.trace.trace import Trace
from layout_advise.verify.compare import Findings, compared, differing, rejected
from layout_advise.verify.policy import VERIFY
from layout_advise.verify.stage import Verified, verify_first
from layout_advise.verify.verify import NOTHING_CHANGED, Finding
from layout_advise.workspace import Workspace


@dataclass(frozen=True, slots=True)
class AtKind:
    """The mock-ups made and compared for the calls of another kind; ``unaffected`` candidates re-lay memory that these calls
    do not touch."""

    other: Other
    verified: Verified
    unaffected: frozenset[Variant] = field(default_factory=frozenset)


def at_another_call(
    now: Observation, seen: Observation, lifted: Lifted, program: StoppedProgram, recipes: Sequence[Recipe]
) -> tuple[Observation, tuple[Recipe, ...], dict[Variant, str]]:
    """Another call with the structures of ``seen``, those that it has elsewhere as they are there, and those of its arrays
    of pointers that it finds as they are; the recipes as they are for it, and why there are none of others."""
    found = instances(seen.structures, now.structures)
    tables, why = gather_again(now, seen.tables, lifted, program.read)
    there = replace(with_structures(now, seen, found), tables=tables, refused=(why,) if why else ())
    fit: list[Recipe] = []
    unfit: dict[Variant, str] = {}
    for recipe in recipes:
        candidate, through = (moved(one, found) if one is not None else None for one in (recipe.candidate, recipe.through))
        if not isinstance(candidate, str) and (elsewhere := pools_elsewhere(candidate, now)) is not None:
            candidate = elsewhere
        if isinstance(candidate, str) or isinstance(through, str):
            unfit[recipe.variant] = candidate if isinstance(candidate, str) else str(through)
        else:
            fit.append(replace(recipe, candidate=candidate, through=through))
    return there, tuple(fit), unfit


def verify_at(
    space: Workspace,
    program: StoppedProgram,
    now: Observation,
    source: Source,
    good: Sequence[Recipe],
    found: Findings,
    call: int,
) -> tuple[Built, Findings, bool]:
    """The mock-ups of ``good`` made anew for the call that ``program`` is stopped at and compared there: what was made, what
    was found so far with what differed there, and whether the call says anything. One that leaves everything as it was does
    not: the program has come to rest."""
    built, choices = build_at_call(space, source, now, good)
    here = compared(space, program, source, built.mockups)
    told = {variant: finding for variant, finding in here.items() if finding.reason != NOTHING_CHANGED}
    return built, rejected(found, good, told, built.mockups, choices, call), told.keys() == here.keys()


def traces_ahead(cases: Sequence[Case]) -> tuple[Trace, ...]:
    """The further calls that mock-ups are compared at, of the kinds that ``cases`` are of, traced beforehand, as far as they
    can be: a way that one of them takes would end the mock-ups, which are not made yet."""
    found = []
    for case in cases:
        for call in case.calls_compared[1:]:
            case.space.progress.step(f"looking at the ways that call {call} takes")
            try:
                with case.park(call) as program:
                    found.append(case.observe(program, call).trace)
            except (ProgramError, SnapshotError, TraceError):  # it is told where they are compared
                break
    return tuple(found)


def verify_further(case: Case, seen: Observation, lifted: Lifted, verified: Verified) -> Verified:
    """Compares at the next two calls too, each in a program started anew and with a trace of its own (a call may use other
    fields than the one before). What differs there is rejected. Where one takes ways that end the mock-ups, those of the
    rest are only looked for: the study is taken up again with all of them at once."""
    ways: frozenset[int] = frozenset()
    for call in case.calls_compared[1:]:
        good = verified.good
        if case.until - own_time() < seconds_of(case) + len(good) * verified.each:
            case.space.progress.note(f"not compared at call {call}: the run has to end")
            break
        case.space.progress.step(f"stopping the program at call {call}")
        with case.park(call) as program:
            if verified.left is not None and verified.calls == 1:
                verified = replace(verified, unlike=differing(program, verified.left))
            try:
                now = case.observe(program, call)
            except (SnapshotError, TraceError) as error:  # what was compared so far counts
                case.space.progress.note(f"not compared at call {call}: {error.line()}")
                break
            ways |= taken_after_all(lifted, seen.trace, now.trace)
            if ways:
                continue
            at_call, here, unfit = at_another_call(now, seen, lifted, program, good)
            if unfit or not _laid_out(here) <= blocks_of(now.structures):
                return replace(verified, same_addresses=False)
            source = source_of(at_call, lifted, case.profiled.module, case.profiled.function)
            _, found, tells = verify_at(case.space, program, at_call, source, here, verified.found, call)
        verified = replace(verified, found=found)
        if not tells:
            return verified
        verified = replace(verified, calls=verified.calls + 1)
    return replace(verified, took=ways)


def _laid_out(recipes: Sequence[Recipe]) -> set[tuple[int, int]]:
    """The memory that the candidates of some recipes lay out anew."""
    return blocks_of(r.structure for g in recipes if g.candidate for r in g.candidate.relayouts)


def step_seconds(case: Case, others: Others) -> float:
    """Seconds for building, for comparing, and for both at the calls of another kind: each an equal part of what the run has
    left before it measures."""
    left = case.until - seconds_of(case) - own_time()
    return min(BUILD.budget_s, max(BUILD.least_s, left / (2 + len(others.tried))))


def made_here(case: Case, program: StoppedProgram, proposed: Proposed, source: Source, others: Others) -> Verified:
    """Makes the mock-ups and compares them at the call that ``program`` is stopped at, as many as there is time for. Raises
    SnapshotError when the original cannot be run."""
    batch = outside_arguments(proposed.seen.touched, program.registers().gpr[RSP]) if case.batch is not None else None
    seconds, begun = step_seconds(case, others), own_time()
    built = build_all(case.space, source, proposed.candidates, begun + seconds)
    verified = verify_first(case.space, program, built, batch, seconds)
    return replace(verified, each=(own_time() - begun) / max(len(verified.found), 1))


def fastest_first(
    case: Case, seen: Observation, verified: Verified, others: Others, copies: Callable[[], Snapshots]
) -> Verified:
    """``verified`` with those builds of layouts only that are to be compared further: all of them, or, where making and
    comparing all once more for each call would take too long, the fastest of a race at the first call, as many as there is
    time for at one call of each kind."""
    good = verified.good
    builds = [r.variant for r in good if r.candidate is not None]
    passes = sum(len(one.calls_compared) for one in (case, *(other.case for other in others.tried))) - 1
    left = min(VERIFY.further_s, case.until - seconds_of(case) - own_time())
    if passes * len(good) * verified.each <= left or verified.problem is not None:
        return verified
    room = left / max(verified.each * max(len(others.tried), 1), 1e-9) - (len(good) - len(builds))
    places = max(VERIFY.fewest_further, int(room))
    if len(builds) <= places:
        return verified
    case.space.progress.step(f"looking for the {places} fastest of {len(builds)} builds")
    return replace(verified, behind=first_race(case, seen, verified.built, verified.found, copies(), places))


def verify_further_and_kinds(
    case: Case, seen: Observation, verified: Verified, others: Others
) -> tuple[Verified, tuple[AtKind, ...]]:
    """Compares what did the same at the first call at further ones too, and at those of other kinds."""
    lifted = verified.built.source.lifted
    verified = verify_further(case, seen, lifted, verified)
    kinds = []
    for other in others.tried:
        one, verified = verify_kind(other, seen, lifted, verified)
        kinds.append(one)
    return verified.completed(), tuple(kinds)


def verify_kind(other: Other, seen: Observation, lifted: Lifted, verified: Verified) -> tuple[AtKind, Verified]:
    """Makes the mock-ups for the calls of another kind and compares them there; what differs is rejected in all."""
    case, now, call = other.case, other.seen, other.case.chosen.call
    at_call, good, unfit = at_another_call(now, seen, lifted, other.program, verified.good)
    verified = replace(
        verified, found={**verified.found, **{v: Finding(f"at call {call}: {why}") for v, why in unfit.items()}}
    )
    concerned = tuple(r for r in good if r.candidate is None or concerns(r.candidate, now))
    unaffected = frozenset(r.variant for r in good if r not in concerned)
    source = source_of(at_call, lifted, case.profiled.module, case.profiled.function)
    if all(r.candidate is None for r in concerned):
        alone = Verified(Built(source, concerned, {}), verified.found, CHOOSE.verified_calls)
        return AtKind(replace(other, seen=at_call), alone, unaffected), verified
    case.space.progress.step(f"compiling mock-ups for {case.kinds[0].text}")
    built, found, _ = verify_at(case.space, other.program, at_call, source, concerned, verified.found, call)
    there = replace(seen, derived=at_call.derived)
    here = verify_further(case, there, lifted, Verified(replace(built, wanted=concerned), found))
    both = replace(
        verified,
        found=here.found,
        calls=verified.calls + here.calls,
        same_addresses=verified.same_addresses and here.same_addresses,
        took=verified.took | here.took,
    )
    return AtKind(replace(other, seen=at_call), here, unaffected), both


def time_kinds(
    main: KindTimed, kinds: Sequence[AtKind], verified: Verified, candidates: Sequence[Candidate], others: Others
) -> tuple[tuple[KindTimed, ...], Others]:
    """The times at the calls of all kinds, ``main`` those of the first one, and ``others`` with the kinds that were left out
    too, as the run has to end. Nothing is timed at calls that no entrant concerns."""
    assert main.times is not None
    entrants, timed = {e.variant for e in main.times.contest.entrants}, [main]
    for one in kinds:
        case, built = one.other.case, one.verified.built
        if entrants <= one.unaffected:
            timed.append(KindTimed(case, built, None, one.unaffected))
        elif own_time() > case.until and case.settings.restores is None:
            others = replace(others, left_out={**others.left_out, case.kinds[0].call: "the run had to end"})
        else:
            snapshots, seen = one.other.snapshots(), one.other.seen
            found = measure_kind(case, seen, built, verified.racing, candidates, snapshots, beside=main)
            timed.append(replace(found, unaffected=one.unaffected))
    return tuple(timed), others
