"""One value of the value graph (:mod:`layout_advise.mockup.ir.value_graph`), and what its operation implies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import Origin

NOWHERE = Origin(0)
"""Origin of values that no single instruction computed (trip counts, exit values)."""

PINNED = frozenset(
    {
        "load",
        "store",
        "phi",
        "call",
        "opaque",
        "result",
        "atomic",
        "prefetch",
        "runtime",
        "given",
        "counter",
        "exitphi",
        "livein",
    }
    | {"undef", "frame"}
)
"""Nodes that are never merged with an equal one: each stands for an event or a place, not for a formula."""

SIDE_EFFECTS = frozenset({"store", "opaque", "atomic", "prefetch", "runtime"})
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
    """``imm`` of a load node: the operand of its LoadEffect."""

    operand: int
    part: int
    guarded: bool = False


@dataclass(frozen=True, slots=True)
class StoreTo:
    """``imm`` of a store node (args: address, value, and the guard where there is one)."""

    ty: Ty
    operand: int
    part: int
