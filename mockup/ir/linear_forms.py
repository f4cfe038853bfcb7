"""Integers of a loop body as linear forms in the loop's counter: what tells copies of one computation apart.

``const + step * counter + sum(coef * atom)``, modulo 2**64 for addresses and i64 values, modulo 2**32 for i32 values. An
atom is any operand that is not linear itself: a live-in, a loaded index, a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.mockup.ir.effects import BITS
from layout_advise.mockup.ir.lifted import Imm, Item, Let, LetLinear, Linear, Operand, Val


@dataclass(frozen=True, slots=True)
class Form:
    """A linear form; ``const`` is unsigned, ``step`` and the coefficients signed, no atom twice."""

    bits: int
    const: int
    step: int
    atoms: tuple[tuple[Operand, int], ...] = ()

    def plus(self, other: Form, factor: int = 1) -> Form:
        """``self + factor * other``."""
        atoms = dict(self.atoms)
        for atom, coef in other.atoms:
            atoms[atom] = atoms.get(atom, 0) + factor * coef
        kept = ((a, signed(c, self.bits)) for a, c in atoms.items())
        return Form(
            self.bits,
            (self.const + factor * other.const) % (1 << self.bits),
            signed(self.step + factor * other.step, self.bits),
            tuple((a, c) for a, c in kept if c),
        )

    def number(self) -> int:
        """The constant part as a signed number."""
        return signed(self.const, self.bits)

    def linear(self, counter: Val, copies: int = 1) -> Linear:
        """Returns the form as a sum again; with ``counter`` counting what ``copies`` of one computation did in one step."""
        step = self.step // copies
        counted: tuple[tuple[Operand, int], ...] = ((counter, step),) if step else ()
        return Linear(self.const % (1 << 64), (*self.atoms, *counted))

    def parallel(self, other: Form) -> bool:
        """Returns whether the two differ by a constant only (where their atoms have the same values)."""
        return self.step == other.step and self.bits == other.bits and frozenset(self.atoms) == frozenset(other.atoms)


def signed(value: int, bits: int = 64) -> int:
    """Returns ``value`` modulo 2**bits as a signed number."""
    value %= 1 << bits
    return value - (1 << bits) if value >> (bits - 1) else value


def form_of(linear: Linear, counter: Val) -> Form:
    """An address or an i64 value."""
    terms = tuple((a, signed(c, 64)) for a, c in linear.terms)
    step = sum(c for a, c in terms if a == counter)
    return Form(64, linear.const % (1 << 64), step, tuple((a, c) for a, c in terms if a != counter))


def forms_of(items: Sequence[Item], counter: Val) -> dict[int, Form]:
    """The forms of the values defined in ``items``, by number: every i64 sum, and the i32 values that the counter moves."""
    found: dict[int, Form] = {}
    for item in items:
        if isinstance(item, LetLinear):
            found[item.value.number] = form_of(item.linear, counter)
        elif isinstance(item, Let) and item.value.ty == "i32":
            form = _narrow(item, found, counter)
            if form is not None:
                found[item.value.number] = form
    return {number: form for number, form in found.items() if form.bits == 64 or form.step}


def _narrow(item: Let, known: dict[int, Form], counter: Val) -> Form | None:
    if item.name == "lo32":
        return _low_half(item.args[0], known, counter)
    if item.name not in ("add", "sub", "neg", "mul", "shl"):
        return None
    args = [_as_form(a, known) for a in item.args]
    zero = Form(32, 0, 0)
    if item.name == "neg":
        return zero.plus(args[0], -1)
    if item.name in ("add", "sub"):
        return args[0].plus(args[1], 1 if item.name == "add" else -1)
    factor = item.args[1]
    if not isinstance(factor, Imm):
        return None
    if item.name == "shl":
        return zero.plus(args[0], 1 << factor.value) if factor.value < 32 else None
    return zero.plus(args[0], signed(factor.value, 32))


def _low_half(arg: Operand, known: dict[int, Form], counter: Val) -> Form | None:
    if arg == counter:
        return Form(32, 0, 1)
    wide = known.get(arg.number) if isinstance(arg, Val) else None
    if wide is None or wide.bits != 64 or wide.atoms:
        return None
    return Form(32, wide.const % (1 << 32), signed(wide.step, 32))


def _as_form(operand: Operand, known: dict[int, Form]) -> Form:
    if isinstance(operand, Imm):
        return Form(32, operand.value % (1 << 32), 0)
    if isinstance(operand, Val) and operand.number in known and BITS[operand.ty] == known[operand.number].bits == 32:
        return known[operand.number]
    return Form(32, 0, 0, ((operand, 1),))
