"""Runs a ``Lifted`` statement by statement: slow, direct, and independent of the C emitter."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from layout_advise.errors import LayoutAdviseError
from layout_advise.mockup.ir.effects import BITS, Gpr, Lane, Ty
from layout_advise.mockup.ir.evaluate import evaluate, signed
from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Linear,
    Load,
    Operand,
    Store,
    Val,
    Var,
    WayEnd,
)  # fmt: skip


class Memory(Protocol):
    """The memory that the statements read and write; addresses are run-time addresses."""

    def read(self, address: int, size: int) -> bytes:
        """``size`` bytes at ``address``."""
        ...

    def write(self, address: int, data: bytes) -> None:
        """Store ``data`` at ``address``."""
        ...


_LIBM = ctypes.CDLL("libm.so.6")

Access = tuple[int, int, int, int]
"""(pc, operand, part, address) of one executed load or store."""


class EndedWayError(Exception):
    """The lifted code came to the end of a way."""


@dataclass(slots=True)
class _Machine:
    memory: Memory
    budget: int
    watch: Callable[[Access], None] | None
    values: dict[tuple[type, int], int] = field(default_factory=dict)

    def value(self, operand: Operand) -> int:
        if isinstance(operand, Imm):
            return operand.value
        return self.values[type(operand), operand.number]

    def set(self, target: Val | Var, value: int) -> None:
        self.values[type(target), target.number] = value & ((1 << BITS[target.ty]) - 1)

    def linear(self, linear: Linear) -> int:
        return (linear.const + sum(coef * self.value(atom) for atom, coef in linear.terms)) % 2**64

    def run(self, items: tuple[Item, ...]) -> int | None:
        """Execute; the label of a jump that leaves ``items``, else None."""
        labels = {item.number: i for i, item in enumerate(items) if isinstance(item, Label)}
        at = 0
        while at < len(items):
            item = items[at]
            self.budget -= 1
            if self.budget < 0:
                raise LayoutAdviseError("the lifted code was stopped", "it ran for more statements than allowed")
            if isinstance(item, Assign):
                at = self._assign(items, at)
                continue
            leaving = self._loop(item) if isinstance(item, LiftedLoop) else None
            if isinstance(item, Goto) and (item.condition is None or self.value(item.condition)):
                leaving = item.label
            if leaving is not None:
                if leaving not in labels:
                    return leaving
                at = labels[leaving]
                continue
            self._simple(item)
            at += 1
        return None

    def _assign(self, items: tuple[Item, ...], at: int) -> int:
        group: list[Assign] = []
        while at < len(items) and isinstance(item := items[at], Assign) and (not group or item.group == group[0].group):
            group.append(item)
            at += 1
        for assign, value in [(a, self.value(a.operand)) for a in group]:
            self.set(assign.variable, value)
        return at

    def _loop(self, loop: LiftedLoop) -> int | None:
        trip = None if loop.trip is None else signed(self.value(loop.trip), 64)
        count = 0
        while trip is None or count < trip:
            self.set(loop.counter, count)
            self.budget -= 1
            if self.budget < 0:
                raise LayoutAdviseError("the lifted code was stopped", "it ran for more statements than allowed")
            leaving = self.run(loop.body)
            if leaving is not None:
                return leaving
            count += 1
        return None

    def _simple(self, item: Item) -> None:
        match item:
            case Let(value, name, args, _):
                types = tuple(a.ty for a in args)
                self.set(value, evaluate(name, value.ty, tuple(self.value(a) for a in args), types))
            case LetLinear(value, linear, _):
                self.set(value, self.linear(linear))
            case Load(value, linear, origin, operand, part):
                address = self.linear(linear)
                self._tell((origin.pc, operand, part, address))
                self.set(value, int.from_bytes(self.memory.read(address, BITS[value.ty] // 8), "little"))
            case Store(ty, linear, stored, origin, operand, part):
                address = self.linear(linear)
                self._tell((origin.pc, operand, part, address))
                self.memory.write(address, self.value(stored).to_bytes(BITS[ty] // 8, "little"))
            case WayEnd():
                raise EndedWayError
            case Call(value, function, args, _):
                self.set(value, _call(function, value.ty, [self.value(a) for a in args]))

    def _tell(self, access: Access) -> None:
        if self.watch is not None:
            self.watch(access)


def _call(name: str, ty: Ty, args: list[int]) -> int:
    kind: type[ctypes.c_double] | type[ctypes.c_float] = ctypes.c_double if ty == "f64" else ctypes.c_float
    size = BITS[ty] // 8
    function = getattr(_LIBM, name)
    function.restype, function.argtypes = kind, [kind] * len(args)
    result = kind(function(*(kind.from_buffer_copy(a.to_bytes(size, "little")).value for a in args)))
    return int.from_bytes(bytes(result), "little")


def run_lifted(
    lifted: Lifted,
    locations: dict[Gpr | Lane, int],
    memory: Memory,
    *,
    budget: int = 10_000_000,
    watch: Callable[[Access], None] | None = None,
) -> dict[Gpr | Lane, int]:
    """Run ``lifted`` from the given locations (64-bit patterns; absent ones are 0) and return its live-outs.

    A live-out of which only one half is known has 0 in the other. Raises LayoutAdviseError after ``budget`` statements,
    and EndedWayError at the end of a way.
    """
    machine = _Machine(memory, budget, watch)
    for live_in in lifted.live_ins:
        bits = locations.get(live_in.location, 0) >> (32 if live_in.half == 1 else 0)
        machine.set(live_in.value, bits)
    left = machine.run(lifted.body)
    assert left is None, f"a jump to label {left}, which is nowhere"
    found: dict[Gpr | Lane, int] = {}
    for out in lifted.live_outs:
        found[out.location] = found.get(out.location, 0) | machine.value(out.operand) << (32 if out.half == 1 else 0)
    return found
