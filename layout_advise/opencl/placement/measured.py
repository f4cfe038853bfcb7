"""Times of kernels, copies and conversions at each place: a device with a layout, or the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from layout_advise.opencl.candidates import Choice, key
from layout_advise.opencl.host.launch import BufferArgument, Launch, checked_kernel
from layout_advise.opencl.host.variants import KernelVariant, original, variant
from layout_advise.opencl.measure.jobs import BufferMove, DeviceName, KernelJob, VariantOutcome
from layout_advise.opencl.measure.processes import in_fresh_process
from layout_advise.opencl.placement.order import BufferGroup, KernelOrder, KernelRegion
from layout_advise.opencl.policy import OPENCL
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.plan.placed import MovedStructure, PlacedRegion

HOST = 0


@dataclass(frozen=True, slots=True, eq=False)
class PlacedProgram:
    """A program of the devices: its launches with their numbers among all, and the layouts that are tried in the plan."""

    program: KernelProgram
    numbers: tuple[int, ...]
    launches: tuple[Launch, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """A device (by number) with the layout of a program (both by number); no layout: that of the host program. Number 0
    is the host."""

    device: int
    program: int = -1
    choice: int = -1


def all_places(devices: int, programs: Sequence[PlacedProgram]) -> list[DevicePlace]:
    """The places of all devices; the first one stands for the host."""
    found = [DevicePlace(-1)]
    for device in range(devices):
        found.append(DevicePlace(device))
        found += [DevicePlace(device, p, c) for p, own in enumerate(programs) for c in range(len(own.choices))]
    return found


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """One round of fresh processes: by device and program, what came of the original and of each layout."""

    outcomes: Mapping[tuple[int, int], Sequence[VariantOutcome]]

    def of(self, place: DevicePlace, program: int) -> VariantOutcome:
        """The outcome of a program's kernels at a place."""
        row = self.outcomes[place.device, program]
        return row[1 + place.choice if place.program == program else 0]


def measured_rounds(
    devices: Sequence[DeviceName], programs: Sequence[PlacedProgram], rounds: int, tell: Callable[[str], None]
) -> list[RoundTimes]:
    """Original and layouts of each program on each device, device by device in each round."""
    variants: list[tuple[KernelVariant, ...]] = []
    for number, own in enumerate(programs):
        made = (variant(f"p{number}.{k}", own.program, own.launches, c) for k, c in enumerate(own.choices))
        variants.append((original(own.launches), *made))
    found = []
    for turn in range(rounds):
        tell(f"plan over {len(devices)} devices, round {turn + 1} of {rounds}")
        outcomes = {
            (d, p): in_fresh_process(KernelJob(device, own, OPENCL.seconds / 2, turn, moves=True))
            for d, device in enumerate(devices)
            for p, own in enumerate(variants)
        }
        found.append(RoundTimes(outcomes))
    return found


class PlacedTimes:
    """Regions and structures with the times of one round."""

    def __init__(
        self, order: KernelOrder, programs: Sequence[PlacedProgram], places: Sequence[DevicePlace], times: RoundTimes
    ) -> None:
        self.programs, self.places, self.times = programs, places, times
        self.where = {n: (p, k) for p, own in enumerate(programs) for k, n in enumerate(own.numbers)}
        self.regions = [self._region(region) for region in order.regions]
        self.structures = [self._structure(one) for one in order.structures]

    def _region(self, region: KernelRegion) -> PlacedRegion:
        if region.launch is None:
            return PlacedRegion((0.0, *(np.inf,) * (len(self.places) - 1)), region.uses)
        program, number = self.where[region.launch]
        return PlacedRegion(tuple(self._time(place, program, number) for place in self.places), region.uses)

    def _time(self, place: DevicePlace, program: int, number: int) -> float:
        """Nanoseconds of one launch; infinite at the host, in another program's layout, and where it differs."""
        if place.device < 0 or (place.program >= 0 and place.program != program):
            return float(np.inf)
        found = self.times.of(place, program)
        wrong = found.problem or (found.compared.problem if found.compared is not None and place.program >= 0 else "")
        return float(np.inf) if wrong else found.walls[number]

    def _structure(self, one: BufferGroup) -> MovedStructure:
        """Copies between all places: all buffers together. At first it is nowhere: the host's first access fills it."""
        moves = [[sum(self._move(old, new, buffer) for buffer in one.buffers) for new in self.places] for old in self.places]
        return MovedStructure(tuple(map(tuple, moves)), None)

    def _move(self, old: DevicePlace, new: DevicePlace, buffer: Sequence[tuple[int, int]]) -> float:
        """A copy of one buffer. Devices exchange by way of the host; on one device kernels convert."""
        if old == new:
            return 0.0
        there, here = self._price(new, buffer), self._price(old, buffer)
        if old.device == new.device:
            alike = self._layout(old, buffer) == self._layout(new, buffer)
            return 0.0 if alike else here.kernel_out + there.kernel_in
        return (here.to_host if old.device >= 0 else 0.0) + (there.to_device if new.device >= 0 else 0.0)

    def _price(self, place: DevicePlace, buffer: Sequence[tuple[int, int]]) -> BufferMove:
        if place.device < 0:
            return BufferMove(0.0, 0.0)
        launch, number = self._use(place, buffer)
        program, own = self.where[launch]
        found = self.times.of(place, program)
        return found.moves[own][number] if found.moves else BufferMove(np.inf, np.inf)

    def _use(self, place: DevicePlace, buffer: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """A launch by which the buffer is known, one of the program whose layout it is."""
        return next((use for use in buffer if self.where[use[0]][0] == place.program), buffer[0])

    def _layout(self, place: DevicePlace, buffer: Sequence[tuple[int, int]]) -> object:
        """Equal for places where the buffer has the same layout."""
        launch, number = self._use(place, buffer)
        program, own = self.where[launch]
        if place.program != program:
            return None
        choice = self.programs[program].choices[place.choice]
        usr = record_of(self.programs[program], own, number)
        return next((key((one,)) for one in choice if one.record.usr == usr and not one.is_original), None)


def record_of(program: PlacedProgram, launch: int, number: int) -> str:
    """The record (USR) in a buffer of a launch; empty where it holds none."""
    own = program.launches[launch]
    pairs = zip(checked_kernel(program.program, own).parameters, own.arguments, strict=True)
    return next((p.record for p, a in pairs if a == BufferArgument(number) and p.record), "")
