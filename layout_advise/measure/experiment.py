"""Build, verify and time the candidates of one hotspot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from layout_advise.build.build_and_compare import (
    WRONG,
    at_another_call,
    code_of,
    compare_at,
    compared,
    further_calls,
    inherited,
    is_better_kept,
    left_behind,
    make_mockups,
    other_places,
    without_failed,
    writes_noticed,
)
from layout_advise.build.mockups import Made, twins
from layout_advise.build.recipes import Code, Recipe, recipes
from layout_advise.case import Case
from layout_advise.choose.calls import VERIFIED_CALLS
from layout_advise.decide.gain_words import with_peers
from layout_advise.decide.usage import with_use
from layout_advise.decide.verdict import Mode, for_program, undecided
from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.timing import Decision
from layout_advise.measure.timing_setup import region_by_threads, time_all, use_of
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.remap.conversion_view import View, view
from layout_advise.mockup.remap.plan import plan
from layout_advise.mockup.timing.names import IDENTITY
from layout_advise.mockup.timing.timings import Timings
from layout_advise.observe.observe import Observation
from layout_advise.observe.other_kinds import NO_OTHERS, Other, Others, Ready, concerns, doubt_untried, reject, untried
from layout_advise.observe.other_users import between_calls
from layout_advise.reports.model.hotspot import ByThreads, Verdict
from layout_advise.tracer.process.stopped_program import Snapshots, StoppedProgram
from layout_advise.verify.verify import NOTHING_CHANGED, Finding


@dataclass(frozen=True, slots=True)
class Trials:
    """``made`` and ``found`` by recipe name; ``calls`` is at how many calls the bytes were compared."""

    made: dict[str, Made]
    found: dict[str, Finding]
    calls: int
    same_addresses: bool
    wrong_map_caught: bool | None
    decision: Decision | None
    verdict: Verdict
    views: dict[str, View] = field(default_factory=dict)
    """What a view of a layout copies around a call, by the candidate's id."""
    unlike: int | None = None
    """In how many bytes the memory that a batch touches differs after it from the program's own; None where not compared."""
    left_out: Mapping[int, str] = field(default_factory=dict)
    """Of kinds of calls that were not measured, by the call that stands for them: why not."""
    threads: ByThreads | None = None
    """A parallel region with other numbers of threads."""

    @property
    def timings(self) -> Timings | None:
        """The first measurement."""
        return self.decision.first if self.decision else None

    @property
    def mode(self) -> Mode | None:
        """Which of steady and cold counts."""
        return self.decision.mode if self.decision else None


def run_trials(
    case: Case,
    parked: StoppedProgram,
    seen: Observation,
    candidates: Sequence[Candidate],
    lifted: Lifted,
    snapshots: Callable[[], Snapshots],
    others: Others = NO_OTHERS,
) -> Trials:
    """All trials of one hotspot. Raises SnapshotError when the original cannot be run or no snapshot can be taken."""
    candidates = [replace(c, temporary=case.settings.temporary) for c in candidates]
    case.progress.step("compiling mock-ups")
    code = code_of(seen, lifted)
    wanted = recipes(candidates, code, is_better_kept(case, seen, code))
    built = make_mockups(case, seen, lifted, wanted, case.run.mockups, (), places=True)
    made = {m.recipe.name: m for m in twins(tuple(built.values()))}
    wanted = tuple(r for r in wanted if made[r.name].same_as is None)
    made |= {m.recipe.name: m for m in other_places(case, seen, lifted, made)}
    found = compared(case, parked, seen, lifted, made)
    made = without_failed(made, found)
    caught = found[WRONG].reason is not None if WRONG in found else None
    found.pop(WRONG, None)
    if caught is False:
        caught = writes_noticed(case, parked, seen, lifted, made[WRONG].recipe)
    found = inherited(found, made)
    left = left_behind(parked, seen.touched) if case.batch is not None else None
    found, calls, same, unlike = further_calls(case, seen, lifted, wanted, found, left)
    ready = []
    for other in others.tried:
        one, found = _ready(other, seen, lifted, wanted, found)
        ready.append(one)
        calls, same = min(calls, one.calls), same and one.same
    found |= {name: found[m.same_as] for name, m in made.items() if m.same_as in found}
    identity = found.get(IDENTITY)
    if identity is None or identity.reason is not None:
        why = (identity.reason if identity else made[IDENTITY].reason) or "it could not be built"
        text = f"the unchanged mock-up does not do what the original does ({why}), so no number counts."
        if why == NOTHING_CHANGED:
            text = f"no layout can be checked: {why}. Another call (--call N) or other data may differ."
        return Trials(made, found, calls, same, caught, None, undecided("identity-not-verified", text), unlike=unlike)
    if caught is False:
        text = "a deliberately wrong layout went unnoticed: what the call leaves behind does not depend on these structures."
        return Trials(made, found, calls, same, caught, None, undecided("comparison-blind", text), unlike=unlike)
    decision = time_all(case, seen, lifted, candidates, made, found, snapshots(), ready, others.left_out)
    verdict = doubt_untried(for_program(decision.verdict, case.profiled.share), untried(seen, others))
    # what converting costs is timed around a batch, not a call, and at calls of one kind only
    if not case.settings.temporary and case.batch is None and not case.kinds:
        winner = next((c for c in candidates if decision.winner and c.id == decision.winner.partition("-")[0]), None)
        others_seen = between_calls(winner, seen.users) if winner is not None else None
        verdict = with_use(verdict, replace(use_of(decision, case.probe.calls), others=others_seen))
    verdict = with_peers(verdict, decision.peers)
    views = _views(seen, code_of(seen, lifted), candidates)
    threads = region_by_threads(case, parked, seen, made, found, decision, snapshots())
    return Trials(made, found, calls, same, caught, decision, verdict, views, unlike, others.left_out, threads)


def _ready(
    other: Other, seen: Observation, lifted: Lifted, wanted: Sequence[Recipe], found: dict[str, Finding]
) -> tuple[Ready, dict[str, Finding]]:
    """Make the mock-ups for the calls of another kind and compare them there; what differs is rejected in ``found``."""
    case, now = other.case, other.seen
    good = [r for r in wanted if r.name in found and found[r.name].reason is None]
    concerned = [r for r in good if r.candidate is None or concerns(r.candidate, now)]
    at_call = at_another_call(now, seen, lifted, other.program)
    unaffected = frozenset(r.name for r in good if r not in concerned)
    if all(r.candidate is None for r in concerned):
        return Ready(other, at_call, {}, unaffected, VERIFIED_CALLS, True), found
    case.progress.step(f"compiling mock-ups for {case.kinds[0].text}")
    made, here, choices = compare_at(case, other.program, at_call, lifted, concerned)
    found = dict(found)
    reject(found, concerned, here, made, choices, case.chosen.call)
    found, calls, same, _ = further_calls(case, seen, lifted, concerned, found, None)
    return Ready(other, at_call, made, unaffected, calls, same), found


def _views(seen: Observation, code: Code, candidates: Sequence[Candidate]) -> dict[str, View]:
    """What temporary versions of the candidates copy; of those that the lifted code can be re-indexed for."""
    found = {}
    for candidate in candidates:
        lifted, trace = code.under(candidate, seen.trace)
        binding = bind(lifted, trace, seen.structures)
        with suppress(RemapError):
            found[candidate.id] = view(candidate, binding, plan(lifted, candidate, binding))
    return found
