"""Structured statements from placed values and control flow: loops, forward jumps, variables for phis."""

from __future__ import annotations

import networkx as nx

from layout_advise.mockup.ir.dead_code import without_idle_labels, without_unused
from layout_advise.mockup.ir.effects import Lane
from layout_advise.mockup.ir.lifted import (
    Assign,
    Goto,
    Imm,
    Item,
    Label,
    LiftedLoop,
    LiveOut,
    Operand,
    Val,
    Var,
    WayEnd,
)  # fmt: skip
from layout_advise.mockup.ir.loop_body import used
from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.lift.flow import Cond, Go, Switch, Unreachable
from layout_advise.mockup.lift.loops.loop_exits import CountedLoop
from layout_advise.mockup.lift.schedule import Schedule, operands
from layout_advise.mockup.lift.ssa import SsaProgram
from layout_advise.mockup.lift.statements import Statements
from layout_advise.tracer.code.flow_graph import reverse_postorder


class StatementWriter:
    """Writes the statements of one hotspot."""

    def __init__(self, program: SsaProgram, loops: dict[int, CountedLoop]) -> None:
        self.program, self.loops, self.flow = program, loops, program.flow
        self.placement = Schedule(program, loops)
        self.live = self.placement.live
        self.make = Statements()
        # a pad that leaves several loops at once is written behind the inner one, as all that leave loops are
        after = {c.pad for c in loops.values() if c.pad is not None and self.flow.loop_of[c.pad] == c.loop.parent}
        self.pads = {pad for loop in self.flow.loops.values() for _, pad in loop.exits} - after

    def body(self) -> tuple[Item, ...]:
        """The statements of the whole hotspot."""
        items = without_idle_labels(self._region(None), self.make.wanted)
        outs = {out.operand for out in self.live_outs()}
        while True:
            shorter = without_unused(items, outs.union(used(items)))
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
                found.append(LiveOut(self.make.operand(low.args[0] if low.op == "bitcast" else low), place, 0))
                if node.op == "pair" and (high := node.args[1]).op != "undef":
                    found.append(LiveOut(self.make.operand(high.args[0] if high.op == "bitcast" else high), place, 1))
                continue
            found.append(LiveOut(self.make.operand(inner), place))
        return tuple(found)

    def _region(self, head: int | None) -> list[Item]:
        """The statements of a loop body (``head`` None: of the hotspot), inner loops as one statement each."""
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
        for block in self.flow.graph.order:
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
        order = list(reverse_postorder(graph, start))
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
        counter = self.make.operand(counted.counter)
        assert isinstance(counter, Val)
        trip = self.program.trips.get(head)
        trip_operand = None if trip is None else self.make.operand(trip)
        body = tuple(self._region(head))
        items: list[Item] = [LiftedLoop(counter, trip_operand, body, self.flow.blocks[head].start)]
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
            items.append(Goto(self.make.want(target), condition))

    def _contents(self, block: int) -> list[Item]:
        items: list[Item] = []
        nodes, first = self.placement.nodes[block], self._carried_sources(block)
        for node in nodes:
            if node in first:
                self.make.define(node, items)
        self._carry(block, items)
        for node in nodes:
            if node not in first:
                self.make.define(node, items)
        successors = self.flow.blocks[block].successors
        if len(successors) == 1:
            self._moves(block, successors[0], items)
        return items

    def _carried_sources(self, pad: int) -> set[Node]:
        """The values that ``pad`` itself computes of what it then hands on (closed forms after an inner loop)."""
        own, found = set(self.placement.nodes[pad]), set[Node]()
        left = [node.args[0] for node in self.program.exits.get(pad, ())]
        while left:
            node = left.pop()
            if node in own and node not in found:
                found.add(node)
                left.extend(operands(node))
        return found

    def _carry(self, pad: int, items: list[Item]) -> None:
        """Values that leave a loop through ``pad``. Behind a counted loop that tests at the bottom only those that a loop
        variable still holds are left to copy: the others were assigned at the end of each iteration."""
        bottom = any(c.pad == pad and c.bottom for c in self.loops.values())
        group = self.make.group()
        for node in self.program.exits.get(pad, ()):
            source = self._same_phi(node) if bottom else node.args[0]
            if node in self.live and source is not None:
                self._assign(node, source, group, items)

    def _assign(self, node: Node, value: Node, group: int, items: list[Item]) -> None:
        variable = self.make.operand(node)
        assert isinstance(variable, Var)
        # a path on which the value was never written: whatever it holds there is not read (else the original read garbage)
        operand = Imm(node.ty, 0) if value.op == "undef" else self.make.operand(value)
        if operand != variable:
            items.append(Assign(variable, operand, group))

    def _moves(self, block: int, target: int, items: list[Item]) -> None:
        group = self.make.group()
        index = self.flow.graph.predecessors[target].index(block)
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
                latch = self.flow.graph.predecessors[head].index(counted.loop.latch)
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
            case Unreachable(reason, rejoins):
                items.append(WayEnd(self.flow.blocks[block].start, reason, rejoins))
        return items

    def _branch(self, condition: Node, taken: int, other: int, following: int | None, items: list[Item]) -> None:
        if taken in self.pads or (other == following and taken not in self.pads):
            if taken in self.pads:
                self._leave_if(condition, taken, items, opposite=False)
            else:
                self._goto(taken, None, items, self.make.operand(condition))
            self._onward(other, following, items)
        elif other in self.pads:
            self._leave_if(condition, other, items, opposite=True)
            self._onward(taken, following, items)
        elif taken == following:
            self._goto(other, None, items, self.make.opposite(condition, items))
        else:
            self._goto(taken, None, items, self.make.operand(condition))
            self._goto(other, following, items)

    def _onward(self, target: int, following: int | None, items: list[Item]) -> None:
        if target in self.pads:
            items.extend(self._leave(target))
        else:
            self._goto(target, following, items)

    def _leave_if(self, condition: Node, pad: int, items: list[Item], *, opposite: bool) -> None:
        leaving = self._leave(pad)
        if len(leaving) == 1 and isinstance(leaving[0], Goto) and leaving[0].condition is None:
            operand = self.make.opposite(condition, items) if opposite else self.make.operand(condition)
            items.append(Goto(leaving[0].label, operand))
            return
        label = self.make.label()
        operand = self.make.operand(condition) if opposite else self.make.opposite(condition, items)
        items.append(Goto(self.make.want(label), operand))
        items.extend(leaving)
        items.append(Label(label))

    def _switch(self, value: Node, keys: tuple[int, ...], targets: tuple[int, ...], items: list[Item]) -> None:
        address = self.make.operand(value)
        for key, target in list(zip(keys, targets, strict=True))[:-1]:
            hit = self.make.let("eq", "i1", (address, Imm("i64", key)), value, items)
            if target in self.pads:
                label = self.make.label()
                missed = self.make.let("not", "i1", (hit,), value, items)
                items.append(Goto(self.make.want(label), missed))
                items.extend(self._leave(target))
                items.append(Label(label))
            else:
                self._goto(target, None, items, hit)
        self._onward(targets[-1], None, items)
