"""Time what was verified: who takes part, where, and what is measured again."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from layout_advise.build.build_and_compare import compiler_of, forbidden, make_mockups, without_failed
from layout_advise.build.code_places import hangs_on_place, have_room, moved
from layout_advise.build.mockups import Made
from layout_advise.build.recipes import Recipe
from layout_advise.case import Case
from layout_advise.choose import batches, profile
from layout_advise.choose.call_kinds import LEAST_SHARE
from layout_advise.choose.find_kinds import timed_again
from layout_advise.decide.mixture import Portion
from layout_advise.decide.usage import Use
from layout_advise.decide.verdict import SMALLEST_GAIN, VerdictContext
from layout_advise.decide.verdict_over_kinds import Race, decide_mixed
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.effort import plans_for
from layout_advise.measure.entrants import Bench, Contest, Entrant
from layout_advise.measure.measured import Measured
from layout_advise.measure.thread_counts import Runner, by_threads, leading
from layout_advise.measure.timing import Decision, decide_and_confirm
from layout_advise.mockup.emit import kernel_name
from layout_advise.mockup.ir.data_branches import branches_on_data
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.run.code_placement import same_loops
from layout_advise.mockup.run.same_code import same_code
from layout_advise.mockup.timing.names import (
    CONTROLS,
    FORMS_OF_IDENTITY,
    IDENTITY,
    IDENTITY_BLOCKS,
    IDENTITY_LANES,
    LAYOUT_SCALAR,
    PLACED,
    SCALAR,
    elsewhere,
)
from layout_advise.mockup.timing.ratios import identity_of, noise_floor
from layout_advise.mockup.timing.timings import Timings
from layout_advise.observe.gather import tables_of
from layout_advise.observe.observe import Observation, is_beyond_the_l2, leaves_data
from layout_advise.observe.other_kinds import Ready, not_all_kinds
from layout_advise.propose.titles import title, words
from layout_advise.reports.model.hotspot import ByThreads
from layout_advise.rundir import write_atomically
from layout_advise.tracer.process.stopped_program import Snapshots, StoppedProgram
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.verify.verify import Finding, Subject

LESS_ALIGNED = ("-falign-functions=32", "-falign-loops=16")
"""Code alignment of the second measurement: a gain must not hang on where the code happens to lie."""


def time_all(
    case: Case,
    seen: Observation,
    lifted: Lifted,
    candidates: Sequence[Candidate],
    made: dict[str, Made],
    found: dict[str, Finding],
    snapshots: Snapshots,
    ready: Sequence[Ready] = (),
    left_out: Mapping[int, str] = MappingProxyType({}),
) -> Decision:
    allow = case.settings.allow_reassociation
    context = VerdictContext(snapshots.kind, found[IDENTITY].evidence, None, 1.0, bool(candidates), allow)
    contest = contest_of(case, seen, lifted, candidates, made, found)
    bench = bench_of(case, seen, snapshots, branches=branches_on_data(lifted))
    if not case.kinds:
        decision = decide_and_confirm(contest, bench, case.chosen.in_situ_ns, context)
    else:
        kind = case.kinds[0]
        races = [Race(kind.text, kind.share, contest, bench, case.chosen.in_situ_ns)]
        races += [_race(one, lifted, candidates, found, {e.id for e in contest.entrants}) for one in ready]
        rest = [Portion(k.text, k.share, None) for k in case.kinds if k.call in left_out]
        decision = decide_mixed(races, rest, context)
        if any(k.share >= LEAST_SHARE for k in case.kinds if k.call in left_out):
            decision = replace(decision, verdict=not_all_kinds(decision.verdict))
    raw = {"first": _raw(decision.first), "again": _raw(decision.again) if decision.again else None}
    if decision.kinds:
        raw["kinds"] = {k.text: _raw(k.again or k.first) for k in decision.kinds}
    write_atomically(case.run.timings, json.dumps(raw, indent=1).encode())
    return decision


def _race(
    one: Ready, lifted: Lifted, candidates: Sequence[Candidate], found: dict[str, Finding], entrants: set[str]
) -> Race:
    """The contest at the calls of another kind; none where no candidate concerns them."""
    case, kind = one.other.case, one.other.case.kinds[0]
    contest = contest_of(case, one.seen, lifted, candidates, one.made, found)
    if entrants <= one.unaffected:
        return Race(kind.text, kind.share, None, None, case.chosen.in_situ_ns, one.unaffected)
    bench = bench_of(case, one.seen, one.other.snapshots(), branches=branches_on_data(lifted))
    return Race(kind.text, kind.share, contest, bench, case.chosen.in_situ_ns, one.unaffected)


def bench_of(case: Case, seen: Observation, snapshots: Snapshots, *, branches: bool = False) -> Bench:
    plans = plans_for(case.chosen.in_situ_ns or 1e6, case.settings.restores, case.clock, case.chosen.canary)
    first, again = (replace(plan, typical=is_beyond_the_l2(seen)) for plan in plans)
    return Bench(
        snapshots,
        (seen.written, seen.touched),
        first,
        again,
        case.progress.count,
        lambda canary: look_again(case, canary),
        case.chosen.between_ns if case.batch is None and not case.kinds else None,
        case.batch is None and leaves_data(seen),
        branches,
        branches and case.batch is None and seen.team is None,
    )


def contest_of(
    case: Case,
    seen: Observation,
    lifted: Lifted,
    candidates: Sequence[Candidate],
    made: dict[str, Made],
    found: dict[str, Finding],
) -> Contest:
    """What takes part at the calls of one kind: what was verified at all of them."""
    entrants, unmeasured = [], []
    kernel, hanging = kernel_name(lifted), hangs_on_place(seen, lifted)
    for name, item in made.items():
        candidate = item.recipe.candidate
        if candidate is None or item.recipe.wrong or item.same_as is not None:
            continue
        if item.mockup is not None and name in found and found[name].reason is None:
            entrants.append(
                Entrant(
                    name,
                    title(candidate, case.profiled.name, written_out=item.written_out),
                    found[name].evidence,
                    item.mockup,
                    forbidden(candidate, seen.tables),
                    candidate.block is not None,
                    words(candidate),
                )
            )
    for candidate in candidates:
        if not any(e.id.split("-")[0] == candidate.id for e in entrants):
            why = made[candidate.id].reason if candidate.id in made else None
            why = why or (found[candidate.id].reason if candidate.id in found else None)
            unmeasured.append(Measured(candidate.id, "rejected", None, None, reason=why or "", words=words(candidate)))

    def rebuild(best: str, names: Sequence[str], places: bool) -> dict[str, Path]:
        recipe = made[best].recipe
        wanted = [made[name].recipe for name in (best, *names)]
        wanted.append(Recipe(LAYOUT_SCALAR, recipe.candidate, "plain", vectorised=False))
        if recipe.candidate is not None and recipe.candidate.block is not None and not tables_of(recipe.candidate):
            wanted.append(Recipe(IDENTITY_BLOCKS, None, "plain", blocks=recipe.candidate))
        fresh = [replace(r, checked=False, offset=64 * 5) for r in wanted]
        again = make_mockups(case, seen, lifted, fresh, case.work / f"again{case.chosen.call}", LESS_ALIGNED, places=places)
        again = without_failed(again, found)
        built = worth_timing({n: m.mockup for n, m in again.items() if m.mockup is not None}, best, kernel)
        if places and hanging and IDENTITY in again:
            timed = (again[n] for n in (best, *FORMS_OF_IDENTITY) if n in again and n in built)
            built |= moved(timed, compiler_of(case).executable)
        return built

    def places() -> dict[str, Path]:
        if not have_room(c for e in entrants if (c := made[e.id].recipe.candidate) is not None):
            return {}
        return moved((made[e.id] for e in entrants), compiler_of(case).executable)

    return Contest(
        controls(made, found, bool(entrants), kernel),
        entrants,
        unmeasured,
        rebuild,
        lambda timings, name: around_a_call(timings, name, case.timed_calls) if case.settings.temporary else None,
        places if hanging else None,
    )


def look_again(case: Case, canary: int) -> float | None:
    """What is timed, in further runs of the program (ns), which wait for such a canary."""
    if case.batch is not None:
        return batches.look_again(case.settings, case.profiled, case.stdin, case.batch)
    if case.kinds:
        return timed_again(case, case.kinds[0])
    chosen = replace(case.chosen, canary=min((c for c in (canary, case.chosen.canary) if c), default=0))
    return profile.look_again(case.settings, case.profiled, case.stdin, chosen, profile.SECOND_LOOK_SECONDS).in_situ_ns


def worth_timing(built: dict[str, Path], best: str, kernel: str) -> dict[str, Path]:
    """``built`` without the scalar builds where these are the same programs as the others (there is no SIMD to tell from
    the layout), and without an identity in blocks that is the same as the other."""
    pairs = ((IDENTITY, SCALAR), (best, LAYOUT_SCALAR))
    if IDENTITY_BLOCKS in built and IDENTITY in built and same_code(built[IDENTITY], built[IDENTITY_BLOCKS]):
        built = {name: path for name, path in built.items() if name != IDENTITY_BLOCKS}
    if all({one, other} <= set(built) and _same_program(built[one], built[other], kernel) for one, other in pairs):
        return {name: path for name, path in built.items() if name not in (SCALAR, LAYOUT_SCALAR)}
    return built


def _same_program(one: Path, other: Path, kernel: str) -> bool:
    return same_code(one, other) or same_loops(one, other, kernel)


def controls(made: dict[str, Made], found: dict[str, Finding], compared: bool, kernel: str) -> dict[str, Path]:
    """The identity, and its other builds where candidates are compared with them; no scalar one that is the same program."""
    chosen = {}
    nearest = [n for form in (IDENTITY, IDENTITY_LANES) for n in (form, *elsewhere(form))]
    plain, scalar = (made[name].mockup if name in made else None for name in (IDENTITY, SCALAR))
    alike = plain is not None and scalar is not None and _same_program(plain, scalar, kernel)
    for name in CONTROLS:
        item, finding = made.get(name), found.get(name)
        if name == SCALAR and alike:
            continue
        usable = item is not None and finding is not None and finding.reason is None and item.same_as is None
        if (
            item is not None
            and item.mockup is not None
            and (name == IDENTITY or (usable and (compared or name in (PLACED, *nearest))))
        ):
            chosen[name] = item.mockup
    return chosen


def around_a_call(timings: Timings, name: str, calls: int = 1) -> float | None:
    """What a layout that exists only during a call costs the ``calls`` that are timed together, in ns: converting there and
    back around each. None when not measured."""
    costs = timings.conversion.get(name)
    return None if costs is None else calls * sum(costs)


def _raw(timings: Timings) -> dict[str, object]:
    timings = timings.origin or timings
    return {
        "steady": timings.steady,
        "cold": timings.cold,
        "fresh": timings.fresh,
        "canaries": {m: [{n: [c.core for c in s] for n, s in r.items()} for r in rs] for m, rs in timings.canaries.items()},
        "failed": timings.failed,
        "dropped": timings.dropped,
    }


def region_by_threads(
    case: Case,
    parked: StoppedProgram,
    seen: Observation,
    made: dict[str, Made],
    found: dict[str, Finding],
    decision: Decision,
    snapshots: Snapshots,
) -> ByThreads | None:
    """A parallel region with other thread counts: the original, the identity, the winner or the best layout measured."""
    if seen.team is None or not isinstance(parked, AgentProcess) or snapshots.kind != "criu":
        return None
    mode = decision.mode or "steady"
    best = leading(decision, {n for n, m in made.items() if m.recipe.candidate is not None}, mode)
    identity = identity_of(decision.first, best or IDENTITY)
    wanted = dict.fromkeys(name for name in (IDENTITY, identity, best) if name is not None)
    subjects = []
    for name in wanted:
        item = made[name]
        assert item.mockup is not None
        subjects.append(Subject(name, item.mockup, None, forbidden(item.recipe.candidate, seen.tables), None))
    bench = bench_of(case, seen, snapshots)
    case.progress.step("running the region with other numbers of threads")
    return by_threads(
        parked,
        seen.team,
        snapshots,
        Runner(tuple(subjects), identity, best),
        bench.ranges,
        bench.plan,
        mode,
        len(os.sched_getaffinity(0)),
        lambda i, n: case.progress.count("running the region with other numbers of threads", i, n),
    )


def use_of(decision: Decision, calls: int) -> Use:
    """What is known of converting to the winner's layout instead of changing the program."""
    timings, name = decision.again, decision.winner
    if timings is None or name is None:
        return Use(None, None, calls, 1.0)
    mode = decision.mode or "steady"
    bound = max(noise_floor(timings, mode)[1], SMALLEST_GAIN[decision.snapshot])
    return Use(timings.net(name, mode), timings.break_even(name, mode), calls, bound)
