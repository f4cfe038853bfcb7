"""Loops whose iterations run side by side as a person writes them in plain C: arrays of as many elements as a block has,
and loops over these inside.

What all elements of a block do between two places where the way of all of them may turn (a label, a jump, a loop that they
share) is one loop over them; what lives longer is an array. The compiler finds the vectors, or does not: what it takes to
have them without vector types (:mod:`layout_advise.mockup.emit.simd.vector_slots`) is what this form is timed for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

from layout_advise.mockup.emit.c_text import CTYPE, operation
from layout_advise.mockup.emit.program import BodyWriter
from layout_advise.mockup.emit.simd.iterations import SimdIterations
from layout_advise.mockup.emit.simd.vector_slots import VectorSlotWriter
from layout_advise.mockup.emit.writer_state import WriterContext
from layout_advise.mockup.evidence.binding import Access
from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    LiftedLoop,
    Load,
    Operand,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.ir.loop_body import operands
from layout_advise.mockup.remap.sites import ElementPlace

ELEMENT = "e"
"""The counter of the loops over a block's elements; those around have others (``scope.COUNTERS``)."""

_FAR = 1 << 20
"""Steps from which on an ``int`` might not hold them times the number of an element."""


class BlockLoopWriter(VectorSlotWriter):
    """Writes the loops in ``context.simd.abreast`` so."""

    def __init__(self, context: WriterContext) -> None:
        super().__init__(context)
        self.turned = False  # inside of a loop over a block's elements: texts are of its current one
        self.pending: list[str] = []  # the statements of that loop
        self.lasting: frozenset[int] = frozenset()  # values that are read outside of the loop that computes them
        self.moved: dict[int, Let] = {}  # values that are computed where they are assigned

    # ---- names ----------------------------------------------------------------------------------------------------

    def text(self, operand: Operand) -> str:
        """An operand as a scalar: that of the current element; outside of the loops over these, of the element ``lane``."""
        if self.side is None or not self.side.varies(operand) or isinstance(operand, Imm):
            return super().text(operand)
        step = self.side.runs.get(operand.number) if isinstance(operand, Val) else None
        if step is not None:
            first = BodyWriter.text(self, operand)
            return f"({first}{_ahead(step, operand.ty)})" if self.turned and step else super().text(operand)
        if isinstance(operand, Val) and operand.number in self.moved:
            let = self.moved[operand.number]
            return operation(let.name, let.value.ty, [self.text(a) for a in let.args], [a.ty for a in let.args])
        if isinstance(operand, Val) and operand.number not in self.lasting:
            return BodyWriter.text(self, operand)
        return f"{self.vector_name(operand)}[{ELEMENT if self.turned else self.lane}]"

    def vector_name(self, operand: Val | Var) -> str:
        """The array with that of all elements."""
        return self.all_of(operand)

    def declare(self, value: Val) -> str:
        """Left side of a definition."""
        if self.side is None or not self._differs(value):
            return super().declare(value)
        name = self.called(value)
        return self.text(value) if value.number in self.lasting else f"const {CTYPE[value.ty]} {name}"

    def _differs(self, operand: Operand) -> bool:
        """Returns whether each element has its own, which no number times the element's gives."""
        return self.side is not None and differs_by_element(operand, self.side)

    # ---- the loop -------------------------------------------------------------------------------------------------

    def _declare(self, items: Sequence[Item]) -> None:
        """The arrays. Each is written before it is read; gcc merges zeroes written before with what is to be there at first,
        in pieces that the loads of whole vectors after them have to wait for."""
        assert self.side is not None
        self.lasting = live_across_stretches(items, self.side)
        for item in everything(items):
            if isinstance(item, Load):
                self.name_load(item, self.plan.places.get(item.uid))
        variables = {i.variable for i in everything(items) if isinstance(i, Assign) and self.varies(i.variable)}
        for variable in sorted(variables, key=lambda v: v.number):
            self.put(f"{CTYPE[variable.ty]} {self.vector_name(variable)}[{self.context.simd.slots}];")
        for number, value in sorted(self.side.types.items()):
            if number in self.lasting:
                self.put(f"{CTYPE[value.ty]} {self.vector_name(value)}[{self.context.simd.slots}];")

    def point_to_elements(self, loop: LiftedLoop) -> None:
        """Not in a block, where each element would need one."""
        if self.side is None:
            super().point_to_elements(loop)

    def body(self, items: Sequence[Item]) -> None:
        """All items of a body, a loop over the block's elements for each stretch."""
        if self.side is None:
            super().body(items)
            return
        for stretch in stretches(items, self.side):
            self.moved = assigned_only(stretch, self.side, self.scope.uses)
            super().body([i for i in stretch if not (isinstance(i, Let) and i.value.number in self.moved)])
            self._finish()

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """Returns what is put goes into the loop over the block's elements."""
        outside, self.lines, self.turned = self.lines, self.pending, True
        self.depth += 1
        yield
        self.depth -= 1
        self.lines, self.turned = outside, False

    def _finish(self) -> None:
        """Write the loop over the block's elements."""
        if self.pending:
            self.put(f"for (int {ELEMENT} = 0; {ELEMENT} < {self.context.simd.slots}; ++{ELEMENT}) {{")
            self.lines += self.pending
            self.put("}")
        self.pending = []

    # ---- statements -----------------------------------------------------------------------------------------------

    def item(self, item: Item) -> None:
        """One item; what all elements share, and what grows evenly from one to the next, ahead of the loop over them."""
        inside = isinstance(item, Store) or (isinstance(item, Let | LetLinear | Load | Call) and self._differs(item.value))
        if self.side is not None and inside:
            with self._inside():
                BodyWriter.item(self, item)
        else:
            BodyWriter.item(self, item)

    def moves(self, group: Sequence[Assign]) -> None:
        """Parallel moves: first those that differ between elements."""
        if self.side is None:
            super().moves(group)
            return
        ours, others = split_moves(group, self.side)
        self.lane = self.context.simd.slots - 1  # what is not computed from holds what the last element left
        kept = []
        if _reads(others, ours):
            for assign in others:
                own = self.temporary("t")
                self.put(f"const {CTYPE[assign.variable.ty]} {own} = {self.text(assign.operand)};")
                kept.append(f"{self.text(assign.variable)} = {own};")
        with self._inside():
            BodyWriter.moves(self, ours)
        if others:
            self._finish()
        for line in kept:
            self.put(line)
        if not kept:
            BodyWriter.moves(self, others)
        self.lane = 0

    # ---- memory ---------------------------------------------------------------------------------------------------

    def load(self, load: Load) -> None:
        """A load as ever."""
        BodyWriter.load(self, load)

    def store(self, store: Store) -> None:
        """A store as ever."""
        BodyWriter.store(self, store)

    def pieces(self, access: Access, place: ElementPlace | None) -> list[str]:
        """The place of each piece; of what stays in one block so many bytes behind the first element's."""
        step = self.step(access, place) if self.turned and access.uid in self.lined else None
        if step is None:
            return super().pieces(access, place)
        self.turned, self.within_block = False, True
        (first,) = super().pieces(access, place)
        self.turned, self.within_block = True, False
        return [first + _ahead(step)]


