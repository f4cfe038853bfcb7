"""Build, verify and time the candidates of one hotspot."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from layout_advise.errors import RemapError
from layout_advise.kinds import LEAST_SHARE
from layout_advise.layoutalgebra.structure import Candidate, Relayout
from layout_advise.mixture import Portion
from layout_advise.mockup.binding import bind
from layout_advise.mockup.emit import kernel_name
from layout_advise.mockup.image import open_image
from layout_advise.mockup.lifted import Lifted
from layout_advise.mockup.machinecode import same_code
from layout_advise.mockup.measure import (
    CONTROLS,
    IDENTITY,
    IDENTITY_LANES,
    LAYOUT_SCALAR,
    PLACED,
    SCALAR,
    Timings,
    noise_floor,
)
from layout_advise.mockup.order import in_pieces
from layout_advise.mockup.placement import hot_loop
from layout_advise.mockup.remap import plan
from layout_advise.mockup.reroll import reroll
from layout_advise.mockup.unroll import unroll_fields
from layout_advise.mockup.view import View, view
from layout_advise.reports import wording
from layout_advise.reports.model import Verdict
from layout_advise.rundir import write_atomically
from layout_advise.stages import batches, profile
from layout_advise.stages.calls import VERIFIED_CALLS
from layout_advise.stages.case import Case
from layout_advise.stages.kinds import timed_again
from layout_advise.stages.mixed import Race, decide_mixed
from layout_advise.stages.mockups import (
    Code,
    Compiled,
    Made,
    Recipe,
    expected_moves,
    make_all,
    place_identity,
    recipes,
    twins,
)
from layout_advise.stages.observe import Observation
from layout_advise.stages.others import (
    NO_OTHERS,
    Other,
    Others,
    Ready,
    blocks_of,
    concerns,
    doubt_untried,
    not_all_kinds,
    reject,
    untried,
    with_structures,
)
from layout_advise.stages.selection import choices_at, chooses
from layout_advise.stages.timing import Bench, Contest, Decision, Entrant, decide_and_confirm, plan_for
from layout_advise.stages.verify import Finding, Subject, verify
from layout_advise.stages.verify_team import verify_team
from layout_advise.tracer.snapshot.protocol import Range, Snapshots, StoppedProgram
from layout_advise.usage import Use, with_use
from layout_advise.verdict import SMALLEST_GAIN, Context, Measured, Mode, for_program, undecided

WRONG = "wrong"
MOST_KEPT = 256 << 20
LESS_ALIGNED = ("-falign-functions=32", "-falign-loops=16")
"""Code alignment of the second measurement: a gain must not hang on where the code happens to lie."""


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
    wanted = recipes(candidates, code_of(seen, lifted))
    made = {m.recipe.name: m for m in twins(tuple(_make(case, seen, lifted, wanted, case.run.mockups, ()).values()))}
    wanted = tuple(r for r in wanted if made[r.name].same_as is None)
    placed = _place(case, seen, lifted, made)
    if placed is not None:
        made[placed.recipe.name] = placed
    found = _verify(case, parked, seen, lifted, made)
    caught = found[WRONG].reason is not None if WRONG in found else None
    found.pop(WRONG, None)
    found = _inherit(found, made)
    left = left_behind(parked, seen.touched) if case.batch is not None else None
    found, calls, same, unlike = _further_calls(case, seen, lifted, wanted, found, left)
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
        return Trials(made, found, calls, same, caught, None, undecided("identity-not-verified", text), unlike=unlike)
    if caught is False:
        text = "a deliberately wrong layout went unnoticed: what the call leaves behind does not depend on these structures."
        return Trials(made, found, calls, same, caught, None, undecided("comparison-blind", text), unlike=unlike)
    decision = _time(case, seen, lifted, candidates, made, found, snapshots(), ready, others.left_out)
    verdict = doubt_untried(for_program(decision.verdict, case.profiled.share), untried(seen, others))
    # what converting costs is timed around a batch, not a call, and at calls of one kind only
    if not case.settings.temporary and case.batch is None and not case.kinds:
        verdict = with_use(verdict, use_of(decision, case.probe.calls))
    views = _views(seen, code_of(seen, lifted).elements, candidates)
    return Trials(made, found, calls, same, caught, decision, verdict, views, unlike, others.left_out)


def _ready(
    other: Other, seen: Observation, lifted: Lifted, wanted: Sequence[Recipe], found: dict[str, Finding]
) -> tuple[Ready, dict[str, Finding]]:
    """Make the mock-ups for the calls of another kind and compare them there; what differs is rejected in ``found``."""
    case, now = other.case, other.seen
    good = [r for r in wanted if r.name in found and found[r.name].reason is None]
    concerned = [r for r in good if r.candidate is None or concerns(r.candidate, now)]
    at_call = with_structures(now, seen)
    unaffected = frozenset(r.name for r in good if r not in concerned)
    if all(r.candidate is None for r in concerned):
        return Ready(other, at_call, {}, unaffected, VERIFIED_CALLS, True), found
    case.progress.step(f"compiling mock-ups for {case.kinds[0].text}")
    made, here, choices = _compare_at(case, other.program, at_call, lifted, concerned)
    found = dict(found)
    reject(found, concerned, here, made, choices, case.chosen.call)
    found, calls, same, _ = _further_calls(case, seen, lifted, concerned, found, None)
    return Ready(other, at_call, made, unaffected, calls, same), found


def _compare_at(
    case: Case, program: StoppedProgram, at_call: Observation, lifted: Lifted, good: Sequence[Recipe]
) -> tuple[dict[str, Made], dict[str, Finding], Mapping[str, Candidate | str]]:
    """The mock-ups of ``good`` made anew for the call that ``program`` is stopped at and compared there; and the candidates
    as they are at that call, or why there is none."""
    choices = choices_at({r.name: r.candidate for r in good if r.candidate is not None}, at_call, lifted)
    quick = [
        Recipe(r.name, choice, r.variant, vectorised=r.vectorised, checked=chooses(choice) and r.checked)
        for r in good
        if not isinstance(choice := choices.get(r.name), str)
    ]
    made = _make(case, at_call, lifted, quick, case.work / f"call{at_call.trace.call}", ())
    return made, _verify(case, program, at_call, lifted, made), choices


def use_of(decision: Decision, calls: int) -> Use:
    """What is known of converting to the winner's layout instead of changing the program."""
    timings, name = decision.again, decision.winner
    if timings is None or name is None:
        return Use(None, None, calls, 1.0)
    mode = decision.mode or "steady"
    bound = max(noise_floor(timings, mode)[1], SMALLEST_GAIN[decision.snapshot])
    return Use(timings.net(name, mode), timings.break_even(name, mode), calls, bound)


