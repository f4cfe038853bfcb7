"""The loops of a mock-up that run their iterations side by side, and how many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from layout_advise.errors import NotVectorisedError
from layout_advise.layoutalgebra.derive.structure import Axis
from layout_advise.mockup.emit.arrays import loops
from layout_advise.mockup.emit.settings import EmitSettings
from layout_advise.mockup.emit.simd.iterations import SimdIterations, analyse_iterations
from layout_advise.mockup.evidence.binding import Access, accesses
from layout_advise.mockup.ir.lifted import Lifted, LiftedLoop
from layout_advise.mockup.remap.sites import RemapPlan


@dataclass(frozen=True, slots=True)
class SimdLoops:
    """By number of a loop, how its iterations run side by side; ``slots`` is how many of them, ``refused`` the reason why
    another loop's cannot (empty: none was refused)."""

    abreast: Mapping[int, SimdIterations] = field(default_factory=dict)
    slots: int = 1
    refused: str = ""


NO_SIMD_LOOPS = SimdLoops()


def simd_loops(lifted: Lifted, placed: RemapPlan, settings: EmitSettings) -> SimdLoops:
    """Returns the loops that run elements side by side: in the variant ``simd`` as many as fill vectors, else a block.

    Raises NotVectorisedError where that leaves nothing to be written so.
    """
    vector_bytes = settings.vector_bytes if settings.variant == "simd" else None
    abreast: dict[int, SimdIterations] = {}
    sizes: list[int] = []
    refused: NotVectorisedError | None = None
    for loop in (x for x in loops(lifted.body) if x.abreast):
        blocks = [a.block for x in accesses(loop.body) for a in _split_axes(placed, x)]
        try:
            _check_tests(loop, placed)
            found = analyse_iterations(loop, lifted)
            _check_picked(loop, placed, found)
            if vector_bytes is None:
                _check_blocks(loop, found, blocks)
        except NotVectorisedError as error:
            refused = error
            continue
        abreast[loop.uid] = found
        sizes.append(min([vector_bytes // found.size(loop.body) if vector_bytes else max(blocks), *blocks]))
    left = sizes if vector_bytes is None else [x for x in loops(lifted.body) if x.independent]
    if refused is not None and not left:
        raise refused
    if vector_bytes is None and not sizes:
        what = "nothing is written by element of a block"
        raise NotVectorisedError(what, "there is no independent loop around others")
    return SimdLoops(abreast, min(sizes, default=1), refused.line() if refused is not None else "")


def _check_tests(loop: LiftedLoop, placed: RemapPlan) -> None:
    """Raises NotVectorisedError where an access of ``loop`` goes to a structure only at some of its addresses."""
    places = ((access, placed.places.get(access.uid)) for access in accesses(loop.body))
    tested = next((access for access, place in places if place is not None and place.within is not None), None)
    if tested is not None:
        where = f"the loop at {loop.head:#x} runs no iterations side by side"
        raise NotVectorisedError(where, f"the reference at {tested.origin.pc:#x} touches other memory too")


def _check_picked(loop: LiftedLoop, placed: RemapPlan, found: SimdIterations) -> None:
    """Raises NotVectorisedError where iterations of ``loop`` that run side by side go to different fields of elements."""
    for access in accesses(loop.body):
        place = placed.places.get(access.uid)
        if place is not None and any(found.varies(atom) for atom, _ in place.along):
            where = f"the loop at {loop.head:#x} runs no iterations side by side"
            raise NotVectorisedError(where, f"the reference at {access.origin.pc:#x} goes to another field in each")


def _check_blocks(loop: LiftedLoop, found: SimdIterations, blocks: Sequence[int]) -> None:
    """Raises NotVectorisedError where ``loop`` is not to be written by element of a block in plain C."""
    where = f"the loop at {loop.head:#x} is not written by element of a block"
    if found.masked:
        raise NotVectorisedError(where, "its iterations jump at different places")
    if not blocks or any(size & (size - 1) for size in blocks):
        raise NotVectorisedError(where, "what it accesses lies in no blocks of a power of two")


def _split_axes(placed: RemapPlan, access: Access) -> list[Axis]:
    place = placed.places.get(access.uid)
    return [a for p in place.pieces for a in p.map.axes if a.part == "mod"] if place is not None else []
