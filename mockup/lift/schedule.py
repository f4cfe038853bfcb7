"""Code motion: the block in which each value is computed, and the order inside it.

Loads, stores and calls stay where they were. A pure value may move between the first block where its operands are known
and the last one that dominates its uses (Click, Global code motion, PLDI 1995): it takes the one with the fewest loops
around it, the latest of equals that is behind no call where the machine code computes it before. Within a block the order
is that of the machine code, as far as operands allow.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import pairwise

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.node import FAULTING, PINNED, SIDE_EFFECTS, Node
from layout_advise.mockup.lift.loops.loop_exits import CountedLoop
from layout_advise.mockup.lift.ssa import SsaProgram


class Schedule:
    """``nodes[block]``: what is computed there, in order."""

    def __init__(self, program: SsaProgram, loops: dict[int, CountedLoop]) -> None:
        self.program, self.loops, self.flow = program, loops, program.flow
        self.live = program.live()
        self.uses: dict[Node, list[int]] = {}
        self.users: dict[Node, list[Node]] = {}
        self.at: dict[Node, int] = {}
        self.known: dict[Node, int] = {}
        self.nodes: dict[int, list[Node]] = {block: [] for block in self.flow.graph.order}
        self.calling = {b for b in self.flow.graph.order if any(e.op in ("call", "opaque") for e in program.events[b])}
        self._place()
        for block in self.flow.graph.order:
            self.nodes[block] = self._ordered(block)

    def _roots(self) -> Iterator[tuple[int, Node]]:
        """(block, value): each value that must be at hand in the block."""
        flow, program = self.flow, self.program
        for block in flow.graph.order:
            for event in program.events[block]:
                if event.op in SIDE_EFFECTS or event in self.live:
                    yield from ((block, a) for a in operands(event))
            if block in program.conds:
                yield block, program.conds[block]
            if block in program.switches:
                yield block, program.switches[block]
            for phi in program.phis.get(block, ()):
                if phi in self.live:
                    yield from zip(flow.graph.predecessors[block], phi.args, strict=True)
            for carried in program.exits.get(block, ()):
                if carried in self.live:
                    yield self.leaves_from(block), carried.args[0]
        for head, trip in program.trips.items():
            yield flow.loops[head].preheader, trip
        yield from ((flow.exit, node) for node in program.outs.values())

    def leaves_from(self, pad: int) -> int:
        """The block whose end assigns the values that leave a loop through ``pad``."""
        for counted in self.loops.values():
            if counted.pad == pad:
                return counted.loop.latch if counted.bottom else pad
        return self.flow.graph.predecessors[pad][0]

    def _place(self) -> None:
        for block, node in self._roots():
            self.uses.setdefault(node, []).append(block)
        for node in self._users_first():
            if node.op in PINNED:
                continue
            late = None
            for block in self.uses[node]:
                late = block if late is None else self.flow.graph.common_dominator(late, block)
            assert late is not None
            chosen = self._choose(node, late)
            self.at[node] = chosen
            self.nodes[chosen].append(node)
            for argument in operands(node):
                self.uses.setdefault(argument, []).append(chosen)

    def _users_first(self) -> list[Node]:
        """Pure live nodes, each before its operands."""
        order: list[Node] = []
        state: dict[Node, bool] = {}
        for root in list(self.uses):
            stack = [root]
            while stack:
                node = stack[-1]
                if state.get(node):
                    stack.pop()
                elif node.op in PINNED or node.op == "const":
                    state[node] = True
                elif node in state:
                    state[node] = True
                    order.append(node)
                else:
                    state[node] = False
                    stack.extend(a for a in operands(node) if not state.get(a, False))
        order.reverse()
        return order

    def _choose(self, node: Node, late: int) -> int:
        if node.op in FAULTING and node.block is not None:
            return node.block if self.flow.graph.dominates(node.block, late) else late
        early = self.earliest(node)
        best = at = late
        while at != early:
            up = self.flow.graph.idom[at]
            if up is None:
                raise NotLiftedError(node.origin.pc, node.op, "its operands are not known on every way to where it is used")
            at = up
            if self._depth(at) < self._depth(best):
                best = at
        home = node.block
        if home is not None and self._is_beyond_a_call(home, best) and self.flow.graph.dominates(early, home):
            return home
        return best

    def _is_beyond_a_call(self, home: int, block: int) -> bool:
        """Returns whether a value that the machine code computes in ``home`` would come behind a call in ``block``: no
        compiler moves anything across one, and what a source computes before it runs beside it (``options``: 1.07)."""
        at: int | None = block
        called = False
        while at is not None and at != home:
            at = self.flow.graph.idom[at]
            called = called or (at is not None and at in self.calling)
        return at == home and called and self._depth(home) <= self._depth(block)

    def _depth(self, block: int) -> int:
        head = self.flow.loop_of[block]
        return 0 if head is None else self.flow.loops[head].depth

    def earliest(self, node: Node) -> int:
        """The first block where the operands of ``node`` are known."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self.known:
                stack.pop()
            elif top.op in PINNED or not top.args:
                self.known[top] = self.flow.entry if top.block is None or top.op == "undef" else top.block
            elif missing := [a for a in top.args if a not in self.known]:
                stack.extend(missing)
            else:
                self.known[top] = max((self.known[a] for a in top.args), key=lambda b: self.flow.graph.level[b])
        return self.known[node]

    def _ordered(self, block: int) -> list[Node]:
        events = [e for e in self.program.events[block] if e.op in SIDE_EFFECTS or e in self.live]
        nodes = [*self.nodes[block], *events]
        here = set(nodes)
        waiting: dict[Node, int] = {}
        followers: dict[Node, list[Node]] = {}
        for node in nodes:
            before = {a for a in operands(node) if a in here}
            waiting[node] = len(before)
            for a in before:
                followers.setdefault(a, []).append(node)
        for first, second in pairwise(events):
            followers.setdefault(first, []).append(second)
            waiting[second] += 1
        rank = {node: i for i, node in enumerate(nodes)}

        def key(node: Node) -> tuple[int, int, int, int]:
            return (
                node.origin.pc,
                node.origin.pack or 0,
                node.origin.lane,
                node.uid if node.op not in PINNED else rank[node],
            )

        ready = [(key(n), n.uid, n) for n in nodes if waiting[n] == 0]
        heapq.heapify(ready)
        result: list[Node] = []
        while ready:
            node = heapq.heappop(ready)[2]
            result.append(node)
            for following in followers.get(node, ()):
                waiting[following] -= 1
                if waiting[following] == 0:
                    heapq.heappush(ready, (key(following), following.uid, following))
        assert len(result) == len(nodes), "cyclic values in one block"
        return result


def operands(node: Node) -> tuple[Node, ...]:
    """The nodes that must exist as operands for ``node``; a linear address is written out in the access itself."""
    if node.op not in ("load", "store", "atomic", "prefetch"):
        return node.args
    address = node.args[0].args if node.args[0].op == "lin" else (node.args[0],)
    return (*address, *node.args[1:]) if node.op != "store" else (*address, stored_value(node), *node.args[2:])


def stored_value(node: Node) -> Node:
    """The value that a store writes, whatever the type of its bits."""
    value = node.args[1]
    return value.args[0] if value.op == "bitcast" else value
