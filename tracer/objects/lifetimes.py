"""The heap blocks that come and go in a traced call: the table of live blocks before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layout_advise.tracer.folding.relocate import NOWHERE, AddressMap, Process
from layout_advise.tracer.process.stopped_program import CloneImage
from layout_advise.tracer.trace.trace import Allocation


def changes(
    before: Sequence[Allocation], after: Sequence[Allocation], images: Sequence[CloneImage] = ()
) -> tuple[tuple[Allocation, ...], tuple[int, ...]]:
    """The blocks that are there after the call only, and the orders of those that are not there any more. A site in a
    clone is no place of the program: it is 0."""
    earlier, later = {a.order for a in before}, {a.order for a in after}
    ours = [range(image.address, image.address + len(image.code)) for image in images]
    new = [a for a in after if a.order not in earlier]
    born = [replace(a, site=0, stack=()) if any(a.site in own for own in ours) else a for a in new]
    return tuple(sorted(born, key=lambda a: a.order)), tuple(sorted(earlier - later))


@dataclass(frozen=True, slots=True)
class Lives:
    """Lifetimes in the blocks of the parked program; ``watched`` is false where they are not known."""

    watched: bool = False
    born: tuple[Allocation, ...] = ()
    freed: tuple[int, ...] = ()


def translated(source: Process, target: Process, after: Sequence[Allocation] | None) -> tuple[AddressMap, Lives]:
    """The map from the process that was traced to the parked one, and the lifetimes in the latter; ``after`` are the blocks
    of the former when the call was done, ``None`` where they are not known.

    New blocks, which the parked program does not have, are beyond all its memory unless they lie between others. Lifetimes
    are not known either where the two processes do not have the same blocks.
    """
    born, freed = changes(source.allocations, after) if after is not None else ((), ())
    to = AddressMap(source, target, born)
    if after is None or to.strangers or to.blocks != len(target.allocations):
        return to, Lives()
    return to, Lives(True, tuple(_moved(block, to) for block in born), freed)


def _moved(block: Allocation, to: AddressMap) -> Allocation:
    delta = to.delta(block.address, block.address + max(block.bytes, 1) - 1)
    site = to.address(block.site)
    return replace(block, address=block.address + (NOWHERE if delta is None else delta), site=site or 0, stack=())
