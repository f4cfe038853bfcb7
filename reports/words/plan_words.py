"""The plan of the whole program in words, its places as lanes along the order of the regions, and layouts over regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.contract import OverRegions
from layout_advise.reports.model.plan import (
    InRegion,
    MachinesPlan,
    OrderStep,
    PlanPlace,
    PlanTrial,
    ProgramPlan,
    StructurePlan,
    TriedRegion,
)
from layout_advise.reports.words.headline import factor, span
from layout_advise.reports.words.quantities import listing, number

AS_IT_IS = "as it is"
"""The label of a plan that changes nothing."""

COPIED_PART = 1 / 16
"""Where data are copied at more of the calls than this part, it is told that the copies disturb the caches."""
MOST_PLACES = 60
"""Places of the order that are drawn."""


def leading(plan: ProgramPlan) -> str:
    """The first line: what the structures should be in the whole program, and what that gains; where one region was studied,
    on which machine it should run."""
    return headline(plan.structures[0]) if plan.structures else machines_headline(plan.machines)


def headline(one: StructurePlan) -> str:
    """The advice about some structures in the whole program, and what it gains."""
    data, other = listing(one.structures, 3), _other(one)
    achieved = one.trial.speedup if one.trial is not None else None
    if one.action == "change":  # first figures: what was best of many is seldom as good again
        how = f"as {one.label} for good{_loops(one)}" if one.candidate is not None else f"as {one.label}"
        program = _predicted(one)
        least = program.lo if achieved is None else min(program.lo, achieved.lo)
        if achieved is not None and achieved.lo < 1.0:
            told = f"predicted at least {factor(program.lo)} faster ({span(program)}), run so {span(achieved)}"
            return f"{_whole(one)}: store {data} {how}: {told}."
        both = span(program) if achieved is None else f"predicted {span(program)}, run so {span(achieved)}"
        return f"{_whole(one)}: store {data} {how}: at least {factor(least)} faster ({both}){_unmeasured(one)}."
    if one.action == "keep":
        best = f"; best other: {_told(*other)}" if other is not None else ""
        return f"{_whole(one)}: keep {data} as it is{best}."
    label, gain = other or (one.label, one.program)
    faster = f"runs {factor(gain.median)} as fast ({span(gain)})" if gain is not None else "is not excluded"
    if achieved is not None and gain is not None:
        faster = f"was predicted to run {factor(gain.median)} as fast, and ran {factor(achieved.median)} ({span(achieved)})"
    return f"{_whole(one)}, undecided: with {data} as {label} it {faster}{_unmeasured(one)}."


_WRITTEN = {
    "restrict": "arrays declared `restrict`",
    "lanes": "arrays declared `restrict` and a loop over each block's elements inside of the others",
    "simd": "arrays declared `restrict` and independent loops written for SIMD",
}


def _as_written(one: StructurePlan) -> list[str]:
    """How the loops of the layout are written that the gain is of, where not plainly, and what is left where they are."""
    if one.candidate is None:
        return []
    found = []
    for build, how in _WRITTEN.items():
        if names := tuple(r.hotspot for r in one.regions if r.build == build):
            found.append(f"{listing(names, 6)}: with {how}")
    if not found:
        return []
    plain = one.plain_program
    once = "if what is read of an element is kept in local variables"
    gains = f"the program gains {factor(plain.median)} ({span(plain)}), {once}" if plain else ""
    rest = f"written plainly, {gains}" if gains else "else it is not known"
    return [f"The gain is of {'; '.join(found)}; {rest}."]


def _loops(one: StructurePlan) -> str:
    """Returns the source's needs besides the layout, for the first line."""
    builds = {r.build for r in one.regions}
    if "simd" in builds:
        return ", its loops written for SIMD"
    if "lanes" in builds:
        return ", with loops over the elements of each block"
    return ", its arrays declared `restrict`" if "restrict" in builds else ""


def _whole(one: StructurePlan) -> str:
    return "Whole program, in CPU time" if one.cpu_time else "Whole program"


def _predicted(one: StructurePlan) -> Interval:
    """The gain of the program; where the plan was run in it, as it was predicted: what the run shows need not be feared."""
    return one.if_they_stay if _was_run(one) and one.if_they_stay is not None else one.program


def _was_run(one: StructurePlan) -> bool:
    return one.trial is not None and one.trial.speedup is not None


def _unmeasured(one: StructurePlan) -> str:
    """On what the gain hangs besides: regions that use the structures too and were not measured."""
    if not one.unmeasured or _was_run(one):
        return ""
    who = f"{listing(one.unmeasured, 4)} ({one.unmeasured_share:.0%} of the samples)".replace("%", " %")
    use, they, take, stay = ("use", "they", "take", "stay") if len(one.unmeasured) > 1 else ("uses", "it", "takes", "stays")
    were = "were" if use == "use" else "was"
    told = (
        f", if {who}, which {use} it too and {were} not measured, {take} no more than {factor(one.unmeasured_take)} as long"
    )
    if one.action != "change" or one.if_they_stay is None:
        return told
    return f"{told}; at least {factor(one.if_they_stay.lo)} if {they} {stay} as fast"