def _views(seen: Observation, lifted: Lifted, candidates: Sequence[Candidate]) -> dict[str, View]:
    """What temporary versions of the candidates copy; of those that the lifted code can be re-indexed for."""
    binding, found = bind(lifted, seen.trace, seen.structures), {}
    for candidate in candidates:
        with suppress(RemapError):
            found[candidate.id] = view(candidate, binding, plan(lifted, candidate, binding))
    return found


def _place(case: Case, seen: Observation, lifted: Lifted, made: dict[str, Made]) -> Made | None:
    """The identity where the original lies; that which was not rerolled is more like it."""
    loop = hot_loop(seen.region, seen.trace)
    identity = made.get(IDENTITY_LANES, made[IDENTITY])
    return place_identity(identity, loop, kernel_name(lifted), _compiler(case)) if loop is not None else None


def code_of(seen: Observation, lifted: Lifted) -> Code:
    """The lifted hotspot in both forms, as far as the trace of ``seen`` shows them to be the same."""
    image = open_image(seen.region.path, seen.region.load_base)
    written_out = unroll_fields(lifted, seen.trace, seen.structures)
    return Code(lifted, in_pieces(reroll(written_out, seen.trace, seen.structures, image.read)))


def _compiler(case: Case) -> Compiled:
    known = case.profiled.module.compiler(case.profiled.function)
    return Compiled(known.executable or "gcc", known.flags)


def _make(
    case: Case, seen: Observation, lifted: Lifted, wanted: Sequence[Recipe], folder: Path, extra: tuple[str, ...]
) -> dict[str, Made]:
    case.progress.step("compiling mock-ups")
    compiler = _compiler(case)
    compiler = Compiled(compiler.executable, (*compiler.flags, *extra))
    done = make_all(
        wanted,
        code_of(seen, lifted),
        seen.trace,
        seen.structures,
        compiler,
        folder,
        lambda i, n: case.progress.count("compiling mock-ups", i, n),
        seen.varying,
    )
    return {m.recipe.name: m for m in done}


