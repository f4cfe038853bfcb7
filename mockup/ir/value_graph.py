"""The value graph: hash-consed expressions over live-ins, loads, phis and loop counters.

Every value is a :class:`Node`. Integer additions, subtractions and multiplications by constants are kept in one canonical
form, ``lin``: ``const + sum(coef * atom)`` modulo 2**bits. Induction variables, trip counts and address decomposition are
then comparisons of coefficients. Other operations simplify where they are built (:mod:`layout_advise.mockup.ir.simplify`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from layout_advise.mockup.ir.effects import BITS, Ty
from layout_advise.mockup.ir.lifted import Origin

NOWHERE = Origin(0)
"""Origin of values that no single instruction computed (trip counts, exit values)."""

PINNED = frozenset(
    {"load", "store", "phi", "call", "opaque", "result", "atomic", "runtime", "given", "counter", "exitphi", "livein"}
    | {"undef", "frame"}
)
"""Nodes that are never merged with an equal one: each stands for an event or a place, not for a formula."""

LASTING = frozenset({"store", "opaque", "atomic", "runtime"})
"""Events that happen whether or not anybody reads what they give: stores, and calls that are more than a formula."""

FAULTING = frozenset({"udiv", "urem", "sdiv", "srem"})
"""Operations that may trap: they stay in the block that computed them, behind its guards."""


class Node:
    """One value. ``imm`` is the constant, ``(const, coefs)`` of a ``lin``, or what identifies a pinned node.

    ``block`` is the block that computed the value first (None: known at the entry), ``seq`` the place in program order.
    ``args`` of a phi are set when its predecessors are known; nothing else is ever changed.
    """

    __slots__ = ("args", "block", "imm", "op", "origin", "seq", "ty", "uid")

    def __init__(self, uid: int, op: str, ty: Ty, args: tuple[Node, ...], imm: Any, block: int | None, seq: int) -> None:
        self.uid = uid
        self.op = op
        self.ty: Ty = ty
        self.args = args
        self.imm = imm
        self.block = block
        self.seq = seq
        self.origin = NOWHERE

    def __repr__(self) -> str:
        inside = ", ".join(f"%{a.uid}" for a in self.args)
        return f"%{self.uid}:{self.ty}={self.op}({inside}){'' if self.imm is None else f'[{self.imm}]'}"


@dataclass(frozen=True, slots=True)
class GraphAccess:
    """What a load node remembers of its LoadEffect."""

    operand: int
    part: int
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class StoreTo:
    """``imm`` of a store node (args: address, value, and the guard where there is one)."""

    ty: Ty
    operand: int
    part: int


class Graph:
    """Makes nodes. ``at`` and ``origin`` tell which instruction is being translated."""

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


def mask(ty: Ty) -> int:
    """All ones of ``ty``."""
    return (1 << BITS[ty]) - 1


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