def _ahead(step: int, ty: Ty = "i64") -> str:
    """By how much the element's is more than the first one's, in the arithmetic of ``ty``."""
    size = abs(step)
    number = f"{size}u" if ty == "i32" else f"INT64_C({size})" if size >= _FAR else str(size)
    return f" {'+' if step > 0 else '-'} {ELEMENT if size == 1 else f'{number} * {ELEMENT}'}"


def differs_by_element(operand: Operand, side: SimdIterations) -> bool:
    """Returns whether ``operand`` is a value of its own for each element, and none that grows evenly."""
    return side.varies(operand) and not (isinstance(operand, Val) and operand.number in side.runs)


def split_moves(group: Sequence[Assign], side: SimdIterations) -> tuple[list[Assign], list[Assign]]:
    """Moves that are made for each element, and the others."""
    ours = [a for a in group if side.varies(a.variable)]
    return ours, [a for a in group if not side.varies(a.variable)]


def _reads(some: Iterable[Assign], others: Iterable[Assign]) -> bool:
    """Returns whether ``some`` read what ``others`` write."""
    return not {a.variable for a in others}.isdisjoint(a.operand for a in some)


def stretches(items: Sequence[Item], side: SimdIterations) -> list[list[Item]]:
    """``items`` cut into what one loop over the elements does: up to where the way of all elements may turn, up to a change
    of what they share, which is read before it, and up to a load that they share behind a store."""
    found: list[list[Item]] = [[]]
    k = 0
    while k < len(items):
        item = items[k]
        together = _moved_together(items[k:])
        ours, others = split_moves(together, side)
        shared_load = isinstance(item, Load) and not side.varies(item.value)
        turn = isinstance(item, Label | Goto | LiftedLoop)
        if turn or _reads(others, ours) or (shared_load and any(isinstance(i, Store) for i in found[-1])):
            found.append([])
        found[-1] += together or [item]
        if turn or others:
            found.append([])
        k += max(len(together), 1)
    return [stretch for stretch in found if stretch]