def forbidden(candidate: Candidate | None) -> tuple[Range, ...]:
    """The memory that a mock-up of ``candidate`` must not touch: the structures that it re-lays."""
    layouts = candidate.relayouts if candidate is not None else ()
    blocks = [(r.structure.block_base or r.structure.base, r.structure) for r in layouts]
    return tuple(Range(s.base, base + s.bytes) for base, s in blocks)


def _verify(
    case: Case, program: StoppedProgram, seen: Observation, lifted: Lifted, made: dict[str, Made]
) -> dict[str, Finding]:
    subjects = []
    for name, item in made.items():
        if item.mockup is None or item.same_as is not None:
            continue
        candidate = item.recipe.candidate
        moves = expected_moves(candidate, lifted, seen.trace, seen.structures) if candidate is not None else None
        subjects.append(Subject(name, item.mockup, item.check, forbidden(candidate), moves))
    compare_all = verify if seen.team is None else verify_team
    return dict(
        compare_all(
            program,
            subjects,
            lifted,
            seen.team or seen.trace,
            case.work,
            lambda i, n: case.progress.count("comparing bytes", i, n),
        )
    )


def _inherit(found: dict[str, Finding], made: dict[str, Made]) -> dict[str, Finding]:
    """A variant without a check build of its own is as good as its candidate's plain variant."""
    result = dict(found)
    for name, finding in found.items():
        candidate = made[name].recipe.candidate
        plain = found.get(candidate.id) if candidate is not None else None
        if plain is not None and plain.reason is not None and finding.reason is None:
            result[name] = plain
    return result


def _further_calls(
    case: Case,
    seen: Observation,
    lifted: Lifted,
    wanted: Sequence[Recipe],
    found: dict[str, Finding],
    left: Mapping[Range, bytes] | None,
) -> tuple[dict[str, Finding], int, bool, int | None]:
    """Compare at the next two calls too, each in a program started anew and with a trace of its own (a call may use other
    fields than the one before). What differs there is rejected. Returns the findings, the calls compared at, and whether the
    structures that get another layout lay at the same addresses each time (others may change from call to call), and in how
    many bytes ``left``, what the first batch left behind, differs from what is there where the next one begins."""
    calls, same, unlike = 1, True, None
    for call in case.calls_compared[1:]:
        good = [r for r in wanted if r.name in found and found[r.name].reason is None]
        case.progress.step(f"stopping the program at call {call}")
        with case.park(call) as program:
            if left is not None and calls == 1:
                unlike = differing(program, left)
            now = case.observe(program, call)
            if not blocks_of(r.structure for g in good if g.candidate for r in g.candidate.relayouts) <= blocks_of(
                now.structures
            ):
                return found, calls, False, unlike
            made, here, choices = _compare_at(case, program, with_structures(now, seen), lifted, good)
        reject(found, good, here, made, choices, call)
        calls += 1
    return found, calls, same, unlike


def left_behind(program: StoppedProgram, ranges: Sequence[Range]) -> Mapping[Range, bytes] | None:
    """What a call of the original leaves in ``ranges``; None where that is too much to be kept."""
    if sum(r.end - r.start for r in ranges) > MOST_KEPT:
        return None
    with program.fork() as fork:
        fork.run(0)
        return {r: fork.read(r.start, r.end - r.start) for r in ranges}


def differing(program: StoppedProgram, known: Mapping[Range, bytes]) -> int:
    """In how many bytes the memory of ``program`` is not what is ``known`` of it."""
    total = 0
    for place, data in known.items():
        now = np.frombuffer(program.read(place.start, len(data)), np.uint8)
        total += int(np.count_nonzero(now != np.frombuffer(data, np.uint8)))
    return total


