"""Loops in closed form: a counter from 0, induction variables linear in it, trip counts, values after the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from layout_advise.mockup.flow import Cond, Flow, FlowLoop
from layout_advise.mockup.simplify import build, is_const, lo32, negate
from layout_advise.mockup.ssa import Program, rebuilt, rewrite
from layout_advise.mockup.values import NOWHERE, PINNED, Graph, Node, parts, signed


@dataclass(slots=True)
class Counted:
    """What is known of one loop (its trip count is ``Program.trips[head]``, absent where not counted); ``test`` is the block whose condition the count replaces,
    ``pad`` where that exit leads; ``bottom``: the test ends the body (else it begins it)."""

    loop: FlowLoop
    counter: Node
    test: int | None = None
    pad: int | None = None
    bottom: bool = False


def close_loops(program: Program) -> dict[int, Counted]:
    """Bring every loop, inner before outer, into closed form (in place); what is known of each, by head."""
    found: dict[int, Counted] = {}
    for head, loop in program.flow.loops.items():
        g = program.graph
        g.block, g.origin = head, NOWHERE
        counted = Counted(loop, g.raw("counter", "i64", (), head))
        found[head] = counted
        _close_phis(program, counted)
        _count(program, counted)
        _widen(program, counted)
        _close_phis(program, counted)
        _Exits(program, counted).run()
        rewrite(program, {})
    return found


def varies(loop: FlowLoop, node: Node, memo: dict[Node, bool]) -> bool:
    """Whether ``node`` depends on anything that happens inside ``loop``."""
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


def _close_phis(program: Program, counted: Counted) -> None:
    """Replace every phi whose step does not vary by ``first + step * counter``."""
    g, loop = program.graph, counted.loop
    latch = program.flow.preds[loop.head].index(loop.latch)
    while True:
        memo: dict[Node, bool] = {}
        replace: dict[Node, Node] = {}
        for phi in program.phis.get(loop.head, ()):
            if phi.ty not in ("i64", "i32"):
                continue
            const, terms = parts(phi.args[latch])
            rest = [(a, c) for a, c in terms if a is not phi]
            if (phi, 1) not in terms or any(varies(loop, a, memo) for a, _ in rest):
                continue
            first = phi.args[1 - latch]
            g.block, g.origin = loop.head, phi.origin
            index = counted.counter if phi.ty == "i64" else lo32(g, counted.counter)
            steps = [(index, const), *((build(g, "mul", phi.ty, (index, a)), c) for a, c in rest)]
            replace[phi] = g.lin(phi.ty, 0, [(first, 1), *steps])
        if not replace:
            return
        rewrite(program, replace)


def _count(program: Program, counted: Counted) -> None:
    """Find the exit that bounds the loop, and after how many iterations it is taken."""
    flow, loop = program.flow, counted.loop
    live = program.live()
    for block, pad in loop.exits:
        if not isinstance(flow.blocks[block].term, Cond) or flow.loop_of[block] != loop.head:
            continue
        bottom = flow.preds[loop.latch] == [block]
        top = block == loop.head and not any(e.op == "store" or e in live for e in program.events[block])
        if not (bottom or top):
            continue
        term = flow.blocks[block].term
        assert isinstance(term, Cond)
        stay = program.conds[block] if term.other == pad else negate(program.graph, program.conds[block])
        trip = _trip(program, counted, stay, bottom)
        if trip is not None:
            counted.test, counted.pad, counted.bottom = block, pad, bottom
            del program.conds[block]
            program.stays[loop.head] = stay
            program.trips[loop.head] = trip
            return


def _along(counted: Counted, node: Node) -> tuple[Node | None, int]:
    """``node`` as (invariant part, coefficient of the counter); the part is None where it is not linear in the counter."""
    memo: dict[Node, bool] = {}
    coefficient = 0
    for atom, coef in parts(node)[1]:
        if atom is counted.counter or (atom.op == "lo32" and atom.args[0] is counted.counter):
            coefficient += coef
        elif varies(counted.loop, atom, memo):
            return None, 0
    return node, coefficient


def _without(g: Graph, counted: Counted, node: Node, coefficient: int) -> Node:
    index = counted.counter if node.ty == "i64" else lo32(g, counted.counter)
    return g.lin(node.ty, 0, ((node, 1), (index, -coefficient)))


def _trip(program: Program, counted: Counted, stay: Node, bottom: bool) -> Node | None:
    """Number of whole iterations, where ``stay`` is the condition to go on after (bottom) or before (top) one."""
    if stay.op not in ("ne", "slt", "sle", "ult", "ule") or stay.args[0].ty not in ("i32", "i64"):
        return None
    g = program.graph
    g.block, g.origin = counted.loop.preheader, NOWHERE
    sides = [_along(counted, side) for side in stay.args]
    if any(side is None for side, _ in sides):
        return None
    step = sides[0][1] - sides[1][1]
    a, b = (_without(g, counted, side, coef) for side, coef in zip(stay.args, (s[1] for s in sides), strict=True))
    if step == 0:
        return None
    if stay.op == "ne":
        distance = g.sub(b, a) if step > 0 else g.sub(a, b)
        return _after_equal(g, distance, abs(step), bottom)
    if step < 0:
        return None
    return _after_order(g, stay.op, a, b, step, bottom)


def _after_equal(g: Graph, distance: Node, step: int, bottom: bool) -> Node:
    """The test fails when ``step * k == distance`` (exactly divisible, else the program would run round the integers)."""
    if distance.ty == "i32":
        taken = build(g, "zext", "i64", (_divided(g, distance, step),))
        return g.add(taken, g.const("i64", 1)) if bottom else taken
    return _divided(g, g.add(distance, g.const("i64", step if bottom else 0)), step)


def _divided(g: Graph, node: Node, step: int) -> Node:
    """``node / step`` where it is known to divide."""
    const, terms = parts(node)
    if all(x % step == 0 for x in (const, *(c for _, c in terms))):
        return g.lin(node.ty, const // step, ((x, c // step) for x, c in terms))
    if step & (step - 1) == 0:
        return build(g, "lshr", node.ty, (node, g.const(node.ty, step.bit_length() - 1)))
    return build(g, "udiv", node.ty, (node, g.const(node.ty, step)))


def _after_order(g: Graph, name: str, a: Node, b: Node, step: int, bottom: bool) -> Node:
    """The test ``a + step * k < b`` (or <=); at least one iteration where the test stands at the bottom."""
    unsigned = name[0] == "u"
    if a.ty == "i32":  # in 64 bits the difference cannot overflow
        widen = "zext" if unsigned else "sext"
        a, b = (build(g, widen, "i64", (x,)) for x in (a, b))
        unsigned = False
    extra = 1 if name[2] == "e" else 0
    least = 1 if bottom else 0
    room = g.lin("i64", extra + step - 1 + (step if bottom else 0), ((b, 1), (a, -1)))
    if step == 1:
        count = room
    elif step & (step - 1) == 0:
        count = build(g, "ashr", "i64", (room, g.const("i64", step.bit_length() - 1)))
    else:
        count = build(g, "sdiv", "i64", (room, g.const("i64", step)))
    if unsigned and not is_const(a, 0):
        enters = build(g, name, "i1", (a, b))
        return build(g, "select", "i64", (enters, count, g.const("i64", least)))
    return build(g, "smax", "i64", (count, g.const("i64", least)))


def _facts(flow: Flow, program: Program, block: int) -> list[Node]:
    """Conditions that hold whenever ``block`` is reached: branches that every path to it has taken."""
    found: list[Node] = []
    at: int | None = block
    while at is not None:
        up = flow.idom[at]
        if up is not None and flow.preds[at] == [up]:
            term = flow.blocks[up].term
            if isinstance(term, Cond) and up in program.conds:
                node = program.conds[up]
                found.append(node if term.taken == at else negate(program.graph, node))
        at = up
    return found


def _widen(program: Program, counted: Counted) -> None:
    """``sext(a + k)`` and ``zext(a + k)`` of 32-bit counters become ``sext(a) + k`` where they are seen not to wrap."""
    g, loop = program.graph, counted.loop
    if counted.test is None:
        return
    index = lo32(g, counted.counter)
    replace: dict[Node, Node] = {}
    facts = _facts(program.flow, program, loop.preheader)
    for node in program.live():
        if node.op not in ("sext", "zext") or node.ty != "i64" or node.args[0].ty != "i32":
            continue
        inner = node.args[0]
        base, coefficient = _along(counted, inner)
        if base is None or coefficient not in (1, -1) or index not in (a for a, _ in parts(inner)[1]):
            continue
        g.block, g.origin = loop.preheader, NOWHERE
        first = _without(g, counted, inner, coefficient)
        if coefficient == 1 and _stays_below(program, counted, first, node.op == "sext", facts):
            replace[node] = g.lin("i64", 0, ((build(g, node.op, "i64", (first,)), 1), (counted.counter, 1)))
    if replace:
        rewrite(program, replace)


def _stays_below(program: Program, counted: Counted, first: Node, sign: bool, facts: list[Node]) -> bool:
    """Whether ``first + k`` (32 bits) does not wrap for any iteration: it starts below the bound that ends the loop."""
    g = program.graph
    stay = program.stays[counted.loop.head]
    prefix = "s" if sign else "u"
    if stay.args[0].ty != "i32" or not (stay.op == "ne" or stay.op[0] == prefix):
        return False
    sides = [_along(counted, side) for side in stay.args]
    moving = 0 if sides[0][1] == 1 else 1
    if sides[moving][1] != 1 or sides[1 - moving][1] != 0:
        return False
    start = _without(g, counted, stay.args[moving], 1)
    bound = stay.args[1 - moving]
    ahead = parts(g.sub(start, first))
    if ahead[1] or ahead[0] not in (0, 1):
        return False
    if stay.op != "ne" and (ahead[0] == 0 or first.op == "const"):
        return True
    return _known_less(g, prefix, first, bound, facts, counted.bottom)


def _known_less(g: Graph, prefix: str, first: Node, bound: Node, facts: list[Node], strict: bool) -> bool:
    wanted = [build(g, f"{prefix}lt", "i1", (first, bound))]
    if not strict:
        wanted.append(build(g, f"{prefix}le", "i1", (first, bound)))
    if any(w in facts or is_const(w, 1) for w in wanted):
        return True
    if is_const(first, 0) and prefix == "u":
        return True  # nothing unsigned is below 0; a bound of 0 at the bottom would run round all integers
    for fact in facts:  # constants: c < bound follows from d < bound with d >= c
        if fact.op == f"{prefix}lt" and fact.args[1] is bound and fact.args[0].op == "const" and first.op == "const":
            known, needed = fact.args[0].imm, first.imm
            if (signed(known, "i32") >= signed(needed, "i32")) if prefix == "s" else known >= needed:
                return True
    return False


class _Exits:
    """Uses behind a loop of what was computed inside: closed forms at the last iteration, else variables (``exitphi``)
    that are assigned on the way out."""

    def __init__(self, program: Program, counted: Counted) -> None:
        self.program, self.counted, self.loop, self.flow = program, counted, counted.loop, program.flow
        self.memo: dict[Node, bool] = {}
        self.values: dict[tuple[Node, int], Node] = {}
        self.anchors: dict[int, int | None] = {}

    def run(self) -> None:
        program, inside = self.program, self.loop.blocks
        live = program.live()
        for block in self.flow.order:
            if block in inside:
                continue
            for node in program.events[block]:
                if node.op == "store" or node in live:
                    node.args = tuple(self.outside(a, block) for a in node.args)
            if block in program.conds:
                program.conds[block] = self.outside(program.conds[block], block)
            if block in program.switches:
                program.switches[block] = self.outside(program.switches[block], block)
            for phi in list(program.phis.get(block, ())):
                before = self.flow.preds[block]
                if phi in live:
                    phi.args = tuple(self.outside(a, b) for a, b in zip(phi.args, before, strict=True))
        for head, trip in program.trips.items():
            preheader = self.flow.loops[head].preheader
            if head != self.loop.head and preheader not in inside:
                program.trips[head] = self.outside(trip, preheader)
        program.outs = {place: self.outside(node, self.flow.exit) for place, node in program.outs.items()}
        for pad, nodes in program.exits.items():
            source = self.flow.preds[pad][0]
            if source not in inside:
                for node in nodes:
                    node.args = (self.outside(node.args[0], source),)

    def varies(self, node: Node) -> bool:
        return varies(self.loop, node, self.memo)

    def outside(self, node: Node, block: int) -> Node:
        """``node`` as seen from ``block`` outside the loop."""
        if not self.varies(node):
            return node
        anchor = self._anchor(block)
        return node if anchor is None else self._value(node, anchor)

    def _anchor(self, block: int) -> int | None:
        """The block above ``block`` that is the first outside on every path from the loop."""
        if block not in self.anchors:
            at: int | None = block
            while at is not None and self.flow.idom[at] not in self.loop.blocks:
                at = self.flow.idom[at]
            self.anchors[block] = at
        return self.anchors[block]

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
        before = self.flow.preds[anchor]
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
            if x.op in PINNED:
                if x is not self.counted.counter:
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
        if node.op == "bitcast" or (node.op in ("pair", "zext", "sext") and node.ty == "i64"):  # keep the variable typed
            args = tuple(self._variable(a, pad) if self.varies(a) else a for a in node.args)
            g.block, g.origin = pad, node.origin
            return rebuilt_at(g, node, args, pad)
        g.block, g.origin = pad, node.origin
        made = g.raw("exitphi", node.ty, (node,))
        self.program.exits.setdefault(pad, []).append(made)
        return made


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
