"""Operands of iterations that run side by side: scalars that all share, and vectors with an iteration's value a slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from layout_advise.mockup.emit.program import BodyWriter
from layout_advise.mockup.emit.simd import vector_text
from layout_advise.mockup.emit.simd.iterations import SimdIterations
from layout_advise.mockup.emit.writer_state import WriterContext
from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import (
    Imm,
    Operand,
    Val,
    Var,
)


class VectorOperands(BodyWriter):
    """Names and definitions of what differs between the slots of a vector."""

    def __init__(self, context: WriterContext) -> None:
        super().__init__(context)
        self.side: SimdIterations | None = None  # of the loop that is being written so
        self.counter: Val | None = None
        self.lane = 0
        self.on: str | None = None  # the mask of the lanes that are where the text is; None: all
        self.masks = 0
        self.around: list[tuple[str, str | None]] = []  # of the bodies around: their mask, and that at their start
        self.waiting: dict[int, str] = {}  # label -> the mask of the lanes that wait there
        self.position: dict[int, int] = {}
        self.lined: frozenset[int] = frozenset()  # accesses in split dimensions whose lanes stay in one block
        self.within_block = False

    def varies(self, operand: Operand) -> bool:
        """Returns whether ``operand`` is a value of its own in each lane."""
        return self.side is not None and self.side.varies(operand)

    def text(self, operand: Operand) -> str:
        """An operand as a scalar: that of the current lane."""
        if self.side is None or not self.side.varies(operand) or isinstance(operand, Imm):
            return super().text(operand)
        step = self.side.runs.get(operand.number) if isinstance(operand, Val) else None
        if step is not None:
            name, ahead = super().text(operand), step * self.lane
            return f"({name} {'+' if ahead > 0 else '-'} {abs(ahead)})" if ahead else name
        return f"{self.vector_name(operand)}[{self.lane}]"

    def vector_name(self, operand: Val | Var) -> str:
        """The name of all lanes of a value; another than the scalar's where that is declared outside."""
        return (
            self.all_of(operand)
            if isinstance(operand, Var) or operand.number in self.scope.hoisted
            else super().text(operand)
        )

    def all_of(self, operand: Val | Var) -> str:
        """The name of the vector beside the scalar ``operand``."""
        return self.given.of(("all", operand), f"{BodyWriter.text(self, operand)}_all")

    def vector(self, operand: Operand) -> str:
        """An operand as a vector."""
        ty = operand.ty
        if self.side is None or not self.side.varies(operand) or isinstance(operand, Imm):
            return f"la_all_{'mask' if ty == 'i1' else ty}({super().text(operand)})"
        step = self.side.runs.get(operand.number) if isinstance(operand, Val) else None
        if step is not None:
            return f"la_run_{ty}({super().text(operand)}, {step if ty == 'i64' else step % (1 << 32)})"
        return self.vector_name(operand)

    def define(self, value: Val, text: str) -> None:
        """The definition of a varying value."""
        kind = "" if value.number in self.scope.hoisted else f"const {vector_text.VECTOR[value.ty]} "
        self.called(value)
        self.put(f"{kind}{self.vector_name(value)} = {text};")

    def each(self, ty: Ty, texts: Sequence[str]) -> str:
        """A vector of scalars, by lane."""
        return f"({vector_text.VECTOR[ty]}){{{', '.join(texts)}}}"

    def by_lane(self, text: Callable[[], str], *, guarded: bool = False) -> list[str]:
        """A text for each lane; ``guarded``: 0 in those that are not here."""
        found = []
        for lane in range(self.context.simd.slots):
            self.lane = lane
            one = text()
            found.append(f"{self.on}[{self.lane}] ? {one} : 0" if guarded and self.on is not None else one)
        self.lane = 0
        return found
