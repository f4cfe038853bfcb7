"""The doubts about a gain as intervals: each widens what is claimed of a candidate by what was measured of it.

Nothing here vetoes. What a doubt leaves possible stands beside the statistics of the processes, and the claim is the hull of
all (:class:`~layout_advise.measure.measured.Doubt`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from layout_advise.decide.policy import DECIDE
from layout_advise.measure.behind import cut_by_faster
from layout_advise.measure.measured import Doubt, Measured, saved
from layout_advise.measure.mode import Mode, is_apart
from layout_advise.mockup.timing.ratios import greatest, identity_of, over_all_places, places_of
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import (
    IDENTITY,
    IDENTITY_REINDEXED,
    IDENTITY_UNROLLED,
    ORIGINAL,
    SCALAR,
    Variant,
    reindexed_for,
)
from layout_advise.reports.words.quantities import nanoseconds


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What holds for all candidates of the calls of one kind: their time in the running program (None: not known), the mode
    that counts, whether that agrees with the program (``alike``), whether the way of a call hangs on data (``branches``),
    and whether the unchanged layout in the loops' other form stands for the identity (``unrolled``). ``counting`` is the
    part of the original's time that counting iterations may take."""

    in_situ_ns: float | None
    mode: Mode
    alike: bool
    branches: bool = False
    unrolled: bool = False
    counting: float = 0.0


def with_doubts(results: Sequence[Measured], timings: Timings, around: Circumstances) -> list[Measured]:
    """The candidates with every doubt that the times tell of."""
    best = max((r.speedup.median for r in results if r.speedup is not None), default=0.0)
    found = []
    for one in results:
        slowed = _slowed_form(timings, best, around, one)
        doubts = [
            *_caches(one, timings, around),
            *_program(one, timings, around),
            *_apart(one, timings, around),
            *_put_back(one, timings, around),
            *_counting(one, around),
            *_place(one, timings, around),
            *_promise(one, results),
            *read_again(one, timings, around),
            *(_vectors(one, slowed, timings, around.mode) if slowed is not None else ()),
            *_indices(one, timings, around),
        ]
        found.append(replace(one, doubts=(*one.doubts, *doubts)) if one.counted is not None else one)
    modes: tuple[Mode, ...] = (around.mode,) if around.alike and not timings.lesser else ("steady", "cold")
    return [cut_by_faster(one, found, timings, modes) for one in found]


def _caches(one: Measured, timings: Timings, around: Circumstances) -> list[Doubt]:
    """Warm and flushed caches, where the program's calls are neither, or find other data in the caches. Calls that take less
    in the program than repeated with warm caches do not find flushed ones; of those that take longer a layout gains no more
    than they take there over its own time with warm caches (``docs/decisions/0034``)."""
    counted, told = one.counted, around.in_situ_ns
    repeated = timings.nanoseconds(ORIGINAL)
    less = around.mode == "steady" and told and repeated and told < repeated
    if counted is None or (not timings.lesser and (around.alike or less)):
        return []
    ends = [r for mode in get_args(Mode) if (r := timings.ratio(ORIGINAL, one.name, mode)) is not None]
    lo = min([counted.lo, *(r.lo for r in ends)])
    middle, hi = greatest(timings, one.name, told)
    middle, hi = max(counted.median, middle), max(counted.hi, hi)
    return [Doubt("caches", lo, hi, "with warm and with flushed caches", middle)]


def _program(one: Measured, timings: Timings, around: Circumstances) -> list[Doubt]:
    """The running program, where a call takes another time there than in the snapshot. Time that the snapshot does not show
    counts as not improved in the lower end, and as gone with the new layout in the upper one; time that only the snapshot
    shows counts as none that the new layout saves."""
    counted, told = one.counted, around.in_situ_ns
    here = timings.nanoseconds(ORIGINAL, around.mode)
    if counted is None or around.alike or not told or not here:
        return []
    ratio = told / here
    how = f"a call takes {nanoseconds(told)} in the program and {nanoseconds(here)} in the snapshot"
    if ratio > 1:
        hidden = 1 - 1 / ratio
        return [Doubt("program", 1 / (hidden + (1 - hidden) / counted.lo), counted.hi * ratio, how, counted.median * ratio)]
    return [Doubt("program", counted.lo * ratio, counted.hi, how, counted.median)]