def _moved_together(items: Sequence[Item]) -> list[Assign]:
    """The parallel moves that ``items`` start with."""
    found: list[Assign] = []
    for item in items:
        if not isinstance(item, Assign) or (found and item.group != found[0].group):
            break
        found.append(item)
    return found


def assigned_only(stretch: Sequence[Item], side: SimdIterations, uses: Mapping[int, int]) -> dict[int, Let]:
    """Values that are computed to be assigned only, by number: they are written as the right side of the assignment, as a
    source has them (``best[e] = d < nearest[e] ? c : best[e];``). Compilers tell the two apart: gcc 12 makes a masked store
    of a choice so written, and runs half as fast as with choices that are computed before they are stored."""
    written = {i.variable for i in stretch if isinstance(i, Assign)}
    moves = [i for i in stretch if isinstance(i, Assign) and side.varies(i.variable)]
    computed = {i.value.number: i for i in stretch if isinstance(i, Let) and differs_by_element(i.value, side)}
    found = {}
    for move in moves:
        let = computed.get(move.operand.number) if isinstance(move.operand, Val) else None
        # read at the end, what its arguments hold must still be there
        if let is not None and uses[let.value.number] == 1 and written.isdisjoint(set(let.args) - {move.variable}):
            found[let.value.number] = let
    return found


def live_across_stretches(items: Sequence[Item], side: SimdIterations) -> frozenset[int]:
    """The values of the elements that are read in another stretch than the one that computes them, or behind the loop."""
    home: dict[int, int] = {}
    read: list[tuple[int, int]] = []
    for number, stretch in enumerate(_all_stretches(items, side)):
        for item in stretch:
            if isinstance(item, Let | LetLinear | Load | Call) and differs_by_element(item.value, side):
                home[item.value.number] = number
            # the last element's is read behind the loop that computes it
            outside = isinstance(item, Assign) and not side.varies(item.variable)
            read += [(o.number, -1 if outside else number) for o in operands(item) if isinstance(o, Val)]
    left = {o.number for o in side.left if isinstance(o, Val)}
    return frozenset(v for v in home if v in left or any(home[v] != at for number, at in read if number == v))


def _all_stretches(items: Sequence[Item], side: SimdIterations) -> Iterator[list[Item]]:
    for stretch in stretches(items, side):
        yield stretch
        yield from chain.from_iterable(_all_stretches(i.body, side) for i in stretch if isinstance(i, LiftedLoop))
