"""Regions and structures of a host program that uses kernels: the order in which kernels and the host use its buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from layout_advise.errors import ProgramError
from layout_advise.layoutalgebra.sets.nests import Node
from layout_advise.opencl.host.launch import BufferArgument, Launch, checked_kernel
from layout_advise.opencl.intercept.events import BufferEvent
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.plan.placed import Use
from layout_advise.plan.region_order import RegionStep, from_nodes, said
from layout_advise.tracer.folding.execution_order import fold_numbers

MOST_REGIONS = 200


@dataclass(frozen=True, slots=True)
class KernelRegion:
    """A kernel (its launch's number) on some buffers, or the host (None); ``uses`` by structure."""

    launch: int | None
    uses: Mapping[int, Use]


@dataclass(frozen=True, slots=True)
class BufferGroup:
    """Buffers that always lie in one place, as the same regions use them in the same ways: each as launch and number of the
    buffer in it, once for every kernel that uses it."""

    buffers: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class KernelOrder:
    """The nest of regions, the regions, and the structures."""

    steps: tuple[RegionStep, ...]
    regions: tuple[KernelRegion, ...]
    structures: tuple[BufferGroup, ...]

    def text(self, launches: Sequence[Launch]) -> str:
        """The nest in a line."""
        return said(self.steps, ["host" if r.launch is None else launches[r.launch].kernel for r in self.regions])


def of_one(launch: Launch) -> tuple[BufferEvent, ...]:
    """The events of a launch by itself: the host gives all buffers, and reads them behind the last call."""
    numbers = range(len(launch.buffers))
    before = [BufferEvent("overwritten", (n,)) for n in numbers]
    return (
        *before,
        *(BufferEvent("launch", tuple(numbers), 0),) * launch.calls,
        *(BufferEvent("read", (n,)) for n in numbers),
    )


def buffer_uses(program: KernelProgram, launch: Launch) -> tuple[Use, ...]:
    """The use that a kernel makes of each buffer of its launch: read by pointers to constants alone, else changed."""
    found: dict[int, Use] = {}
    for parameter, argument in zip(checked_kernel(program, launch).parameters, launch.arguments, strict=True):
        if isinstance(argument, BufferArgument):
            only_read = {"const", "__constant"} & set(parameter.text.split("*")[0].split())
            use: Use = "read" if only_read and found.get(argument.number, "read") == "read" else "changed"
            found[argument.number] = use
    return tuple(found.get(number, "read") for number in range(len(launch.buffers)))


def kernel_order(
    events: Sequence[BufferEvent] | None, numbers: Sequence[int | None], uses: Sequence[Sequence[Use]]
) -> KernelOrder:
    """The order of what happens. ``numbers`` says which launch each kernel of the events is (None: not studied), ``uses``
    how each launch uses its buffers. Raises ProgramError where no plan can be made of it."""
    regions: dict[tuple[object, ...], int] = {}
    found: list[tuple[int | None, dict[int, Use]]] = []
    sequence: list[int] = []
    where: dict[int, dict[int, int]] = {}
    host: dict[int, Use] = {}
    if events is None:
        raise _no_plan("its buffers are used in ways that are not followed, or too often")

    def entered(launch: int | None, own: dict[int, Use]) -> None:
        number = regions.setdefault((launch, *sorted(own.items())), len(regions))
        if number == len(found):
            found.append((launch, own))
        sequence.append(number)

    for event in events:
        if event.what == "new":
            continue
        if event.what != "launch":
            for buffer in event.buffers:
                host[buffer] = _both(host.get(buffer), event.what)
            continue
        launch = numbers[event.kernel] if event.kernel < len(numbers) else None
        if launch is None or len(event.buffers) != len(uses[launch]):
            raise _no_plan("a kernel that it launches was not looked at")
        if host:
            entered(None, host)
            host = {}
        for number, buffer in enumerate(event.buffers):
            where.setdefault(buffer, {}).setdefault(launch, number)
        entered(launch, dict(zip(event.buffers, uses[launch], strict=True)))
    if host:
        entered(None, host)
    return _folded(found, sequence, where)


def _both(first: Use | None, then: Use) -> Use:
    """The host's use of a buffer between two launches, in one word."""
    if first is None or first == then or first == "overwritten":
        return first or then
    return "changed"


def _folded(
    found: Sequence[tuple[int | None, dict[int, Use]]], sequence: Sequence[int], where: Mapping[int, Mapping[int, int]]
) -> KernelOrder:
    """Regions of structures: buffers of the same uses are one, and what no kernel uses is left out."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for buffer in where:
        groups.setdefault(tuple(own.get(buffer) for _, own in found), []).append(buffer)
    number = {buffer: k for k, group in enumerate(groups.values()) for buffer in group}
    regions = tuple(
        KernelRegion(launch, {number[buffer]: use for buffer, use in own.items() if buffer in number})
        for launch, own in found
    )
    structures = tuple(BufferGroup(tuple(tuple(where[buffer].items()) for buffer in group)) for group in groups.values())
    if len(regions) > MOST_REGIONS:
        raise _no_plan("its kernels are given other buffers all the time")
    nodes: Sequence[Node] | None = fold_numbers([np.array(sequence, dtype=np.uint8)], len(regions))
    steps = from_nodes(nodes) if nodes is not None else None
    if steps is None:
        raise _no_plan("the order of its kernels is irregular")
    return KernelOrder(steps, regions, structures)


def _no_plan(why: str) -> ProgramError:
    return ProgramError("no plan over devices", why, "")


def united(order: KernelOrder) -> KernelOrder:
    """The same with one structure of all buffers, where there are too many to go by."""
    whole = BufferGroup(tuple(buffer for one in order.structures for buffer in one.buffers))
    regions = []
    for region in order.regions:
        kinds = set(region.uses.values())
        everything = len(region.uses) == len(order.structures)
        use: Use = "read" if kinds == {"read"} else ("overwritten" if kinds == {"overwritten"} and everything else "changed")
        regions.append(KernelRegion(region.launch, {0: use} if region.uses else {}))
    return KernelOrder(order.steps, tuple(regions), (whole,))