def _apart(one: Measured, timings: Timings, around: Circumstances) -> list[Doubt]:
    """The calls of a batch one by one, where they take longer in the program than repeated: how far they overlap there with
    what comes before and after them is not known (``docs/decisions/0125``)."""
    counted, apart = one.counted, timings.ratio(ORIGINAL, one.name, "apart")
    if counted is None or apart is None or not around.alike or not is_apart(timings, around.in_situ_ns):
        return []
    how = "with calls that overlap as they do when a batch is repeated, and with each after the one before it has ended"
    lo, hi = min(counted.lo, apart.lo), max(counted.hi, apart.hi)
    return [Doubt("apart", lo, hi, how, max(counted.median, apart.median))]


def _put_back(one: Measured, timings: Timings, around: Circumstances) -> list[Doubt]:
    """Writes of the program between the calls of a batch, which are put back between the replayed ones: the times are
    without what that takes alone; how much of it hides behind the calls is not known (``docs/decisions/0068``)."""
    counted, ns = one.counted, [timings.nanoseconds(name, around.mode) for name in (ORIGINAL, one.name)]
    put = [timings.putting_back(name) for name in (ORIGINAL, one.name)]
    if counted is None or not any(put) or not all(ns):
        return []
    old, new = (time or 0.0 for time in ns)
    factor = (old + put[0]) / (new + put[1]) / (old / new)
    if abs(math.log(factor)) < DECIDE.least_put_back:
        return []
    how = f"with the {nanoseconds(put[0])} in which what the program writes between the calls is put back, and without"
    most = max(1.0, factor)
    return [Doubt("put-back", counted.lo * min(1.0, factor), counted.hi * most, how, counted.median * most)]


def _counting(one: Measured, around: Circumstances) -> list[Doubt]:
    """The original counts the iterations of a chunk, which the program does not do: it may be faster by that. A mock-up
    counts in a register, beside its other work."""
    counted = one.counted
    if counted is None or not around.counting:
        return []
    how = f"without what counting the loop's iterations takes, {around.counting:.1%} of the original's time at most"
    return [Doubt("counting", counted.lo * (1 - around.counting), counted.median, how, counted.median)]


def _place(one: Measured, timings: Timings, around: Circumstances) -> list[Doubt]:
    """Where the code lies, of a candidate that was timed at one place only."""
    return list(place_doubts(one, timings, around)) if one.places == 1 else []


def place_doubts(one: Measured, timings: Timings, around: Circumstances) -> tuple[Doubt, ...]:
    """Where the code lies (``docs/decisions/0037``): what the candidate gains at other places, also over the unchanged
    layout in its fastest form; and, where a call's way hangs on its data, by how much the unchanged layout's times differ
    with its place: what a layout does at any place then says little."""
    if one.counted is None:
        return ()
    places, found = places_of(timings, one.name), []
    moved, unchanged = (timings.at_places(names, around.mode) for names in (places, places_of(timings, IDENTITY)))
    over = [r.median for o in (ORIGINAL, identity_of(timings, one.name)) if (r := timings.ratio(o, one.name, around.mode))]
    if len(places) > 1 and moved is not None and over:
        gains = [min(over) / factor for factor in moved.factors]
        found.append(Doubt("placement", min(gains), max(gains), f"with its code at {len(places)} addresses"))
    if around.branches and unchanged is not None and unchanged.spread > DECIDE.place_spread:
        spread = unchanged.spread
        how = f"the unchanged mock-up's time differs by a factor of {spread:.2f} with the place of its code"
        found.append(Doubt("placement", one.counted.lo / spread, one.counted.hi * spread, how))
    return tuple(found)


def _promise(one: Measured, results: Sequence[Measured]) -> list[Doubt]:
    """The promise that arrays do not overlap: where it makes the same layout slower than the original, what gains is the
    code that the compiler happens to make, and a version written by hand may get the other one (``docs/decisions/0036``)."""
    if one.name.promise != "plain" or one.counted is None:
        return []
    other = next((r for r in results if r.layout == one.layout and r.name.promise == "restrict"), None)
    if other is None or other.speedup is None or other.speedup.hi >= 1.0:
        return []
    how = "with `restrict`, which tells the compiler more"
    return [Doubt("promises", other.speedup.lo, one.counted.hi, how, one.counted.median)]