def facts(one: StructurePlan, held: Sequence[str] = ()) -> tuple[str, ...]:
    """Facts of a plan: what it rests on, who loses, what conversions take, and the second best."""
    found = [f"Measured on {one.measured:.0%} of the samples; all else counts as unchanged.".replace("%", " %")]
    regions = [f"{r.hotspot} ({r.share:.0%}) {factor(r.speedup.median)}" for r in changed(one) if r.speedup is not None]
    if regions:
        found.append(f"By region: {listing(regions, 8)}.".replace("%", " %"))
    found += _as_written(one)
    if one.trial is not None:
        found += tried(_predicted(one), one.trial)
    if one.unmeasured and one.may_take is not None and not _was_run(one):
        time = f"{listing(one.unmeasured, 4)} with {factor(one.unmeasured_take)} the time"
        found.append(f"The lower end counts {time}; a gain is left until {factor(one.may_take)}.")
    if one.losing:
        found.append(f"Slower under the plan: {listing(one.losing, 4)}.")
    if one.converting:
        found.append(
            f"Conversions take {one.converting:.1%} of the present time, as timed around single calls.".replace("%", " %")
        )
    if one.second and one.action == "change":
        found.append(f"Second best: {_told(one.second, one.second_program)}.")
    if held:
        found.append(f"Not measured, and held at the present layout: {listing(held, 4)}.")
    return tuple(found)


def tried(predicted: Interval, trial: PlanTrial) -> tuple[str, ...]:
    """The plan in the running program beside its prediction, what was taken off, and which calls ran so; or why it was not
    run."""
    if trial.speedup is None:
        return (f"Not run as a whole: {trial.reason}.",)
    gain, flushed = trial.speedup, ", in half of the runs with flushed copies" if trial.flushed else ""
    runs = f"{trial.rounds} rounds of runs" if trial.rounds > 1 else "one round of runs"
    times = (
        f"Run so, all regions at once: {factor(gain.median)} ({span(gain)}), {trial.layout_s:.2f} s of CPU time instead of "
        f"{trial.original_s:.2f} s, over {runs}{flushed}; predicted {factor(predicted.median)} ({span(predicted)}), "
        f"{trial.predicted_s:.2f} s."
    )
    off = (
        f"Taken off: {trial.copies_s:.2f} s of copies between the layouts, which a permanent one does not need, and "
        f"{trial.own_s:.2f} s of the trial's own."
    )
    if trial.with_copies is not None:
        off = f"{off[:-1]}; with the copies {factor(trial.with_copies)}."
    if copies_disturb(trial):
        off = f"{off} They also take room in the caches, which a permanent layout has for itself: it may gain more."
    own = f" but for {number(trial.own_words)} words that differ each time" if trial.own_words else ""
    held = " Before, no access went to a place that is not that of the layout." if trial.held else ""
    same = (
        f"Calls run so: {'; '.join(_calls(one) for one in trial.regions)}. Exit status {trial.exit_status} and "
        f"{number(trial.output_bytes)} bytes of output as ordinarily{own}.{held}"
    )
    return times, off, same


def copies_disturb(trial: PlanTrial) -> bool:
    """Tells whether data were copied at so many calls that the new arrays had not the caches that they would have for good:
    the program may gain more than it did."""
    return sum(one.conversions - 1 for one in trial.regions) > COPIED_PART * sum(one.mockups for one in trial.regions)


def _calls(one: TriedRegion) -> str:
    """``spread 78 of 80 from call 5 on as c1, 2 left to the original, 157 copies``."""
    left = f", {number(one.left_out)} left to the original" if one.left_out else ""
    within = f", {number(one.within)} made by another mock-up" if one.within else ""
    of = f"{number(one.mockups)} of {number(one.calls)} from call {number(one.first)} on as {one.candidate}"
    return f"{one.hotspot} {of}{left}{within}, {number(one.conversions)} cop{'y' if one.conversions == 1 else 'ies'}"


def changed(one: StructurePlan) -> tuple[InRegion, ...]:
    """The measured regions of a plan; none where it leaves all of them as they are."""
    found = tuple(r for r in one.regions if r.speedup is not None)
    return found if any((r.speedup.lo, r.speedup.hi) != (1.0, 1.0) for r in found if r.speedup is not None) else ()


def _other(one: StructurePlan) -> tuple[str, Interval | None] | None:
    """The best plan that changes a layout, and what the program gains by it; None where none was measured."""
    ways = ((one.label, one.program), (one.second, one.second_program))
    return next(((label, gain) for label, gain in ways if label and label != AS_IT_IS), None)


