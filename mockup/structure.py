"""From placed values and control flow to statements: real loops, forward jumps, variables for what differs by path."""

from __future__ import annotations

import networkx as nx

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.effects import BITS, Gpr, Lane, Ty
from layout_advise.mockup.exits import Counted
from layout_advise.mockup.flow import Cond, Go, Switch
from layout_advise.mockup.lifted import (
    Assign,
    Call,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    LetLinear,
    Linear,
    LiveIn,
    LiveOut,
    Load,
    Loop,
    OpaqueCall,
    Operand,
    Store,
    Val,
    Var,
)  # fmt: skip
from layout_advise.mockup.opaque import Clobbered, Handed, register_name
from layout_advise.mockup.place import Placement, stored_value
from layout_advise.mockup.ssa import Program
from layout_advise.mockup.translate import UNWRITTEN, FrameEscapes
from layout_advise.mockup.values import Node, parts

_INVERSE = {"eq": "ne", "ne": "eq"}
_SWAPPED = {"slt": "sle", "sle": "slt", "ult": "ule", "ule": "ult"}


class Writer:
    """Writes the statements of one hotspot."""

    def __init__(self, program: Program, loops: dict[int, Counted]) -> None:
        self.program, self.loops, self.flow = program, loops, program.flow
        self.placement = Placement(program, loops)
        self.live = self.placement.live
        self.operands: dict[Node, Operand] = {}
        self.live_ins: list[LiveIn] = []
        self.numbers = 0
        self.groups = 0
        self.labels = 0
        self.main_pads = {c.pad for c in loops.values() if c.pad is not None}
        self.pads = {pad for loop in self.flow.loops.values() for _, pad in loop.exits} - self.main_pads
        self.wanted: set[int] = set()

    def body(self) -> tuple[Item, ...]:
        """The statements of the whole hotspot."""
        items = _without_idle_labels(self._region(None), self.wanted)
        outs = {out.operand for out in self.live_outs()}
        while True:
            used: set[Operand] = set(outs)
            _used(items, used)
            shorter = _without_unused(items, used)
            if shorter == items:
                return items
            items = shorter

    def live_outs(self) -> tuple[LiveOut, ...]:
        """The result registers; floats in lanes keep their type."""
        found: list[LiveOut] = []
        for place, node in self.program.outs.items():
            inner = node.args[0] if node.op == "bitcast" else node
            if node.op in ("zext", "pair") and isinstance(place, Lane):
                low = node.args[0]
                found.append(LiveOut(self._operand(low.args[0] if low.op == "bitcast" else low), place, 0))
                if node.op == "pair" and (high := node.args[1]).op != "undef":
                    found.append(LiveOut(self._operand(high.args[0] if high.op == "bitcast" else high), place, 1))
                continue
            found.append(LiveOut(self._operand(inner), place))
        return tuple(found)

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _operand(self, node: Node) -> Operand:
        if node.op == "const":
            return Imm(node.ty, node.imm)
        if node in self.operands:
            return self.operands[node]
        if node.op == "undef" and isinstance(node.imm, Clobbered):
            return Imm(node.ty, 0)
        self._refuse(node)
        made: Operand
        if node.op in ("phi", "exitphi"):
            made = Var(self._number(), node.ty)
        else:
            made = Val(self._number(), node.ty)
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
        if node.op.startswith(("cond.", "flags.")) or node.ty == "flags":
            raise NotLiftedError(pc, node.op, "reads flags that different paths set differently, or that are undefined")
        if node.op.startswith("wide."):
            raise NotLiftedError(pc, node.op, "division of a 128-bit number")

    def _linear(self, node: Node) -> Linear:
        const, terms = parts(node)
        if node.op == "const":
            return Linear(const)
        return Linear(const, tuple((self._operand(a), c) for a, c in terms))

    def _define(self, node: Node, items: list[Item]) -> None:
        origin = node.origin
        match node.op:
            case "load":
                access = node.imm
                self._load(node, items, access.operand, access.part)
            case "store":
                self._store(node, items)
            case "call":
                value = self._operand(node)
                assert isinstance(value, Val)
                items.append(Call(value, node.imm, tuple(self._operand(a) for a in node.args), origin))
            case "opaque":
                items.append(self._opaque(node))
            case "result":
                value = self._operand(node)
                assert isinstance(value, Val)
                items.append(Let(value, f"returned.{register_name(node.imm)}", (), origin))
            case "lin" if node.ty == "i64":
                value = self._operand(node)
                assert isinstance(value, Val)
                items.append(LetLinear(value, self._linear(node), origin))
            case "lin":
                self._narrow_linear(node, items)
            case _:
                self._refuse(node)
                value = self._operand(node)
                assert isinstance(value, Val)
                items.append(Let(value, node.op, tuple(self._operand(a) for a in node.args), origin))

    def _opaque(self, node: Node) -> OpaqueCall:
        handed: Handed = node.imm
        operands = [Imm(a.ty, 0) if a.op == "undef" else self._operand(a) for a in node.args]
        stack = operands[1] if handed.stack else None
        args = tuple(zip(handed.places, operands[2 if handed.stack else 1 :], strict=True))
        return OpaqueCall(handed.name, operands[0], stack, args, node.origin)

    def _narrow_linear(self, node: Node, items: list[Item]) -> None:
        """32-bit sums, written out operation by operation."""
        const, terms = parts(node)
        total: Operand | None = Imm(node.ty, const % (1 << BITS[node.ty])) if const or not terms else None
        for index, (atom, coef) in enumerate(sorted(terms, key=lambda t: t[1] < 0)):
            value: Operand = self._operand(atom)
            name = "add"
            if coef == -1 and total is not None:
                name = "sub"
            elif coef != 1:
                value = self._let("mul", node.ty, (value, Imm(node.ty, coef % (1 << BITS[node.ty]))), node, items)
            if total is None:
                total = value
            elif index == len(terms) - 1:
                made = self._operand(node)
                assert isinstance(made, Val)
                items.append(Let(made, name, (total, value), node.origin))
                return
            else:
                total = self._let(name, node.ty, (total, value), node, items)
        assert total is not None
        self.operands[node] = total

    def _let(self, name: str, ty: Ty, args: tuple[Operand, ...], like: Node, items: list[Item]) -> Val:
        value = Val(self._number(), ty)
        items.append(Let(value, name, args, like.origin))
        return value

    def _load(self, node: Node, items: list[Item], operand: int, part: int) -> None:
        if len(node.args) == 1:
            value = self._operand(node)
            assert isinstance(value, Val)
            items.append(Load(value, self._linear(node.args[0]), node.origin, operand, part))
            return
        variable = Var(self._number(), node.ty)  # guarded: 0 where the access does not happen
        self.operands[node] = variable
        items.append(Assign(variable, Imm(node.ty, 0), self._group()))
        skip = self._skip_unless(node.args[1], items)
        value = Val(self._number(), node.ty)
        items.append(Load(value, self._linear(node.args[0]), node.origin, operand, part))
        items.append(Assign(variable, value, self._group()))
        items.append(Label(skip))

    def _store(self, node: Node, items: list[Item]) -> None:
        skip = self._skip_unless(node.args[2], items) if len(node.args) == 3 else None
        to = node.imm
        operand = self._operand(stored_value(node))
        address = self._linear(node.args[0])
        items.append(Store(operand.ty, address, operand, node.origin, to.operand, to.part))
        if skip is not None:
            items.append(Label(skip))

    def _group(self) -> int:
        self.groups += 1
        return self.groups

    def _label(self) -> int:
        self.labels += 1
        return -self.labels

    def _skip_unless(self, condition: Node, items: list[Item]) -> int:
        label = self._label()
        items.append(Goto(self._want(label), self._opposite(condition, items)))
        return label

    def _want(self, label: int) -> int:
        self.wanted.add(label)
        return label

    def _opposite(self, condition: Node, items: list[Item]) -> Operand:
        if condition.op == "not":
            return self._operand(condition.args[0]) if condition.args[0] in self.operands else self._invert(condition, items)
        if condition.op in _INVERSE:
            args = tuple(self._operand(a) for a in condition.args)
            return self._let(_INVERSE[condition.op], "i1", args, condition, items)
        if condition.op in _SWAPPED:
            args = tuple(self._operand(a) for a in reversed(condition.args))
            return self._let(_SWAPPED[condition.op], "i1", args, condition, items)
        return self._invert(condition, items)

    def _invert(self, condition: Node, items: list[Item]) -> Operand:
        return self._let("not", "i1", (self._operand(condition),), condition, items)

    def _region(self, head: int | None) -> list[Item]:
        """The statements of a loop body (or of all: ``head`` None), inner loops as one statement each."""
        members = self._members(head)
        order = self._order(head, members)
        items: list[Item] = []
        for place, member in enumerate(order):
            following = order[place + 1] if place + 1 < len(order) else None
            items.append(Label(member))
            if member in self.loops and member != head:
                items.extend(self._loop(member, following))
            else:
                items.extend(self._block(member, following))
        return items

    def _members(self, head: int | None) -> list[int]:
        found: list[int] = []
        for block in self.flow.order:
            if block in self.pads:
                continue
            inner = self.flow.loop_of[block]
            if inner == head or (inner == block and self.flow.loops[block].parent == head):
                found.append(block)
        return found

    def _order(self, head: int | None, members: list[int]) -> list[int]:
        inside = set(members)
        graph: nx.DiGraph[int] = nx.DiGraph()
        for member in members:
            inner = member in self.loops and member != head
            following = [p for _, p in self.flow.loops[member].exits] if inner else self.flow.blocks[member].successors
            graph.add_node(member)
            for target in reversed(list(following)):
                at = self._past_pad(target)
                if at in inside and at != head:
                    graph.add_edge(member, at)
        start = self.flow.entry if head is None else head
        order = list(reversed(list(nx.dfs_postorder_nodes(graph, start))))
        if head is not None:
            latch = self.flow.loops[head].latch
            order.remove(latch)
            order.append(latch)
        elif self.flow.exit in inside:  # returning is reaching the end: nothing may stand behind it (a block that hangs did)
            order.remove(self.flow.exit)
            order.append(self.flow.exit)
        return order

    def _past_pad(self, target: int) -> int:
        while target in self.pads:
            target = self.flow.blocks[target].successors[0]
        return target

    def _loop(self, head: int, following: int | None) -> list[Item]:
        counted = self.loops[head]
        counter = self._operand(counted.counter)
        assert isinstance(counter, Val)
        trip = self.program.trips.get(head)
        trip_operand = None if trip is None else self._operand(trip)
        body = tuple(self._region(head))
        items: list[Item] = [Loop(counter, trip_operand, body, self.flow.blocks[head].start)]
        if counted.pad is not None:
            if self.flow.loop_of[counted.pad] == counted.loop.parent:
                self._goto(counted.pad, following, items)
            else:
                items.extend(self._leave(counted.pad))
        return items

    def _leave(self, pad: int) -> list[Item]:
        """The statements of a pad, and the jump to where it leads."""
        items = self._contents(pad)
        target = self.flow.blocks[pad].successors[0]
        if target in self.pads:
            return items + self._leave(target)
        self._goto(target, None, items)
        return items

    def _goto(self, target: int, following: int | None, items: list[Item], condition: Operand | None = None) -> None:
        if target != following:
            items.append(Goto(self._want(target), condition))

    def _contents(self, block: int) -> list[Item]:
        items: list[Item] = []
        self._carry(block, items)
        for node in self.placement.nodes[block]:
            self._define(node, items)
        successors = self.flow.blocks[block].successors
        if len(successors) == 1:
            self._moves(block, successors[0], items)
        return items

    def _carry(self, pad: int, items: list[Item]) -> None:
        """Values that leave a loop through ``pad``. Behind a counted loop that tests at the bottom only those that a loop
        variable still holds are left to copy: the others were assigned at the end of each iteration."""
        bottom = any(c.pad == pad and c.bottom for c in self.loops.values())
        group = self._group()
        for node in self.program.exits.get(pad, ()):
            source = self._same_phi(node) if bottom else node.args[0]
            if node in self.live and source is not None:
                self._assign(node, source, group, items)

    def _assign(self, node: Node, value: Node, group: int, items: list[Item]) -> None:
        variable = self._operand(node)
        assert isinstance(variable, Var)
        # a path on which the value was never written: whatever it holds there is not read (else the original read garbage)
        operand = Imm(node.ty, 0) if value.op == "undef" else self._operand(value)
        if operand != variable:
            items.append(Assign(variable, operand, group))

    def _moves(self, block: int, target: int, items: list[Item]) -> None:
        group = self._group()
        index = self.flow.preds[target].index(block)
        for phi in self.program.phis.get(target, ()):
            if phi in self.live:
                self._assign(phi, phi.args[index], group, items)
        if target in self.loops and block == self.flow.loops[target].latch and self.loops[target].bottom:
            pad = self.loops[target].pad
            for node in self.program.exits.get(pad if pad is not None else -1, ()):
                if node in self.live and self._same_phi(node) is None:
                    self._assign(node, node.args[0], group, items)

    def _same_phi(self, node: Node) -> Node | None:
        """The loop variable that holds ``node.args[0]`` once the loop is done (it is what the latch assigns)."""
        for head, counted in self.loops.items():
            if counted.bottom and counted.pad == node.block:
                latch = self.flow.preds[head].index(counted.loop.latch)
                for phi in self.program.phis.get(head, ()):
                    if phi in self.live and phi.args[latch] is node.args[0]:
                        return phi
        return None

    def _block(self, block: int, following: int | None) -> list[Item]:
        items = self._contents(block)
        head = self.flow.loop_of[block]
        counted = self.loops[head] if head is not None else None
        if counted is not None and block == counted.test:
            loop = counted.loop
            stays = [s for s in self.flow.blocks[block].successors if s in loop.blocks]
            if stays[0] != loop.head:
                self._goto(stays[0], following, items)
            return items
        match self.flow.blocks[block].term:
            case Go(target):
                if target is not None and not (counted is not None and target == counted.loop.head):
                    self._goto(target, following, items)
            case Cond(_, taken, other):
                self._branch(self.program.conds[block], taken, other, following, items)
            case Switch(_, _, keys, targets):
                self._switch(self.program.switches[block], keys, targets, items)
            case _:
                items.append(Loop(Val(self._number(), "i64"), None, (), self.flow.blocks[block].start))
        return items

    def _branch(self, condition: Node, taken: int, other: int, following: int | None, items: list[Item]) -> None:
        if taken in self.pads or (other == following and taken not in self.pads):
            if taken in self.pads:
                self._leave_if(condition, taken, items, opposite=False)
            else:
                self._goto(taken, None, items, self._operand(condition))
            self._onward(other, following, items)
        elif other in self.pads:
            self._leave_if(condition, other, items, opposite=True)
            self._onward(taken, following, items)
        elif taken == following:
            self._goto(other, None, items, self._opposite(condition, items))
        else:
            self._goto(taken, None, items, self._operand(condition))
            self._goto(other, following, items)

    def _onward(self, target: int, following: int | None, items: list[Item]) -> None:
        if target in self.pads:
            items.extend(self._leave(target))
        else:
            self._goto(target, following, items)

    def _leave_if(self, condition: Node, pad: int, items: list[Item], *, opposite: bool) -> None:
        leaving = self._leave(pad)
        if len(leaving) == 1 and isinstance(leaving[0], Goto) and leaving[0].condition is None:
            operand = self._opposite(condition, items) if opposite else self._operand(condition)
            items.append(Goto(leaving[0].label, operand))
            return
        label = self._label()
        operand = self._operand(condition) if opposite else self._opposite(condition, items)
        items.append(Goto(self._want(label), operand))
        items.extend(leaving)
        items.append(Label(label))

    def _switch(self, value: Node, keys: tuple[int, ...], targets: tuple[int, ...], items: list[Item]) -> None:
        address = self._operand(value)
        for key, target in list(zip(keys, targets, strict=True))[:-1]:
            hit = self._let("eq", "i1", (address, Imm("i64", key)), value, items)
            if target in self.pads:
                label = self._label()
                missed = self._let("not", "i1", (hit,), value, items)
                items.append(Goto(self._want(label), missed))
                items.extend(self._leave(target))
                items.append(Label(label))
            else:
                self._goto(target, None, items, hit)
        self._onward(targets[-1], None, items)


