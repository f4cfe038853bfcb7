"""Loop facts, and the values that leave a loop: closed forms at the last iteration, else variables."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from layout_advise.mockup.ir.node import PINNED, SIDE_EFFECTS, Node
from layout_advise.mockup.ir.value_graph import Graph
from layout_advise.mockup.lift.flow import FlowLoop
from layout_advise.mockup.lift.ssa import SsaProgram, rebuilt


@dataclass(slots=True)
class CountedLoop:
    """A loop and its main exit; its trip count is ``SsaProgram.trips[head]`` (absent where not counted). ``test`` is the
    block whose condition the count replaces, ``pad`` where that exit leads; ``bottom``: the test ends the body (else it
    begins it)."""

    loop: FlowLoop
    counter: Node
    test: int | None = None
    pad: int | None = None
    bottom: bool = False


def varies(loop: FlowLoop, node: Node, memo: dict[Node, bool]) -> bool:
    """Returns whether ``node`` depends on anything that happens inside ``loop``."""
    stack = [node]
    while stack:
        top = stack[-1]
        if top in memo:
            stack.pop()
        elif top.op in PINNED or not top.args:
            memo[top] = top.op in PINNED and top.block in loop.blocks
        elif missing := [a for a in top.args if a not in memo]:
            stack.extend(missing)
        else:
            memo[top] = any(memo[a] for a in top.args)
    return memo[node]


def carry_out(program: SsaProgram, counted: CountedLoop) -> None:
    """Replaces every use behind the loop of a value computed inside (in place)."""
    _Exits(program, counted).run()


class _Exits:
    """Uses behind a loop of what was computed inside: closed forms at the last iteration, else variables (``exitphi``)
    that are assigned on the way out."""

    def __init__(self, program: SsaProgram, counted: CountedLoop) -> None:
        self.program, self.counted, self.loop, self.flow = program, counted, counted.loop, program.flow
        self.memo: dict[Node, bool] = {}
        self.values: dict[tuple[Node, int], Node] = {}
        self.anchors: dict[int, int | None] = {}

    def run(self) -> None:
        program, inside = self.program, self.loop.blocks
        live = program.live()
        for block in self.flow.graph.order:
            if block in inside:
                continue
            if self._anchor(block) is not None:
                self._values_in(block, live)
            for phi in list(program.phis.get(block, ())):
                before = self.flow.graph.predecessors[block]
                if phi in live:
                    phi.args = tuple(self.outside(a, b) for a, b in zip(phi.args, before, strict=True))
        for head, trip in program.trips.items():
            preheader = self.flow.loops[head].preheader
            if head != self.loop.head and preheader not in inside:
                program.trips[head] = self.outside(trip, preheader)
        program.outs = {place: self.outside(node, self.flow.exit) for place, node in program.outs.items()}
        for pad, nodes in program.exits.items():
            source = self.flow.graph.predecessors[pad][0]
            if source not in inside:
                for node in nodes:
                    node.args = (self.outside(node.args[0], source),)

    def _values_in(self, block: int, live: Container[Node]) -> None:
        """Replaces the uses in a block behind the loop."""
        program = self.program
        for node in program.events[block]:
            if node.op in SIDE_EFFECTS or node in live:
                node.args = tuple(self.outside(a, block) for a in node.args)
        if block in program.conds:
            program.conds[block] = self.outside(program.conds[block], block)
        if block in program.switches:
            program.switches[block] = self.outside(program.switches[block], block)

    def varies(self, node: Node) -> bool:
        return varies(self.loop, node, self.memo)

    def outside(self, node: Node, block: int) -> Node:
        """``node`` as seen from ``block`` outside the loop."""
        anchor = self._anchor(block)
        return node if anchor is None or not self.varies(node) else self._value(node, anchor)

    def _anchor(self, block: int) -> int | None:
        """The block above ``block`` that is the first outside on every path from the loop."""
        passed: list[int] = []
        at: int | None = block
        while at is not None and at not in self.anchors:
            passed.append(at)
            above = self.flow.graph.idom[at]
            if above in self.loop.blocks:
                self.anchors[at] = at
            else:
                at = above
        found = None if at is None else self.anchors[at]
        self.anchors |= dict.fromkeys(passed, found)
        return found

    def _value(self, node: Node, anchor: int) -> Node:
        def decide(x: Node) -> Node | None:
            if not self.varies(x):
                return x
            if x.op in PINNED or x.block in self.loop.blocks:
                return self._leaf(x, anchor)
            return None

        return substitute(self.program.graph, node, decide)

    def _leaf(self, node: Node, anchor: int) -> Node:
        if (node, anchor) in self.values:
            return self.values[node, anchor]
        g = self.program.graph
        before = self.flow.graph.predecessors[anchor]
        if len(before) == 1:
            value = self._at_pad(node, anchor)
        else:
            args = tuple(self.outside(node, b) for b in before)
            g.block, g.origin = anchor, node.origin
            value = args[0]
            if any(a is not value for a in args):
                value = g.raw("phi", node.ty, args)
                self.program.phis.setdefault(anchor, []).append(value)
        self.values[node, anchor] = value
        return value

    def _at_pad(self, node: Node, pad: int) -> Node:
        counted = self.counted
        self.program.graph.block = pad
        if pad == counted.pad:
            trip = self.program.trips[self.loop.head]
            last = self.program.graph.lin("i64", -1 if counted.bottom else 0, ((trip, 1),))
            if not counted.bottom or self._only_counter(node):
                return self._closed(node, last, pad)
        elif node.op == "lin" and node is not counted.counter and self._only_counter(node):
            return self._closed(node, self._variable(counted.counter, pad), pad)
        return self._variable(node, pad)

    def _only_counter(self, node: Node) -> bool:
        seen: set[Node] = set()
        work = [node]
        while work:
            x = work.pop()
            if x in seen or not self.varies(x):
                continue
            seen.add(x)
            if x.op in PINNED and x is not self.counted.counter:
                return False
            work.extend(x.args if x.op not in PINNED else ())
        return len(seen) < 12

    def _closed(self, node: Node, counter: Node, pad: int) -> Node:
        def decide(x: Node) -> Node | None:
            if not self.varies(x):
                return x
            if x is self.counted.counter:
                return counter
            return self._variable(x, pad) if x.op in PINNED else None

        return substitute(self.program.graph, node, decide)

    def _variable(self, node: Node, pad: int) -> Node:
        g = self.program.graph
        for known in self.program.exits.get(pad, ()):
            if known.args[0] is node:
                return known
        typed = node.op == "bitcast" or (node.op in ("pair", "zext", "sext") and node.ty == "i64")  # keep the variable so
        if typed or needs_exit(node, pad):
            args = tuple(self._variable(a, pad) if self.varies(a) else a for a in node.args)
            g.block, g.origin = pad, node.origin
            return rebuilt_at(g, node, args, pad)
        g.block, g.origin = pad, node.origin
        made = g.raw("exitphi", node.ty, (node,))
        self.program.exits.setdefault(pad, []).append(made)
        return made


def needs_exit(node: Node, pad: int) -> bool:
    """Returns whether ``node`` is made of a value that another loop has left through ``pad``. Where the pad leads out of
    both loops at once, such a value is not there before it: only what it is made of can be carried to the pad."""
    seen: set[Node] = set()
    work = [node]
    while work:
        x = work.pop()
        if x.op == "exitphi" and x.block == pad:
            return True
        if x not in seen and x.op not in PINNED:
            seen.add(x)
            work.extend(x.args)
    return False


def rebuilt_at(g: Graph, node: Node, args: tuple[Node, ...], block: int) -> Node:
    """:func:`rebuilt`, as computed in ``block``."""
    result = rebuilt(g, node, args)
    if result.op not in PINNED and result.op != "const" and result not in args:
        result.block = block
    return result


def substitute(g: Graph, root: Node, decide: Callable[[Node], Node | None]) -> Node:
    """``root`` rebuilt with ``decide(x)`` for every x where that is a node; where it is None the operands are visited."""
    memo: dict[Node, Node] = {}
    stack = [root]
    block = g.block
    while stack:
        node = stack[-1]
        if node in memo:
            stack.pop()
            continue
        chosen = decide(node)
        if chosen is not None:
            memo[node] = chosen
        elif missing := [a for a in node.args if a not in memo]:
            stack.extend(missing)
        else:
            memo[node] = rebuilt(g, node, tuple(memo[a] for a in node.args))
            g.block = block
    return memo[root]
