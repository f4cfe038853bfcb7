"""Loops over the fields of an element (``p[i].x[k]``) that can stay loops in another layout, and fields that are picked.

Where the fields that a loop goes over keep even distances (in the element, cut out of it, in blocks of elements), an access
moves by as many bytes an iteration there as the source in that layout would have it move. Written out instead, the loop was
1.2 times as fast with the layout unchanged, and layouts were advised for that (``entities`` -O2). A field that is picked by
a value which no loop counts is the same, and whether the value is in its range is asked when the mock-up runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.atoms import MOST_APART
from layout_advise.layoutalgebra.derive.structure import FieldMap, Structure
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.mockup.evidence.streams import residues
from layout_advise.mockup.ir.lifted import Imm, LiftedLoop, Linear, Operand, Val

MOST_FIELDS = MOST_APART
COMPUTED = "which field of an element it goes to is computed there"
OVER_FIELDS = "a loop runs over the fields of an element"


@dataclass(frozen=True, slots=True)
class Run:
    """What moves an access within an element, by ``step`` bytes at a time to ``trip`` places: the sum of ``parts``, each
    times its number. That is a loop's counter, or, ``picked``, a value that picks one of them. Where only the trace says
    how many there are, ``bound`` is what has to stay below."""

    parts: tuple[tuple[Operand, int], ...]
    step: int
    trip: int
    bound: Operand | Linear | None = None
    picked: bool = False

    @property
    def most(self) -> int:
        """Returns the greatest ``bound`` for which the places are those known: of a loop how often it goes on."""
        return self.trip - self.picked


@dataclass(frozen=True, slots=True)
class RunPiece:
    """``bytes`` of the access from ``at`` on live at ``delta`` within a field, ``inner`` elements further on."""

    at: int
    bytes: int
    map: FieldMap
    delta: int
    inner: int

    @property
    def offset(self) -> int:
        """Returns where in the buffer it is, but for the index."""
        return self.map.offset + self.delta


def runs_over_fields(
    address: Linear, chain: Sequence[LiftedLoop], size: int, traced: Callable[[], frozenset[int] | None]
) -> tuple[Run, ...]:
    """The loops around an access that take it from field to field of elements of ``size`` bytes. ``traced`` gives the places
    in the element where it went: a single loop may go over these as often as the program says."""
    counters = {loop.counter: loop for loop in chain}
    moving = [(counters[atom], step) for atom, step in address.terms if isinstance(atom, Val) and atom in counters]
    moving = [(loop, step) for loop, step in moving if step % size]
    found = [Run(((loop.counter, 1),), step, loop.trip.value) for loop, step in moving if isinstance(loop.trip, Imm)]
    found = [run for run in found if 1 < run.trip <= MOST_FIELDS]
    if len(moving) == 1 and moving[0][0].trip is not None and not isinstance(moving[0][0].trip, Imm):
        (loop, step), trip = moving[0], len(traced() or ())
        found = [Run(((loop.counter, 1),), step, trip, loop.trip)] if 1 < trip <= MOST_FIELDS else []
    return tuple(found) if prod(run.trip for run in found) <= MOST_FIELDS else ()


def distances(runs: Sequence[Run]) -> Iterator[tuple[tuple[int, ...], int]]:
    """Every combination of counters, and by how many bytes it moves the access."""
    for counts in product(*(range(run.trip) for run in runs)):
        yield counts, sum(k * run.step for k, run in zip(counts, runs, strict=True))


def start_of_runs(stream: Stream, structure: Structure, runs: Sequence[Run]) -> int | None:
    """The place in the element where the first iterations go; None where the trace does not show just these fields of one
    element (of fields that are picked, some of them)."""
    size = structure.element_bytes
    traced = residues(stream, structure.base, size)
    if not traced:
        return None
    moves = [moved for _, moved in distances(runs)]
    start = min(traced) - min(moves)
    inside = start >= 0 and start + max(moves) < size
    reached = frozenset(start + moved for moved in moves)
    shown = traced <= reached if any(run.picked for run in runs) else traced == reached
    return start if inside and shown else None


def even_moves(
    first: Sequence[RunPiece], offset: int, runs: Sequence[Run], pieces_at: Callable[[int], Sequence[RunPiece]], where: str
) -> tuple[tuple[Operand, int], ...]:
    """By how many bytes each counter moves the access in the new layout, which starts with the pieces ``first``. Raises
    :class:`RemapError` where the fields are not at even distances there."""
    what = COMPUTED if any(run.picked for run in runs) else OVER_FIELDS
    error = RemapError(where, f"{what}, and these have no even distances in the new layout")
    if len(first) != 1:
        raise error
    start, moves = first[0], []
    for k, run in enumerate(runs):
        moves.append(pieces_at(offset + run.step)[0].offset - start.offset)
        if moves[k] % start.bytes:
            raise error
    for counts, moved in distances(runs):
        here = pieces_at(offset + moved)
        expected = start.offset + sum(count * move for count, move in zip(counts, moves, strict=True))
        alike = len(here) == 1 and (here[0].map.buffer, here[0].map.axes) == (start.map.buffer, start.map.axes)
        if not alike or here[0].inner != start.inner or here[0].offset != expected:
            raise error
    return tuple((atom, coef * move) for run, move in zip(runs, moves, strict=True) for atom, coef in run.parts)


def uncovered(structure: Structure, local: int, size: int) -> str:
    """Why an access of ``size`` more bytes from byte ``local`` of an element on cannot be placed: there is no field."""
    later = (f.offset for f in structure.fields if f.offset > local)
    last = min(local + size, structure.element_bytes, *later) - 1
    which = f"byte {local}" if last == local else f"bytes {local} to {last}"
    return (
        f"it covers {which} of the {structure.element_bytes} of each element of {structure.id} ({structure.name}), "
        "where no field is known to be used"
    )