def _told(label: str, gain: Interval | None) -> str:
    return f"{label}, {factor(gain.median)} ({span(gain)})" if gain is not None else label


def machines_headline(plan: MachinesPlan | None) -> str:
    """The plan over machines in a line; empty where there is none."""
    if plan is None:
        return ""
    if plan.program is None or plan.over_here is None:
        return f"No plan over machines: {plan.reason}."
    by_place: dict[tuple[str | None, str | None], list[str]] = {}
    for one in plan.places:
        by_place.setdefault((one.machine, one.candidate), []).append(one.hotspot)
    ways = "; ".join(
        f"{listing(tuple(dict.fromkeys(names)), 6)} {f'on {machine}' if machine else 'here'} ({layout or AS_IT_IS})"
        for (machine, layout), names in by_place.items()
    )
    over = f"{factor(plan.over_here.median)} as fast ({span(plan.over_here)}) as the best plan on this machine alone"
    if all(one.machine is None for one in plan.places):
        return f"Over machines: keep all regions here, no other machine gains more than sending the data takes: {ways}."
    if plan.action == "change":
        return f"Over machines: {ways}: {over}, with the data sent."
    return f"Over machines, {'undecided' if plan.action == 'undecided' else 'not worth it'}: {ways} would be {over}."


def machines_facts(plan: MachinesPlan) -> tuple[str, ...]:
    """What a plan over machines gains over today, what sending takes, by which stated way, and what is not known."""
    found = []
    if plan.program is not None and plan.here is not None:
        found.append(
            f"Over today: {factor(plan.program.median)} ({span(plan.program)}), on this machine alone "
            f"{factor(plan.here.median)} ({span(plan.here)}); sending and converting take {plan.moving:.1%} of the present "
            "time. Predicted from runs on each machine, and not run so.".replace("%", " %")
        )
    for one in plan.machines:
        rate, latency = one.transfer.bytes_per_second / 1e9, one.transfer.latency_ns / 1e3
        who = "as given here" if one.assumed else "as the run there says"
        threads = f", {one.threads} threads" if one.threads > 1 else ""
        found.append(f"{one.name}: {one.cpu}{threads}; {rate:.3g} GB/s and {latency:.3g} µs, stated ({who}), not measured.")
    return (*found, *(f"Not known: {text}." for text in plan.missing))


def order(plan: ProgramPlan) -> str:
    """The order of the regions; where it is not known how often each runs, and why."""
    if plan.order.text:
        more = f" ({plan.order.reason})" if plan.order.reason else ""
        return f"Order of the regions: {plan.order.text}{more}."
    counts = [f"{name} {number(often)} times" for name, often in plan.order.entries.items()]
    return f"Order of the regions not known: {plan.order.reason}{'; ' if counts else ''}{', '.join(counts)}."


def step_text(step: OrderStep) -> str:
    """A part of the order in a line, as the whole has it: ``for 500 { density; drift×2 }``."""
    if not step.body:
        return step.hotspot or ""
    if len(step.body) == 1 and not step.body[0].body:
        return f"{step.body[0].hotspot}×{step.turns}"
    return f"for {step.turns} {{ {'; '.join(step_text(inner) for inner in step.body)} }}"


@dataclass(frozen=True, slots=True)
class LaneItem:
    """A part of a lane: the start of a loop (``turns``), its end (neither), or a ``place`` with the number of its layout
    among those of the lane (0: as it is)."""

    turns: int = 0
    place: PlanPlace | None = None
    layout: int = 0


def lane(plan: ProgramPlan, one: StructurePlan) -> tuple[LaneItem, ...]:
    """The places of a plan along the folded order; empty where the order is not known, or too long to be drawn."""
    if not one.places or len(one.places) > MOST_PLACES:
        return ()
    used = [None, *dict.fromkeys(p.candidate for p in one.places if p.candidate is not None)]
    places = iter(one.places)

    def items(steps: Sequence[OrderStep]) -> Iterator[LaneItem]:
        for step in steps:
            if step.body:
                yield LaneItem(turns=step.turns)
                yield from items(step.body)
                yield LaneItem()
            else:
                place = next(places)
                yield LaneItem(place=place, layout=used.index(place.candidate))

    return tuple(items(plan.order.steps))


def sentence(row: OverRegions) -> str:
    """The gain of a layout in each region and in the whole program."""
    cells = [
        f"{one.hotspot} ({one.share:.0%}) {one.speedup.median:.2f} times as fast" if one.speedup is not None
        else f"{one.hotspot} ({one.share:.0%}) was not measured"
        for one in row.regions
    ]  # fmt: skip
    whole = "what the program gains is not known"
    if row.program is not None:
        whole = f"the program {row.program.median:.2f} times ({row.program.lo:.2f} to {row.program.hi:.2f})"
    return f"{row.candidate} ({row.label}) over the regions: {', '.join(cells)}; {whole}."
