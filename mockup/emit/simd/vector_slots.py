"""Loops whose iterations run side by side, an element a lane, in vector types; what remains runs one by one behind.

Consecutive elements that lie one after another in a field (AoSoA, SoA) are loaded and stored as vectors, others lane by
lane; what all iterations share is spread; variant branches become masks and selections. Order and rounding within an element
are the original's.
"""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.layoutalgebra.derive.structure import Axis
from layout_advise.mockup.emit.c_text import CTYPE
from layout_advise.mockup.emit.c_text import operation as scalar_operation
from layout_advise.mockup.emit.program import BodyWriter
from layout_advise.mockup.emit.simd import vector_text
from layout_advise.mockup.emit.simd.vector_accesses import VectorAccesses
from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Goto,
    Item,
    Label,
    Let,
    LetLinear,
    LiftedLoop,
    Load,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.remap.field_runs import RunPiece
from layout_advise.mockup.remap.sites import ElementPlace


class VectorSlotWriter(VectorAccesses):
    """Writes the loops in ``context.simd.abreast`` so; ``lane`` is the one that texts of varying operands are of."""

    # ---- the loop -------------------------------------------------------------------------------------------------

    def begun(self, loop: LiftedLoop, name: str, trip: str) -> str:
        """The loop over whole vectors of elements."""
        side = self.context.simd.abreast.get(loop.uid)
        if side is None:
            return super().begun(loop, name, trip)
        assert self.side is None
        slots, start = self.context.simd.slots, self.given.new(f"{name}0")
        kept = dict(self.cuts), dict(self.elements), dict(self.labels), set(self.sites_written)
        self.side, self.counter, self.copies = side, loop.counter, self.copies + 1
        borders = self._borders(loop)
        self.put(f"int64_t {start} = 0;")
        if borders:
            self.put(f"if ((({' | '.join(sorted(borders))}) & {slots - 1}) == 0) /* whole vectors from block borders on */")
        self.put(f"for (; {start} + {slots} <= {trip}; {start} += {slots}) {{ /* {slots} elements side by side */")
        self.put(f"    const int64_t {name} = {start};")
        self.depth += 1
        self._declare(loop.body)
        self.depth -= 1
        self.labels = self.labels | {n: f"{self.label(n)}_{self.copies}" for n in _labels(loop.body)}
        self.inner(loop.body)
        self.lane = slots - 1
        for left in side.left:
            self.put(f"    {BodyWriter.text(self, left)} = {self.text(left)};")
        self.put("}")
        self.lane, self.side, self.counter, self.lined = 0, None, None, frozenset()
        self.cuts, self.elements, self.labels, self.sites_written = kept
        return start

    def _declare(self, items: Sequence[Item]) -> None:
        """Declares the vectors that are assigned in one place and read in another."""
        assert self.side is not None
        for item in everything(items):
            if isinstance(item, Load):
                self.name_load(item, self.plan.places.get(item.uid))
        variables = {i.variable for i in everything(items) if isinstance(i, Assign) and self.varies(i.variable)}
        for variable in sorted(variables, key=lambda v: v.number):
            self.put(f"{vector_text.VECTOR[variable.ty]} {self.vector_name(variable)} = {{0}};")
        for number, value in sorted(self.side.types.items()):
            if number in self.scope.hoisted and number not in self.side.runs:
                self.put(f"{vector_text.VECTOR[value.ty]} {self.vector_name(value)} = {{0}};")

    def _borders(self, loop: LiftedLoop) -> set[str]:
        """Returns which of its accesses stay in one block for all lanes, and what has to be on a block border for that."""
        lined, borders = set(), set()
        for item in everything(loop.body):
            place = self.plan.places.get(item.uid)
            if place is None or len(place.pieces) != 1 or place.site.number not in self.sites_written:
                continue
            axes = [a for a in place.pieces[0].map.axes if a.part != "whole"]
            if axes and all(self._along(place, place.pieces[0], a, loop.counter) for a in axes):
                lined.add(item.uid)
                borders |= {self.digit(place.site.number, a.dim) for a in axes}
        self.lined = frozenset(lined)
        return borders

    def _along(self, place: ElementPlace, piece: RunPiece, axis: Axis, counter: Val) -> bool:
        moving = [t for t in place.terms if t.digits[axis.dim]]
        alone = len(moving) == 1 and moving[0].atom == counter and moving[0].digits[axis.dim] == 1 and not moving[0].shift
        whole_vectors = axis.block % self.context.simd.slots == 0 and axis.block & (axis.block - 1) == 0
        return alone and whole_vectors and not piece.inner and place.relayout.chosen is None

    # ---- control --------------------------------------------------------------------------------------------------

    def inner(self, items: Sequence[Item]) -> None:
        """A nested body: with masks of its own where only some lanes jump in it."""
        if self.side is None:
            super().inner(items)
            return
        self.depth += 1
        kept = self.on, self.waiting, self.position
        masked = [i.label for i in items if isinstance(i, Goto) and i.uid in self.side.masked]
        outer, name = self.on, ""
        if masked:
            self.masks += 1
            name = self.given.new(f"on{self.masks}")
            self.put(f"la_mask {name} = {outer or 'la_all_mask(1)'};")
            for label in sorted(set(masked)):
                self.put(f"la_mask {self._waiting_for(name, label)} = {{0}};")
        self.waiting, self.position = {}, {i.number: k for k, i in enumerate(items) if isinstance(i, Label)}
        self.around.append((name, outer))
        self.body(items)
        self.around.pop()
        self.on, self.waiting, self.position = kept
        self.depth -= 1

    def _waiting_for(self, name: str, label: int) -> str:
        """Returns the mask of the lanes of ``name`` that wait at a label."""
        return self.given.of(("waiting", name, label), f"{name}_to_{self.label(label)}")

    def jump(self, goto: Goto) -> None:
        """Some lanes jump: they wait at the label for the others."""
        name, _ = self.around[-1]
        going = "" if goto.condition is None else f" & {self.vector(goto.condition)}"
        target = self._waiting_for(name, goto.label)
        self.put(f"{target} |= {name}{going};")
        self.put(f"{name} &= ~{target};")
        self.on, self.waiting[goto.label] = name, target
        if all(self.position[other] >= self.position[goto.label] for other in self.waiting):
            self.put(f"if (!la_any({name})) goto {self.label(goto.label)};")

    def arrive(self, label: Label) -> None:
        """The lanes that wait here go on."""
        name, outer = self.around[-1]
        target = self.waiting.pop(label.number, None)
        if target is not None:
            self.put(f"{name} |= {target};")
            self.on = self.on if self.waiting else outer

    # ---- statements -----------------------------------------------------------------------------------------------

    def item(self, item: Item) -> None:
        """One item; what all lanes share as ever."""
        if self.side is None:
            super().item(item)
        elif isinstance(item, Goto) and item.uid in self.side.masked:
            self.jump(item)
        elif isinstance(item, Label):
            super().item(item)
            self.arrive(item)
        elif isinstance(item, Let | LetLinear) and not self.scope.uses.get(item.value.number):
            return
        elif isinstance(item, Let | LetLinear | Call) and self.varies(item.value):
            self.formula(item)
        elif isinstance(item, Let) and item.name in vector_text.FAULTING and self.on is not None:
            text = scalar_operation(item.name, item.value.ty, [self.text(a) for a in item.args], [a.ty for a in item.args])
            self.put(f"{self.declare(item.value)} = la_any({self.on}) ? {text} : 0;")
        else:
            super().item(item)

    def formula(self, item: Let | LetLinear | Call) -> None:
        """A varying value that is computed."""
        assert self.side is not None
        if item.value.number in self.side.runs:
            super().item(item)
            return
        ty = item.value.ty
        if isinstance(item, LetLinear):
            self.define(item.value, self.each(ty, self.by_lane(lambda: self.linear(item.linear, wide=True))))
            return
        types = [a.ty for a in item.args]
        text: str | None = None
        if isinstance(item, Let) and item.name == "select" and not self.varies(item.args[0]):
            text = f"{self.text(item.args[0])} ? {self.vector(item.args[1])} : {self.vector(item.args[2])}"
        elif isinstance(item, Let):
            text = vector_text.operation(item.name, ty, [self.vector(a) for a in item.args], types)
        if text is None:
            name, call = item.name if isinstance(item, Let) else "", isinstance(item, Call)

            def one() -> str:
                args = [self.text(a) for a in item.args]
                if isinstance(item, Call):
                    return f"la_libm_{item.function}({', '.join(args)})"
                return scalar_operation(name, ty, args, types)

            self.define(item.value, self.each(ty, self.by_lane(one, guarded=call or name in vector_text.FAULTING)))
            return
        self.define(item.value, text)

    def moves(self, group: Sequence[Assign]) -> None:
        """Parallel moves; under a mask the other lanes keep what they have."""
        if self.side is None:
            super().moves(group)
            return
        written = {a.variable for a in group}
        clash = any(isinstance(a.operand, Var) and a.operand in written - {a.variable} for a in group)
        later: list[str] = []
        for assign in group:
            variable, varying = assign.variable, self.varies(assign.variable)
            self.lane = self.context.simd.slots - 1 if variable.number in self.side.last else 0
            name = self.vector_name(variable) if varying else self.text(variable)
            value = self.vector(assign.operand) if varying else self.text(assign.operand)
            if varying and self.on is not None:
                value = vector_text.select(variable.ty, self.on, value, name)
            if clash:
                own = self.temporary("t")
                kind = vector_text.VECTOR[variable.ty] if varying else CTYPE[variable.ty]
                self.put(f"const {kind} {own} = {value};")
                value = own
                later.append(f"{name} = {value};")
            else:
                self.put(f"{name} = {value};")
        self.lane = 0
        for line in later:
            self.put(line)


def _labels(items: Sequence[Item]) -> list[int]:
    return [i.number for i in everything(items) if isinstance(i, Label)]


def vector_include(lanes: int, vector_bytes: int, compared: int) -> str:
    """Returns what a mock-up in lanes includes. Masks are as wide as what is ``compared`` (bytes), as far as a register
    holds all lanes of that: from floats to masks of 8 bytes and back k-means took 1.2 times as long in blocks of four, with
    AVX2."""
    mask = max(min(8, compared, vector_bytes // lanes), 8 // lanes, 1)
    return "\n".join(
        (
            f"#define LA_LANES {lanes}",
            f"#define LA_MASK_BYTES {mask}",
            f"#define LA_EACH(x) {', '.join(['x'] * lanes)}",
            f"#define LA_NUMBERS {', '.join(str(k) for k in range(lanes))}",
            '#include "lanes.h"',
        )
    )