def read_again(one: Measured, timings: Timings, around: Circumstances) -> list[Doubt]:
    """The least gain of a source in the layout that reads again after each store to another array, as a compiler cannot tell
    arrays behind pointers apart, though it can the members of a record; a mock-up keeps what the machine code has read once
    (``docs/decisions/0132``)."""
    again = timings.ratio(ORIGINAL, one.name.reread, around.mode) if one.name.promise == "plain" else None
    if one.counted is None or one.net is not None or again is None or again.lo >= one.counted.lo:
        return []
    how = "written so that what it reads is read again after each store, which `restrict` or variables for it avoid"
    return [Doubt("promises", again.lo, one.counted.hi, how, one.counted.median)]


@dataclass(frozen=True, slots=True)
class _Form:
    """The unchanged layout in the form that a candidate is made of, and by which factor that slows it."""

    unchanged: Variant
    slows: float


def _slowed_form(timings: Timings, best: float, around: Circumstances, one: Measured) -> _Form | None:
    """The form that a candidate is made of (scalar, or with loops as written out), where that it slows the unchanged layout
    can explain that none of them gains; None where it cannot.

    Mock-ups are written lane by lane, and the compiler finds the vectors again where the layout is unchanged. Where it found
    them in the candidate too, it does not lack them; where the unchanged mock-up is as slow in the form most like the
    original, that is told by the form."""
    form = timings.ratio(IDENTITY_UNROLLED, ORIGINAL, around.mode) if around.unrolled else None
    if form is not None and form.median > DECIDE.scalar_limit and _is_slower(timings, IDENTITY_UNROLLED, around.mode):
        return _Form(IDENTITY_UNROLLED, form.median)
    cost = timings.ratio(SCALAR, ORIGINAL, around.mode) if not one.vectorised else None
    if cost is None or cost.median <= DECIDE.scalar_limit or best >= cost.median**-0.5:
        return None
    return _Form(SCALAR, cost.median) if _is_slower(timings, SCALAR, around.mode) else None


def _is_slower(timings: Timings, form: Variant, mode: Mode) -> bool:
    """Tells whether a form of the unchanged layout may be slower than the one that stands for it by as much as matters."""
    lost = timings.ratio(form, IDENTITY, mode)
    return lost is None or lost.hi > DECIDE.scalar_limit


def _vectors(one: Measured, form: _Form, timings: Timings, mode: Mode) -> list[Doubt]:
    """In the original's form a layout gains what it gains over the unchanged one in its own: both are timed side by side.
    The product of both ratios would carry the doubts of each; it stands where the two were in no process together."""
    if one.counted is None:
        return []
    over = over_all_places(timings, places_of(timings, form.unchanged), places_of(timings, one.name), mode)
    longer = form.slows if over is None else over.median / one.counted.median
    hi = one.counted.hi * form.slows if over is None else max(one.counted.hi, saved(over.hi, longer))
    middle = one.counted.median * form.slows if over is None else max(one.counted.median, saved(over.median, longer))
    how = f"its form alone slows the unchanged layout by a factor of {form.slows:.1f}"
    return [Doubt("vectors", one.counted.lo, hi, how, middle)]


def _indices(one: Measured, timings: Timings, around: Circumstances) -> list[Doubt]:
    """Addresses that are tested, pointers that are made indices, and memory of their own: a source with indices, or whose
    types tell its memory apart, need not do so. What it would gain then is the gain over the unchanged layout that does as
    much."""
    alike = (reindexed_for(one.translated), IDENTITY_REINDEXED)  # in the same places, or in those of all candidates
    over = next((r for v in alike if (r := over_all_places(timings, [v], [one.name], around.mode)) is not None), None)
    if one.counted is None or not one.translated or over is None or over.hi <= one.counted.hi:
        return []
    how = "against the unchanged layout in memory of its own, which is reached in the same way"
    hi, middle = (saved(end, over.median / one.counted.median) for end in (over.hi, over.median))
    return [Doubt("indices", one.counted.lo, hi, how, middle)]


def nearest_mode(timings: Timings, in_situ_ns: float | None) -> Mode:
    """The mode, steady or cold, in which the original's time is nearer to the running program's."""
    if not in_situ_ns:
        return "steady"
    times = {mode: ns for mode in get_args(Mode) if (ns := timings.nanoseconds(ORIGINAL, mode))}
    return min(times, key=lambda mode: abs(math.log(times[mode] / in_situ_ns)), default="steady")