def _without_idle_labels(items: list[Item] | tuple[Item, ...], wanted: set[int]) -> tuple[Item, ...]:
    found: list[Item] = []
    for item in items:
        if isinstance(item, Label) and item.number not in wanted:
            continue
        if isinstance(item, Loop):
            item = Loop(item.counter, item.trip, _without_idle_labels(item.body, wanted), item.head)
        found.append(item)
    return tuple(found)


def _used(items: tuple[Item, ...], used: set[Operand]) -> None:
    """Every operand that some statement reads."""
    for item in items:
        match item:
            case Let(_, _, args, _) | Call(_, _, args, _):
                used.update(args)
            case OpaqueCall(_, target, stack, handed, _):
                used.update((target, *(operand for _, operand in handed)))
                if stack is not None:
                    used.add(stack)
            case LetLinear(_, linear, _) | Load(_, linear, _, _, _):
                used.update(atom for atom, _ in linear.terms)
            case Store(_, linear, stored, _, _, _):
                used.update((stored, *(atom for atom, _ in linear.terms)))
            case Assign(_, operand, _):
                used.add(operand)
            case Goto(_, condition) if condition is not None:
                used.add(condition)
            case Loop(_, trip, body, _):
                if trip is not None:
                    used.add(trip)
                _used(body, used)


def _without_unused(items: tuple[Item, ...], used: set[Operand]) -> tuple[Item, ...]:
    """Formulas that only an inverted condition or a stripped bitcast needed go."""
    found: list[Item] = []
    for item in items:
        if isinstance(item, Let | LetLinear) and item.value not in used:
            continue
        if isinstance(item, Loop):
            item = Loop(item.counter, item.trip, _without_unused(item.body, used), item.head)
        found.append(item)
    return tuple(found)


RESULTS: dict[str, tuple[Gpr | Lane, ...]] = {
    "any": (Gpr(0), Lane(0, 0)), "int": (Gpr(0),), "float": (Lane(0, 0),), "none": (),
}  # fmt: skip
"""Registers that may hold the result (SysV ABI), by kind of return type."""