def _time(
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
    context = Context(snapshots.kind, "verified", None, 1.0, bool(candidates))
    contest = _contest(case, seen, lifted, candidates, made, found)
    bench = _bench(case, seen, snapshots)
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
    contest = _contest(case, one.seen, lifted, candidates, one.made, found)
    if entrants <= one.unaffected:
        return Race(kind.text, kind.share, None, None, case.chosen.in_situ_ns, one.unaffected)
    bench = _bench(case, one.seen, one.other.snapshots())
    return Race(kind.text, kind.share, contest, bench, case.chosen.in_situ_ns, one.unaffected)


def _bench(case: Case, seen: Observation, snapshots: Snapshots) -> Bench:
    return Bench(
        snapshots,
        (seen.written, seen.touched),
        plan_for(case.chosen.in_situ_ns or 1e6, case.settings.restores, case.clock),
        case.progress.count,
        lambda: look_again(case),
    )


def _contest(
    case: Case,
    seen: Observation,
    lifted: Lifted,
    candidates: Sequence[Candidate],
    made: dict[str, Made],
    found: dict[str, Finding],
) -> Contest:
    """What takes part at the calls of one kind: what was verified at all of them."""
    entrants, unmeasured = [], []
    for name, item in made.items():
        candidate = item.recipe.candidate
        if candidate is None or item.recipe.wrong or item.same_as is not None:
            continue
        if item.mockup is not None and name in found and found[name].reason is None:
            entrants.append(
                Entrant(name, title(candidate, case.profiled.name), "verified", item.mockup, forbidden(candidate))
            )
    for candidate in candidates:
        if not any(e.id.split("-")[0] == candidate.id for e in entrants):
            why = made[candidate.id].reason if candidate.id in made else None
            why = why or (found[candidate.id].reason if candidate.id in found else None)
            unmeasured.append(Measured(candidate.id, "rejected", None, None, reason=why or ""))

    def rebuild(best: str, names: Sequence[str]) -> dict[str, Path]:
        recipe = made[best].recipe
        wanted = [made[name].recipe for name in (best, *names)]
        wanted.append(Recipe(LAYOUT_SCALAR, recipe.candidate, "plain", vectorised=False))
        fresh = [replace(r, checked=False, offset=64 * 5) for r in wanted]
        again = _make(case, seen, lifted, fresh, case.work / f"again{case.chosen.call}", LESS_ALIGNED)
        return with_vectors({name: m.mockup for name, m in again.items() if m.mockup is not None}, best)

    return Contest(
        _controls(made, found, bool(entrants)),
        entrants,
        unmeasured,
        rebuild,
        lambda timings, name: around_a_call(timings, name, case.timed_calls) if case.settings.temporary else None,
    )


def look_again(case: Case) -> float | None:
    """What is timed, in further runs of the program (ns)."""
    if case.batch is not None:
        return batches.look_again(case.settings, case.profiled, case.stdin, case.batch)
    if case.kinds:
        return timed_again(case, case.kinds[0])
    return profile.look_again(case.settings, case.profiled, case.stdin, case.chosen).in_situ_ns


def with_vectors(built: dict[str, Path], best: str) -> dict[str, Path]:
    """``built`` without the scalar builds where these are the same programs as the others: there is no SIMD to tell from
    the layout."""
    pairs = ((IDENTITY, SCALAR), (best, LAYOUT_SCALAR))
    if all({one, other} <= set(built) and same_code(built[one], built[other]) for one, other in pairs):
        return {name: path for name, path in built.items() if name not in (SCALAR, LAYOUT_SCALAR)}
    return built


def _controls(made: dict[str, Made], found: dict[str, Finding], compared: bool) -> dict[str, Path]:
    """The identity, and its other builds where candidates are compared with them."""
    chosen = {}
    for name in CONTROLS:
        item, finding = made.get(name), found.get(name)
        usable = item is not None and finding is not None and finding.reason is None and item.same_as is None
        if item is not None and item.mockup is not None and (name == IDENTITY or (usable and (compared or name == PLACED))):
            chosen[name] = item.mockup
    return chosen


def around_a_call(timings: Timings, name: str, calls: int = 1) -> float | None:
    """What a layout that exists only during a call costs the ``calls`` that are timed together, in ns: converting there and
    back around each. None when not measured."""
    costs = timings.conversion.get(name)
    return None if costs is None else calls * sum(costs)


def title(candidate: Candidate, symbol: str) -> str:
    """What is advised, as the start of a sentence: ``store `p` (main.c:47, 1 300 000 × particle) as ...: step``."""
    return f"{' and '.join(_stored(candidate, layout) for layout in candidate.relayouts)}: {symbol}"


def _stored(candidate: Candidate, layout: Relayout) -> str:
    structure = layout.structure
    about = [structure.alloc_site] if structure.alloc_site else []
    about.append(f"{wording.number(structure.count)} × {structure.type or f'{structure.element_bytes} bytes'}")
    used = sum(f.bytes for f in structure.fields)
    groups = [part.fields for part in layout.parts]
    classes = layout.chosen.block if layout.chosen is not None else None
    how = wording.transformation(candidate.families, candidate.block, groups, used < structure.element_bytes, classes)
    return f"store `{structure.name}` ({', '.join(about)}) {how}"


def _raw(timings: Timings) -> dict[str, object]:
    return {"steady": timings.steady, "cold": timings.cold, "failed": timings.failed, "dropped": timings.dropped}
