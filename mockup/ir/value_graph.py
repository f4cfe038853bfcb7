"""The value graph: hash-consed expressions over live-ins, loads, phis and loop counters.

Every value is a :class:`Node`. Integer additions, subtractions and multiplications by constants are kept in one canonical
form, ``lin``: ``const + sum(coef * atom)`` modulo 2**bits. Induction variables, trip counts and address decomposition are
then comparisons of coefficients. Other operations simplify where they are built (:mod:`layout_advise.mockup.ir.rules`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from layout_advise.mockup.ir.effects import BITS, Ty, mask
from layout_advise.mockup.ir.node import FAULTING, NOWHERE, PINNED, Node
from layout_advise.mockup.ir.rules.form import ValueForm
from layout_advise.mockup.ir.rules.table import simplified

LINEAR = ("i32", "i64")
"""Types whose sums are kept as linear forms."""


class Graph(ValueForm[Node]):
    """Makes nodes. ``block`` and ``origin`` tell which instruction is being translated."""

    def __init__(self) -> None:
        self._table: dict[tuple[Any, ...], Node] = {}
        self._count = 0
        self.block: int | None = None
        self.origin = NOWHERE
        self.bases: dict[tuple[int, int, int], int] = {}
        self.named: dict[tuple[Any, ...], Node] = {}

    def raw(self, op: str, ty: Ty, args: Iterable[Node] = (), imm: Any = None) -> Node:
        """The node for exactly this operation; an existing equal one unless the operation is pinned or may trap."""
        given = tuple(args)
        key = (op, ty, imm, *(a.uid for a in given))
        unique = op in PINNED
        if op in FAULTING:
            key = (*key, "in", self.block)
        if not unique and (found := self._table.get(key)) is not None:
            return found
        self._count += 1
        node = Node(self._count, op, ty, given, imm, None if op == "const" else self.block, self._count)
        node.origin = self.origin
        if not unique:
            self._table[key] = node
        return node

    def const(self, ty: Ty, value: int) -> Node:
        """The constant with bit pattern ``value`` modulo 2**bits."""
        return self.raw("const", ty, (), value & mask(ty))

    def build(self, op: str, ty: Ty, *args: Node) -> Node:
        """The simplified node for ``op(args)``; names as in :class:`layout_advise.mockup.ir.effects.Op`."""
        return simplified(self, op, ty, args)

    def ordered(self, op: str, a: Node, b: Node) -> tuple[Node, Node]:
        """The older operand first, so that both orders give one node."""
        return (a, b) if a.uid <= b.uid or op[1:] in ("min", "max", "mulhi") else (b, a)

    def own_rule(self, op: str, ty: Ty, args: tuple[Node, ...]) -> Node | None:
        """Rules of undefined values, linear forms, and addresses in the frame."""
        first = args[0] if args else None
        match op:
            case "add" | "sub" | "neg" | "mul" | "shl" if ty in LINEAR:
                return self._linear(op, *args)
            case "exact" | "upto":
                return self._quotient(*args)
            case "lo32" | "hi32" if first is not None and first.op == "lin":
                return self._half(op, first)
            case "bitcast" | "lo32" | "hi32" | "hi16" | "hi8" | "trunc" if first is not None and first.op == "undef":
                return self.raw("undef", ty, (), first.imm)
            case "pair" if all(a.op == "undef" for a in args):
                return self.raw("undef", ty, (), args[0].imm)
            case "eq" | "ne" if args[0] is not args[1] and args[0].ty in LINEAR:
                difference = self.sub(*args)
                return self.const("i1", int((difference.imm == 0) == (op == "eq"))) if difference.op == "const" else None
            case "and" if args[0].op == "frame" and args[1].op == "const" and signed(args[1].imm, ty) < 0:
                return self.aligned(args[0], args[1].imm)
        return None

    def _linear(self, op: str, a: Node, b: Node | None = None) -> Node | None:
        """A sum, or a product with a constant."""
        if b is None:
            return self.scale(a, -1)
        if op in ("add", "sub"):
            return self.add(a, b) if op == "add" else self.sub(a, b)
        if b.op != "const":
            return None
        return self.scale(a, b.imm) if op == "mul" else self.scale(a, 1 << b.imm if b.imm < BITS[a.ty] else 0)

    def _half(self, op: str, a: Node) -> Node | None:
        """The low half of a linear form; the high half where all of it is a multiple of 2**32."""
        const, terms = parts(a)
        if op == "lo32":
            return self.lin("i32", const, ((self.lo32(x), c) for x, c in terms))
        if any(c & mask("i32") for c in (const, *(c for _, c in terms))):
            return None
        return self.lin("i32", const >> 32, ((self.lo32(x), c >> 32) for x, c in terms))

    def _quotient(self, a: Node, divisor: Node) -> Node | None:
        """``exact(a, step)``, a quotient known to have no remainder, is linear as soon as every coefficient divides;
        ``upto`` is a quotient that may have one."""
        const, terms = parts(a)
        if any(c % divisor.imm for c in (const, *(c for _, c in terms))):
            return None
        return self.lin(a.ty, const // divisor.imm, ((x, c // divisor.imm) for x, c in terms))

    def lin(self, ty: Ty, const: int, terms: Iterable[tuple[Node, int]]) -> Node:
        """``const + sum(coef * atom)``, flattened: an atom that is itself linear is expanded."""
        total, sums = self._collect(const, terms)
        modulus = mask(ty)
        atoms = sorted(((a, c & modulus) for a, c in sums.items() if c & modulus), key=lambda item: item[0].uid)
        total &= modulus
        if not atoms:
            return self.const(ty, total)
        if len(atoms) == 1 and atoms[0][1] == 1:
            atom = atoms[0][0]
            if atom.op == "frame":
                return self.frame(atom.imm[0], signed(total, "i64"))
            if total == 0:
                return atom
        return self.raw("lin", ty, (a for a, _ in atoms), (total, tuple(c for _, c in atoms)))

    def _collect(self, const: int, terms: Iterable[tuple[Node, int]]) -> tuple[int, dict[Node, int]]:
        sums: dict[Node, int] = {}
        for node, factor in terms:
            if node.op == "const":
                const += factor * int(node.imm)
            elif node.op == "lin":
                base, coefs = node.imm
                const += factor * base
                for atom, coef in zip(node.args, coefs, strict=True):
                    sums[atom] = sums.get(atom, 0) + factor * coef
            elif node.op == "frame":  # one atom per stack base, so that differences of frame addresses are constants
                const += factor * node.imm[1]
                atom = self.frame(node.imm[0], 0)
                sums[atom] = sums.get(atom, 0) + factor
            else:
                sums[node] = sums.get(node, 0) + factor
        return const, sums

    def add(self, a: Node, b: Node) -> Node:
        """``a + b`` (i32 or i64)."""
        return self.lin(a.ty, 0, ((a, 1), (b, 1)))

    def sub(self, a: Node, b: Node) -> Node:
        """``a - b`` (i32 or i64)."""
        return self.lin(a.ty, 0, ((a, 1), (b, -1)))

    def scale(self, a: Node, factor: int) -> Node:
        """``a * factor`` (i32 or i64)."""
        return self.lin(a.ty, 0, ((a, factor),))

    def frame(self, base: int, offset: int) -> Node:
        """The address ``offset`` bytes from stack base ``base`` (0: rsp at the entry; others: an aligned rsp)."""
        key = ("frame", base, offset)
        if (found := self._table.get(key)) is None:
            found = self.raw("frame", "i64", (), (base, offset))
            self._table[key] = found
        return found

    def aligned(self, frame: Node, alignment: int) -> Node:
        """``frame & alignment``: the start of a new stack area, somewhere below ``frame``."""
        key = (frame.imm[0], frame.imm[1], alignment)
        return self.frame(self.bases.setdefault(key, len(self.bases) + 1), 0)


def signed(value: int, ty: Ty) -> int:
    """The bit pattern ``value`` read as two's complement."""
    bits = BITS[ty]
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def parts(node: Node) -> tuple[int, list[tuple[Node, int]]]:
    """``node`` as (const, [(atom, signed coefficient)]); an atom is its own linear form."""
    if node.op == "const":
        return signed(node.imm, node.ty), []
    if node.op == "lin":
        const, coefs = node.imm
        return signed(const, node.ty), [(a, signed(c, node.ty)) for a, c in zip(node.args, coefs, strict=True)]
    return 0, [(node, 1)]
