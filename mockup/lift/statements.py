"""Values of the graph as statements, or as operands of statements."""

from __future__ import annotations

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import MaskBit, Ty, mask
from layout_advise.mockup.ir.lifted import (
    Assign,
    Atomic,
    Call,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    Linear,
    LiveIn,
    Load,
    OpaqueCall,
    Operand,
    Prefetch,
    RuntimeCall,
    Store,
    Val,
    Var,
)  # fmt: skip
from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.ir.value_graph import parts
from layout_advise.mockup.lift.machine_state import UNWRITTEN, FrameEscapes
from layout_advise.mockup.lift.schedule import stored_value
from layout_advise.mockup.lift.translate import AtomicAt
from layout_advise.mockup.machine.call_abi import Clobbered, OpaqueArguments, register_name

_INVERSE = {"eq": "ne", "ne": "eq"}
_SWAPPED = {"slt": "sle", "sle": "slt", "ult": "ule", "ule": "ult"}


class Statements:
    """Writes values as statements, one after another; ``wanted`` are the labels that something jumps to."""

    def __init__(self) -> None:
        self.operands: dict[Node, Operand] = {}
        self.live_ins: list[LiveIn] = []
        self.numbers = 0
        self.groups = 0
        self.labels = 0
        self.wanted: set[int] = set()

    def number(self) -> int:
        """The next number of a value."""
        self.numbers += 1
        return self.numbers

    def operand(self, node: Node) -> Operand:
        """The operand that stands for ``node`` in statements; it is numbered when it is first used."""
        if node.op == "const":
            return Imm(node.ty, node.imm)
        if node in self.operands:
            return self.operands[node]
        if node.op == "undef" and isinstance(node.imm, Clobbered):
            return Imm(node.ty, 0)
        self._refuse(node)
        made: Operand
        if node.op in ("phi", "exitphi"):
            made = Var(self.number(), node.ty)
        else:
            made = Val(self.number(), node.ty)
            if node.op == "livein":
                place, half = node.imm if isinstance(node.imm, tuple) else (node.imm, None)
                self.live_ins.append(LiveIn(made, place, half))
        self.operands[node] = made
        return made

    def _refuse(self, node: Node) -> None:
        if node.op == "frame":
            raise FrameEscapes
        pc = node.origin.pc
        if node.op == "undef" and node.imm == UNWRITTEN:
            raise FrameEscapes  # read where the original reads it: it may be on a path that is never taken
        if node.op == "undef":
            raise NotLiftedError(pc, "value", f"uses {node.imm}")
        if node.op == "livein" and isinstance(node.imm, MaskBit):
            raise NotLiftedError(
                pc, f"k{node.imm.number}", "uses a mask register that was set before, which is not captured"
            )
        if node.op.startswith(("cond.", "flags.")) or node.ty == "flags":
            raise NotLiftedError(pc, node.op, "reads flags that different paths set differently, or that are undefined")
        if node.op.startswith("wide."):
            raise NotLiftedError(pc, node.op, "division of a 128-bit number")

    def _linear(self, node: Node) -> Linear:
        const, terms = parts(node)
        if node.op == "const":
            return Linear(const)
        return Linear(const, tuple((self.operand(a), c) for a, c in terms))

    def define(self, node: Node, items: list[Item]) -> None:
        """Appends the statements that compute ``node``, or have its effect."""
        origin = node.origin
        match node.op:
            case "load":
                access = node.imm
                self._load(node, items, access.operand, access.part)
            case "store":
                self._store(node, items)
            case "call":
                value = self.operand(node)
                assert isinstance(value, Val)
                items.append(Call(value, node.imm, tuple(self.operand(a) for a in node.args), origin))
            case "opaque":
                items.append(self._opaque(node))
            case "result":
                value = self.operand(node)
                assert isinstance(value, Val)
                items.append(Let(value, f"returned.{register_name(node.imm)}", (), origin))
            case "atomic":
                items.append(self._atomic(node))
            case "prefetch":
                items.append(Prefetch(self._linear(node.args[0]), node.imm, origin))
            case "runtime":
                args = tuple(Imm(a.ty, 0) if a.op == "undef" else self.operand(a) for a in node.args)
                items.append(RuntimeCall(node.imm.function, args, node.imm.places, origin))
            case "given":
                value = self.operand(node)
                assert isinstance(value, Val)
                items.append(Let(value, f"given.{node.imm}", (), origin))
            case "lin" if node.ty == "i64":
                value = self.operand(node)
                assert isinstance(value, Val)
                items.append(LetLinear(value, self._linear(node), origin))
            case "lin":
                self._narrow_linear(node, items)
            case _:
                self._refuse(node)
                value = self.operand(node)
                assert isinstance(value, Val)
                items.append(Let(value, node.op, tuple(self.operand(a) for a in node.args), origin))

    def _opaque(self, node: Node) -> OpaqueCall:
        handed: OpaqueArguments = node.imm
        operands = [Imm(a.ty, 0) if a.op == "undef" else self.operand(a) for a in node.args]
        stack = operands[1] if handed.stack else None
        args = tuple(zip(handed.places, operands[2 if handed.stack else 1 :], strict=True))
        return OpaqueCall(handed.name, operands[0], stack, args, node.origin)

    def _atomic(self, node: Node) -> Atomic:
        to: AtomicAt = node.imm
        args = tuple(self.operand(a) for a in node.args[1:])
        return Atomic(to.ty, to.operation, self._linear(node.args[0]), args, node.origin, to.operand)

    def _narrow_linear(self, node: Node, items: list[Item]) -> None:
        """32-bit sums, written out operation by operation."""
        const, terms = parts(node)
        total: Operand | None = Imm(node.ty, const & mask(node.ty)) if const or not terms else None
        for index, (atom, coef) in enumerate(sorted(terms, key=lambda t: t[1] < 0)):
            value: Operand = self.operand(atom)
            name = "add"
            if coef == -1 and total is not None:
                name = "sub"
            elif coef != 1:
                value = self.let("mul", node.ty, (value, Imm(node.ty, coef & mask(node.ty))), node, items)
            if total is None:
                total = value
            elif index == len(terms) - 1:
                made = self.operand(node)
                assert isinstance(made, Val)
                items.append(Let(made, name, (total, value), node.origin))
                return
            else:
                total = self.let(name, node.ty, (total, value), node, items)
        assert total is not None
        self.operands[node] = total

    def let(self, name: str, ty: Ty, args: tuple[Operand, ...], like: Node, items: list[Item]) -> Val:
        """A further value of the formula ``name``."""
        value = Val(self.number(), ty)
        items.append(Let(value, name, args, like.origin))
        return value

    def _load(self, node: Node, items: list[Item], operand: int, part: int) -> None:
        if len(node.args) == 1:
            value = self.operand(node)
            assert isinstance(value, Val)
            items.append(Load(value, self._linear(node.args[0]), node.origin, operand, part))
            return
        variable = Var(self.number(), node.ty)  # guarded: 0 where the access does not happen
        self.operands[node] = variable
        items.append(Assign(variable, Imm(node.ty, 0), self.group()))
        skip = self._skip_unless(node.args[1], items)
        value = Val(self.number(), node.ty)
        items.append(Load(value, self._linear(node.args[0]), node.origin, operand, part, guarded=True))
        items.append(Assign(variable, value, self.group()))
        items.append(Label(skip))

    def _store(self, node: Node, items: list[Item]) -> None:
        skip = self._skip_unless(node.args[2], items) if len(node.args) == 3 else None
        to = node.imm
        operand = self.operand(stored_value(node))
        address = self._linear(node.args[0])
        items.append(Store(operand.ty, address, operand, node.origin, to.operand, to.part))
        if skip is not None:
            items.append(Label(skip))

    def group(self) -> int:
        """The next number of assignments that happen at once."""
        self.groups += 1
        return self.groups

    def label(self) -> int:
        """A label that is no block's."""
        self.labels += 1
        return -self.labels

    def _skip_unless(self, condition: Node, items: list[Item]) -> int:
        label = self.label()
        items.append(Goto(self.want(label), self.opposite(condition, items)))
        return label

    def want(self, label: int) -> int:
        """``label``, to which something jumps."""
        self.wanted.add(label)
        return label

    def opposite(self, condition: Node, items: list[Item]) -> Operand:
        """The negation of ``condition``."""
        if condition.op == "not":
            return self.operand(condition.args[0]) if condition.args[0] in self.operands else self._invert(condition, items)
        if condition.op in _INVERSE:
            args = tuple(self.operand(a) for a in condition.args)
            return self.let(_INVERSE[condition.op], "i1", args, condition, items)
        if condition.op in _SWAPPED:
            args = tuple(self.operand(a) for a in reversed(condition.args))
            return self.let(_SWAPPED[condition.op], "i1", args, condition, items)
        return self._invert(condition, items)

    def _invert(self, condition: Node, items: list[Item]) -> Operand:
        return self.let("not", "i1", (self.operand(condition),), condition, items)
