"""The search on one device: which layouts are measured, what came out, and the finalists timed in fresh processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layout_advise.errors import SourceError
from layout_advise.mockup.timing.statistics import undisturbed_ratio
from layout_advise.opencl.candidates import (
    Choice,
    GraphOfRecord,
    TileOf,
    effort,
    even_choices,
    finer_choices,
    first_choices,
    same_tile,
    tiled_choices,
)
from layout_advise.opencl.host.launch import Launch
from layout_advise.opencl.host.variants import KernelVariant, original, variant
from layout_advise.opencl.measure.clock import Clock, clock_seen, time_by
from layout_advise.opencl.measure.jobs import DeviceName, KernelJob, VariantOutcome
from layout_advise.opencl.measure.processes import outcomes_apart, over_processes, times_of
from layout_advise.opencl.neighbours import near_choices
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.searched import Searched, Tried
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.opencl.verdict import claimed, winner

Further = Callable[[Choice, Sequence[GraphOfRecord], Sequence[Choice]], list[Choice]]
"""Layouts beside one, given those that were seen."""
ROUNDS = 3
"""In each, half of the measurements that are left are of layouts beside the best so far."""


class DeviceSearch:
    """Looks for the best layout of a program's records on one device."""

    def __init__(
        self,
        program: KernelProgram,
        launches: Sequence[Launch],
        records: Sequence[GraphOfRecord],
        device: DeviceName,
        clock: Clock,
        tell: Callable[[str], None],
        tile: TileOf | None = None,
    ) -> None:
        """``clock`` is the device's (:func:`clock_of`); ``tile`` is of its calibration, None where there is none."""
        self.program, self.launches, self.records, self.tell = program, launches, records, tell
        self.tile = tile or same_tile(OPENCL.first_tiles)
        self.original = original(launches)
        self.found = Searched(device, clock)

    def run(self, processes: int) -> Searched:
        """Measures partitions, tiles of the best, even cuts of clusters, other tiles of the best of all, and with what is
        left of the measurements layouts beside the best; then the finalists again in fresh processes."""
        self._screen(first_choices(self.records, OPENCL.most_measured // 2))
        if self.found.repeats:
            best = [one.variant.layouts for one in self.found.best()]
            tiled = tiled_choices(best, self.records, self._seen(), self.tile)
            self._screen(tiled[: self._left() // 2 + 1])
            self._screen(even_choices(self.records, self._seen())[: self._left() // 2])
            self._screen(self._beside_the_best(finer_choices)[: self._left()])
            for _ in range(ROUNDS):
                self._screen(self._beside_the_best(near_choices)[: -(-self._left() // 2)])
            fixed = tiled_choices(best, self.records, self._seen(), same_tile(OPENCL.first_tiles))
            self._screen(fixed[: self._left()])  # where a calibration said no tiles
            self._finals(processes)
        return self.found

    def _beside_the_best(self, further: Further) -> list[Choice]:
        """More layouts like the fastest one or, where there are none, like the next; none where no layout is verified."""
        ranked = (one.variant.layouts for one in self.found.best())
        return next(filter(None, (further(one, self.records, self._seen()) for one in ranked)), [])

    def _seen(self) -> list[Choice]:
        return [one.variant.layouts for one in self.found.tried]

    def _left(self) -> int:
        return OPENCL.most_measured - len(self.found.tried)

    def _screen(self, choices: Sequence[Choice]) -> None:
        made: list[KernelVariant] = []
        for choice in choices:
            name = f"c{len(self.found.tried) + len(made) + 1}"
            made.append(variant(name, self.program, self.launches, choice))
        if not made:
            return
        self.tell(f"{self.found.device.name}: {len(made)} layouts")
        again = original(self.launches)
        outcomes = outcomes_apart(KernelJob(self.found.device, (self.original, again, *made), OPENCL.seconds / 2))
        first, second = outcomes[:2]
        if first.problem:
            raise SourceError("cannot run the kernels as they are", first.problem, "")
        if second.compared is not None and second.compared.problem and second.compared.changed:
            self.found.repeats = False
        if not self.found.tried:
            self.found.clock = clock_seen(self.found.clock, first)
        clock = self.found.clock
        base = min(ns for one in (first, second) if (ns := time_by(one, clock)))
        for one, outcome in zip(made, outcomes[2:], strict=True):
            gain = base / time_by(outcome, clock) if time_by(outcome, clock) else None
            self.found.tried.append(Tried(one, outcome, gain))

    def _finals(self, processes: int) -> None:
        """The finalists, the original twice, each in every process; conversions in the first one."""
        ranked = self.found.best()[: OPENCL.finalists]
        simple = [t for t in self.found.best() if ranked and (t.screened or 0) >= OPENCL.as_good * (ranked[0].screened or 0)]
        simplest = min(simple, key=lambda t: effort(t.variant.layouts), default=None)
        finalists = [*ranked, *([simplest] if simplest is not None and simplest not in ranked else [])]
        if not finalists:
            return
        self.tell(f"{self.found.device.name}: {len(finalists)} layouts in {processes} processes")
        variants = (self.original, original(self.launches), *(one.variant for one in finalists))
        job = KernelJob(self.found.device, variants, OPENCL.seconds, 0, True)
        rows = over_processes(job, processes)
        self._rated(finalists, rows)
        if processes >= OPENCL.fewest_resampled and self._is_open():
            further = OPENCL.further * processes
            self.tell(f"{self.found.device.name}: {further} processes more, as the answer is open")
            self._rated(finalists, rows + over_processes(job, further, len(rows)))

    def _is_open(self) -> bool:
        """True where the intervals leave open whether a layout gains enough."""
        best = winner(self.found)
        gain = claimed(best, self.found) if best is not None else None
        most = max((own.hi for one in self.found.tried if (own := claimed(one, self.found)) is not None), default=0.0)
        return gain is not None and gain.lo <= OPENCL.smallest_gain <= most

    def _rated(self, finalists: Sequence[Tried], rows: Sequence[Sequence[VariantOutcome]]) -> None:
        """The finalists' ratios by all processes: original, the original again, then each of them."""
        clock = self.found.clock
        base, base_wall = times_of(rows, 0, clock), times_of(rows, 0, "wall")
        self.found.original_ns, self.found.original_wall_ns = min(base), min(base_wall)
        self.found.noise = undisturbed_ratio(base, times_of(rows, 1, clock))
        for number, one in enumerate(finalists, 2):
            if any(row[number].problem for row in rows):
                one.speedup = one.wall = None
                continue
            one.speedup = undisturbed_ratio(base, times_of(rows, number, clock))
            one.wall = undisturbed_ratio(base_wall, times_of(rows, number, "wall"))
            one.conversion = rows[0][number].conversion
