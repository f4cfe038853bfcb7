"""The times of all variants in all restored processes, and their ratios.

Of each variant a restored process gives one number, its undisturbed time (first decile of the calls of all its rounds,
``docs/decisions/0005``); a ratio is that of the undisturbed times over all processes, with an interval over the processes
(``docs/decisions/0021``); for data that no cache of the core holds it is that of usual times
(``docs/decisions/0045``). Calls around which the processor was slowed are left out where there are others
(``docs/decisions/0022``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from layout_advise.mockup.timing.canary import Canary, fastest
from layout_advise.mockup.timing.places import AtPlaces, at_places, in_pairs
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.process_times import Canaries, ProcessTimes, Times
from layout_advise.mockup.timing.statistics import (
    Ratio,
    median_of,
    nearer,
    no_greater,
    paired_ratio,
    quantile_of,
    undisturbed,
    undisturbed_ratio,
    unpaired_ratio,
)
from layout_advise.mockup.timing.variants import CONTROLS, ORIGINAL, SHADOW, Variant
from layout_advise.tracer.process.stopped_program import MODES, Mode


@dataclass(frozen=True, slots=True)
class Timings:
    """The times of all variants: ``steady``, ``cold``, ``fresh`` and ``apart`` have one entry for each restored process, of
    the calls with warm caches, with flushed caches, with branches that are not known, and of a batch's calls one by one
    (empty where that was not timed)."""

    steady: Sequence[Times] = ()
    cold: Sequence[Times] = ()
    fresh: Sequence[Times] = ()
    apart: Sequence[Times] = ()
    canaries: Mapping[Mode, Sequence[Canaries]] = field(default_factory=dict)
    waited_ns: int = 0
    """How long the processes waited for the processor not to be slowed."""
    rejected: int = 0
    samples: int = 0
    failed: Mapping[Variant, str] = field(default_factory=dict)
    dropped: Mapping[Variant, str] = field(default_factory=dict)
    whole_seconds: float = 0.0
    """How long the first process took, in which everything was timed; 0: not known."""
    known: Mapping[tuple[Variant, Mode], float] = field(default_factory=dict)
    """ns of the same code undisturbed, as it was measured before: a ratio to it is not taken from slower times."""
    lesser: bool = False
    """Whether a candidate's steady gain is told only as far as it gains with flushed caches too: calls use other data in
    turn, and with one repeated the caches hold more of its own than in the program."""
    between: bool = False
    """Whether the program's time lies between those with warm and with flushed caches (``lesser`` then, too)."""
    typical: bool = False
    """Whether no cache of the core holds the data: what a process gets of the last cache and of the memory differs then, as
    others use them too, and ratios are those of usual times."""
    blocked: frozenset[Variant] = frozenset()
    """Variants with loops over the elements of a block."""
    conversions: Mapping[Variant, Sequence[tuple[float, float] | None]] = field(default_factory=dict)
    """By variant, of each restored process: ns of converting to its layout and back; None where that was not timed."""
    put_back: Mapping[Variant, Sequence[float]] = field(default_factory=dict)
    """By variant, of each restored process: as in :class:`ProcessTimes`."""
    unknown: float = 0.0
    """The part of the branches, of those that a repeated call teaches, that the steady times are without
    (:mod:`.branch_training`)."""
    origin: Timings | None = None
    """The times as they were measured, where these are worked out."""
    _worked_out: dict[tuple[object, ...], object] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What has been worked out of the times: every ratio needs it."""

    def with_process(self, one: ProcessTimes) -> Timings:
        """These times and those of one more restored process."""
        names = {*self.conversions, *one.conversions}
        none = (None,) * len(self.steady)
        return replace(
            self,
            steady=(*self.steady, one.times.get("steady", {})),
            cold=(*self.cold, one.times.get("cold", {})),
            fresh=(*self.fresh, one.times.get("fresh", {})),
            apart=(*self.apart, one.times.get("apart", {})),
            canaries={mode: (*self.canaries.get(mode, ()), one.canaries.get(mode, {})) for mode in MODES},
            waited_ns=self.waited_ns + one.waited_ns,
            rejected=self.rejected + one.rejected,
            samples=self.samples + one.samples,
            conversions={n: (*self.conversions.get(n, none), one.conversions.get(n)) for n in names},
            put_back={**self.put_back, **{n: (*self.put_back.get(n, ()), ns) for n, ns in one.put_back.items()}},
        )

    def putting_back(self, name: Variant) -> float:
        """ns of putting back between a variant's calls, the median over the restores; 0 where nothing is put back."""
        return median_of(self.put_back[name]) if name in self.put_back else 0.0

    def of(self, mode: Mode) -> Sequence[Times]:
        """Per restore and variant the times of one mode."""
        return {"steady": self.steady, "cold": self.cold, "fresh": self.fresh, "apart": self.apart}[mode]

    @property
    def conversion(self) -> dict[Variant, tuple[float, float]]:
        """ns of converting to and from a variant's layout, medians over the restores; not for the identity."""
        found = {}
        for name, restores in self.conversions.items():
            runs = [one for one in restores if one is not None]
            found[name] = median_of([into for into, _ in runs]), median_of([out for _, out in runs])
        return found

    def break_even(self, name: Variant, mode: Mode = "steady") -> Ratio | None:
        """After how many calls one conversion there and back is paid back: its cost over what a call gains. None when not
        measured, or where some process shows no gain."""
        times = self.of(mode)
        runs = [
            (sum(cost), undisturbed(a), undisturbed(b))
            for restore, cost in zip(times, self.conversions.get(name, ()), strict=False)
            if cost is not None and (a := restore.get(ORIGINAL)) and (b := restore.get(name))
        ]
        if not runs or any(before <= after for _, before, after in runs):
            return None
        costs, before, after = zip(*runs, strict=True)
        return undisturbed_ratio(costs, before, after)

    def net(self, name: Variant, mode: Mode = "steady") -> Ratio | None:
        """Speedup of ``name`` over the original with the conversion around every call, as it was timed; None when it was
        not."""
        return self.ratio(ORIGINAL, name.with_conversion, mode)

    def exchanged(self, one: Variant, other: Variant) -> Timings:
        """The same times, those of two variants under each other's name."""
        names = {one: other, other: one}
        for mine, its in zip(one.elsewhere, other.elsewhere, strict=True):
            names |= {mine: its, its: mine}
        steady, cold, fresh, apart = ([{names.get(n, n): v for n, v in r.items()} for r in self.of(m)] for m in MODES)
        canaries = {mode: [{names.get(n, n): v for n, v in r.items()} for r in rs] for mode, rs in self.canaries.items()}
        origin = self.origin.exchanged(one, other) if self.origin is not None else None
        return replace(self, steady=steady, cold=cold, fresh=fresh, apart=apart, canaries=canaries, origin=origin)

    @property
    def best_canary(self) -> Canary:
        """The fastest canaries of all."""
        found = self._worked_out.get(("canary",))
        if not isinstance(found, Canary):
            every = (c for restores in self.canaries.values() for r in restores for one in r.values() for c in one)
            found = self._worked_out[("canary",)] = fastest(every)
        return found

    def calm(self, name: Variant, mode: Mode = "steady") -> list[list[float]]:
        """Of each restored process the times of ``name`` at which the processor was not slowed; all of them where too few
        processes have any."""
        everything = [list(restore.get(name, ())) for restore in self.of(mode)]
        quiet = self._where(name, mode, lambda canary: canary.is_calm(self.best_canary)) or everything
        return quiet if sum(map(bool, quiet)) >= min(TIMING.fewest_calm, sum(map(bool, everything))) else everything

    def _where(self, name: Variant, mode: Mode, fit: Callable[[Canary], bool]) -> list[list[float]]:
        """Of each restored process the times of ``name`` with such a canary; nothing where canaries are not known."""
        times, canaries = self.of(mode), self.canaries.get(mode, ())
        if len(canaries) != len(times):
            return []
        pairs = (zip(r.get(name, ()), seen.get(name, ()), strict=True) for r, seen in zip(times, canaries, strict=True))
        return [[time for time, canary in one if fit(canary)] for one in pairs]

    def is_settled(self, name: Variant) -> bool:
        """Whether enough processes timed both ``name`` and the original undisturbed; also where that is not known."""
        best = self.best_canary
        quiet = [
            all(any(c.is_calm(best) for c in restore.get(n, ())) for n in (name, ORIGINAL))
            for restore in self.canaries.get("steady", ())
        ]
        return not best.core or sum(quiet) >= TIMING.fewest_calm

    @property
    def is_calm(self) -> bool:
        """Whether enough processes timed the original undisturbed: only such calls count then."""
        if self.origin is not None:
            return self.origin.is_calm
        best = self.best_canary
        seen = [any(c.is_calm(best) for c in restore.get(ORIGINAL, ())) for restore in self.canaries.get("steady", ())]
        return sum(seen) >= min(TIMING.fewest_calm, len(seen))

    def calm_part(self) -> float | None:
        """Which part of the original's calls had a processor that was not slowed; None where that is not known."""
        if self.origin is not None:
            return self.origin.calm_part()
        best = self.best_canary
        seen = [c for restore in self.canaries.get("steady", ()) for c in restore.get(ORIGINAL, ())]
        return sum(c.is_calm(best) for c in seen) / len(seen) if seen and best.core else None

    def restores(self, name: Variant) -> int:
        """In how many restored processes ``name`` was timed."""
        return sum(1 for restore in self.steady if restore.get(name))

    def processes(self, name: Variant, mode: Mode = "steady") -> list[float | None]:
        """The undisturbed time in each restored process; None where it did not run, or only disturbed while others did not.

        That of the calm calls, or of all where these were quicker: what the canary does not see disturbs too. But for those
        that were quicker because the processor's clock was."""
        times = self.of(mode)
        key = ("processes", name, mode)
        found = self._worked_out.get(key)
        if not isinstance(found, tuple):
            usual = self._where(name, mode, lambda canary: not canary.is_boosted(self.best_canary))
            every = [usual[k] if usual and usual[k] else restore.get(name, []) for k, restore in enumerate(times)]
            found = self._worked_out[key] = tuple(
                min(undisturbed(calm), undisturbed(one)) if calm else None
                for calm, one in zip(self.calm(name, mode), every, strict=True)
            )
        return list(found)

    def paired(self, over: Variant, under: Variant, mode: Mode = "steady") -> list[tuple[float, float]]:
        """Undisturbed times of ``over`` and ``under`` in each restored process that ran both, and in which the clock tells
        both from a call of nothing."""
        both = list(zip(self.calm(over, mode), self.calm(under, mode), strict=True))
        if sum(1 for a, b in both if a and b) < TIMING.fewest_calm:
            restores = self.of(mode)
            both = [(list(r.get(over, ())), list(r.get(under, ()))) for r in restores]
        times = [(undisturbed(a), undisturbed(b)) for a, b in both if a and b]
        return [(above, below) for above, below in times if above > 0 and below > 0]

    def per_restore(self, over: Variant, under: Variant, mode: Mode = "steady") -> list[float]:
        """Undisturbed time of ``over`` divided by that of ``under``, for each restored process that ran both."""
        return [a / b for a, b in self.paired(over, under, mode)]

    def ratio(self, over: Variant, under: Variant, mode: Mode = "steady") -> Ratio | None:
        """Time(over) / time(under), undisturbed, with its interval over the restores; None where nothing was measured."""
        found = self.in_mode(over, under, mode)
        if found is not None and self.lesser and mode == "steady" and under not in (ORIGINAL, SHADOW, *CONTROLS):
            return min(found, self.in_mode(over, under, "cold") or found, key=lambda r: r.median)
        return found

    def in_mode(self, over: Variant, under: Variant, mode: Mode) -> Ratio | None:
        """The same of one mode's times alone, also where the lesser gain of both counts."""
        runs = self.processes(over, mode), self.processes(under, mode)
        if self.typical:
            above, below = (self._of_processes(name, over, under, mode) for name in (over, under))
            pairs = [(a, b) for a, b in zip(*runs, strict=True) if a and b] if self.is_calm else []
            found = unpaired_ratio(above, below, TIMING.typical) if above and below else None
            return no_greater(found, pairs) if found is not None else None
        above, below = ([ns for ns in one if ns] for one in runs)
        if not above or not below:
            return None
        together = all(bool(a) == bool(b) for a, b in zip(*runs, strict=True))
        found = undisturbed_ratio(above, below) if together else unpaired_ratio(above, below)
        factor = self._slowed(under, mode, undisturbed(below)) / self._slowed(over, mode, undisturbed(above))
        found = Ratio(factor * found.median, factor * found.lo, factor * found.hi, found.restores)
        pairs = [(a, b) for a, b in zip(*runs, strict=True) if a and b]
        slowed = abs(math.log(factor)) > math.log(TIMING.unusual)
        return (
            found if slowed or not self.is_calm or len(pairs) < TIMING.fewest_pairs else nearer(found, paired_ratio(pairs))
        )

    def at_places(self, places: Sequence[Variant], mode: Mode) -> AtPlaces | None:
        """The factors of a build's ``places``, of which its own is the first and those that no process timed are left out;
        None where none timed the own one."""
        times, key = [[ns for ns in self.processes(name, mode) if ns] for name in places], ("places", *places, mode)
        if not times[0]:
            return None
        found = self._worked_out.get(key)
        if not isinstance(found, AtPlaces):
            quantile = TIMING.typical if self.typical else TIMING.undisturbed
            found = at_places(times[0], [one for one in times[1:] if one], quantile)
            if self.is_calm and not self.typical:
                found = found.or_nearer(in_pairs([self.processes(name, mode) for name in places]))
            self._worked_out[key] = found
        return found

    def _of_processes(self, name: Variant, over: Variant, under: Variant, mode: Mode) -> list[float]:
        """The times of one of both in all processes; those of the original's two, where it is held against another."""
        both = (ORIGINAL, SHADOW) if name == ORIGINAL and SHADOW not in (over, under) else (name,)
        return [ns for one in both for ns in self.processes(one, mode) if ns]

    def _slowed(self, name: Variant, mode: Mode, ns: float) -> float:
        """How many times slower than it is known to be what took ``ns`` undisturbed: the original is timed twice, and it and
        the identity were timed before where these timings are the second. Others slow what waits for memory in phases; where
        no process saw the original without, every candidate whose data a cache holds would gain by that."""
        return ns / min(ns, self.known.get((name, mode), ns), self.nanoseconds(name, mode) or ns)

    def nanoseconds(self, name: Variant, mode: Mode = "steady") -> float | None:
        """The undisturbed time of one call, over all restores: they all do the same work. The original is timed twice.
        The usual one, where ratios are of such (``typical``)."""
        both = [self.processes(n, mode) for n in ((ORIGINAL, SHADOW) if name == ORIGINAL else (name,))]
        if self.typical:
            times = [ns for one in both for ns in one if ns]
            return quantile_of(times, TIMING.typical) if times else None
        values = [undisturbed(known) for one in both if (known := [ns for ns in one if ns])]
        return min(values, default=None)
