"""The plan over devices: chosen by the first round of measurements, told by the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import eq

import numpy as np

from layout_advise.errors import ProgramError
from layout_advise.mockup.timing.statistics import undisturbed_ratio
from layout_advise.opencl.host.launch import Launch
from layout_advise.opencl.intercept.events import BufferEvent
from layout_advise.opencl.measure.jobs import DeviceName
from layout_advise.opencl.placement.measured import (
    HOST,
    DevicePlace,
    PlacedProgram,
    PlacedTimes,
    RoundTimes,
    all_places,
    measured_rounds,
)
from layout_advise.opencl.placement.order import KernelOrder, buffer_uses, kernel_order, united
from layout_advise.opencl.policy import OPENCL
from layout_advise.plan.placed import PlacedCosts, PlacedRegion, PlacedWay, held
from layout_advise.plan.region_order import leaves, turns
from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.kernels import DevicePlan, OtherPlan, PlacedKernel

ONE_STRUCTURE = "There are too many buffers to place each by itself: all of them are moved together."


def device_plan(
    events: Sequence[BufferEvent] | None,
    numbers: Sequence[int | None],
    programs: Sequence[PlacedProgram],
    devices: Sequence[DeviceName],
    rounds: int,
    tell: Callable[[str], None],
) -> DevicePlan:
    """The plan of some programs on some devices, told by so many ``rounds`` of fresh processes behind one that it is chosen
    by. ``numbers`` says which launch each kernel of the events is. Raises ProgramError where their order cannot be planned,
    or a kernel runs nowhere."""
    launches = _launches(programs)
    where = {n: own.program for own in programs for n in own.numbers}
    order = kernel_order(events, numbers, [buffer_uses(where[n], launch) for n, launch in enumerate(launches)])
    measured = measured_rounds(devices, programs, rounds + 1, tell)
    plan = _PlanOfKernels(order, programs, devices, measured)
    return plan.report(launches)


def _launches(programs: Sequence[PlacedProgram]) -> list[Launch]:
    found = {n: launch for own in programs for n, launch in zip(own.numbers, own.launches, strict=True)}
    return [found[n] for n in sorted(found)]


class _PlanOfKernels:
    """Costs by round, and what is chosen of them."""

    def __init__(
        self,
        order: KernelOrder,
        programs: Sequence[PlacedProgram],
        devices: Sequence[DeviceName],
        measured: Sequence[RoundTimes],
    ) -> None:
        self.order, self.programs, self.devices, self.measured = order, programs, devices, measured
        self.places = all_places(len(devices), programs)
        self.notes: list[str] = []
        try:
            self._costs(measured[0])
        except ValueError:
            self.order = united(order)
            self.notes.append(ONE_STRUCTURE)

    def _costs(self, times: RoundTimes) -> tuple[PlacedTimes, PlacedCosts]:
        own = PlacedTimes(self.order, self.programs, self.places, times)
        return own, PlacedCosts(own.regions, own.structures)

    def best(self, allowed: Callable[[DevicePlace], bool]) -> PlacedWay | None:
        """The cheapest way by the first round with these places and the host's only."""
        own = PlacedTimes(self.order, self.programs, self.places, self.measured[0])
        keep = [k == HOST or allowed(place) for k, place in enumerate(self.places)]
        regions = [
            PlacedRegion(tuple(t if kept else np.inf for t, kept in zip(one.times, keep, strict=True)), one.uses)
            for one in own.regions
        ]
        return PlacedCosts(regions, own.structures).cheapest(self.order.steps)

    def costs_of(self, way: PlacedWay) -> list[float]:
        """The costs of a way in the rounds behind the first one, or in that where it is the only one."""
        found = []
        for times in self.measured[1:] or self.measured:
            own = PlacedTimes(self.order, self.programs, self.places, times)
            steps, regions = held(self.order.steps, own.regions, way.places)
            again = PlacedCosts(regions, own.structures).cheapest(steps)
            found.append(again.cost if again is not None else float(np.inf))
        return found

    def report(self, launches: Sequence[Launch]) -> DevicePlan:
        """The plan as the report has it."""
        way = self.best(lambda _place: True)
        if way is None:
            raise ProgramError("no plan over devices", "a kernel ran on none of them", "")
        own = self.costs_of(way)
        others = tuple(
            other for label, found in self._alternatives() if (other := self._other(label, found, own)) is not None
        )
        kernels = self._kernels(way, launches)
        working = sum(one.launches * one.ns for one in kernels)
        several = len({one.device for one in kernels}) > 1
        rival = min(others, key=lambda other: other.ns, default=None)
        changes = several and rival is not None and rival.gain.lo > OPENCL.smallest_gain
        text = _text(kernels, rival, several, changes)
        whole = float(np.median(own))
        moving = max(0.0, whole - working)
        return DevicePlan(self.order.text(launches), kernels, whole, moving, others, changes, text, tuple(self.notes))

    def _alternatives(self) -> list[tuple[str, PlacedWay | None]]:
        found = []
        for number, device in enumerate(self.devices):
            found.append((f"all on {device.name}, as it is", self.best(partial(eq, DevicePlace(number)))))
            found.append((f"all on {device.name}, its best layouts", self.best(partial(_is_on, number))))
        return found

    def _other(self, label: str, way: PlacedWay | None, own: Sequence[float]) -> OtherPlan | None:
        costs = self.costs_of(way) if way is not None else [float(np.inf)]
        if not np.isfinite(costs).all():
            return None
        ratio = undisturbed_ratio(costs, list(own))
        return OtherPlan(label, float(np.median(costs)), Interval(ratio.median, ratio.lo, ratio.hi, ratio.restores))

    def _kernels(self, way: PlacedWay, launches: Sequence[Launch]) -> tuple[PlacedKernel, ...]:
        """The kernels in the order of the nest; those that are named at several places with one answer are told once."""
        rounds = [PlacedTimes(self.order, self.programs, self.places, times) for times in self.measured[1:] or self.measured]
        found: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
        for region, place, often in zip(leaves(self.order.steps), way.places, turns(self.order.steps), strict=True):
            launch = self.order.regions[region].launch
            if launch is None:
                continue
            ns = float(np.median([one.regions[region].times[place] for one in rounds]))
            at = self.places[place]
            name = launches[launch].kernel, self.devices[at.device].name, self._label(at)
            found.setdefault(name, []).append((often, ns))
        return tuple(
            PlacedKernel(*name, sum(n for n, _ in rows), sum(n * ns for n, ns in rows) / sum(n for n, _ in rows))
            for name, rows in found.items()
        )

    def _label(self, place: DevicePlace) -> str:
        if place.program < 0:
            return "as it is"
        return "; ".join(one.label for one in self.programs[place.program].choices[place.choice])


def _is_on(device: int, place: DevicePlace) -> bool:
    return place.device == device


def _text(kernels: Sequence[PlacedKernel], rival: OtherPlan | None, several: bool, changes: bool) -> str:
    """The plan in a sentence."""
    by_place: dict[tuple[str, str], list[str]] = {}
    for one in kernels:
        by_place.setdefault((one.device, one.layout), []).append(one.name)
    ways = "; ".join(f"{', '.join(names)} on {device} ({how})" for (device, how), names in by_place.items())
    if rival is None:
        return f"One plan over all devices: {ways}. No device runs all kernels by itself."
    gain = f"{rival.gain.median:.2f} times as fast ({rival.gain.lo:.2f} to {rival.gain.hi:.2f}) as {rival.label}"
    if not several:
        return f"One plan over all devices: {ways}; other devices gain nothing."
    if changes:
        return f"One plan over all devices: {ways}: {gain}, copies and conversions counted."
    return f"Undecided on several devices: {ways} would be {gain}; that is not surely {OPENCL.smallest_gain:.2f}."
