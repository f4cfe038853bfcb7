"""Loops in closed form: a counter from 0, induction variables linear in it, trip counts, values after the loop."""

from __future__ import annotations

from collections.abc import Container

from layout_advise.mockup.ir.node import NOWHERE, SIDE_EFFECTS, Node
from layout_advise.mockup.ir.rules.form import is_const
from layout_advise.mockup.ir.value_graph import Graph, parts, signed
from layout_advise.mockup.lift.flow import Cond, Flow, FlowLoop, Go, Unreachable
from layout_advise.mockup.lift.loops.loop_exits import CountedLoop, carry_out, varies
from layout_advise.mockup.lift.ssa import SsaProgram, rewrite


def close_loops(program: SsaProgram) -> dict[int, CountedLoop]:
    """Brings every loop, inner before outer, into closed form (in place); returns the loops by head. Quotients that did not
    become linear are left to :func:`lower_exact`."""
    found: dict[int, CountedLoop] = {}
    for head, loop in program.flow.loops.items():
        g = program.graph
        g.block, g.origin = head, NOWHERE
        counted = CountedLoop(loop, g.raw("counter", "i64", (), head))
        found[head] = counted
        _close_phis(program, counted)
        _count(program, counted)
        _widen(program, counted)
        _close_phis(program, counted)
        carry_out(program, counted)
        rewrite(program, {})
    return found


def _close_phis(program: SsaProgram, counted: CountedLoop) -> None:
    """Replace every phi whose step does not vary by ``first + step * counter``."""
    g, loop = program.graph, counted.loop
    latch = program.flow.graph.predecessors[loop.head].index(loop.latch)
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
            index = counted.counter if phi.ty == "i64" else g.lo32(counted.counter)
            steps = [(index, const), *((g.build("mul", phi.ty, index, a), c) for a, c in rest)]
            replace[phi] = g.lin(phi.ty, 0, [(first, 1), *steps])
        if not replace:
            return
        rewrite(program, replace)


def _count(program: SsaProgram, counted: CountedLoop) -> None:
    """Finds the exit that bounds the loop, and the trip count at which it is taken."""
    flow, loop = program.flow, counted.loop
    live = program.live()
    for block, pad in sorted(loop.exits, key=lambda edge: _ends(flow, edge[1])):
        if not isinstance(flow.blocks[block].term, Cond) or flow.loop_of[block] != loop.head:
            continue
        bottom = _leads_to_latch(program, loop, block, live)
        top = block == loop.head and not any(e.op in SIDE_EFFECTS or e in live for e in program.events[block])
        if not (bottom or top):
            continue
        term = flow.blocks[block].term
        assert isinstance(term, Cond)
        stay = program.conds[block] if term.other == pad else program.graph.negate(program.conds[block])
        trip = _trip(program, counted, stay, bottom)
        if trip is not None:
            counted.test, counted.pad, counted.bottom = block, pad, bottom
            del program.conds[block]
            program.stays[loop.head] = stay
            program.trips[loop.head] = trip
            return


def _ends(flow: Flow, block: int) -> bool:
    """Returns whether the program does not go on from here."""
    while isinstance(term := flow.blocks[block].term, Go) and term.target is not None:
        block = term.target
        if block in flow.loops or len(flow.graph.predecessors[block]) > 1:
            break
    return isinstance(flow.blocks[block].term, Unreachable)


def _leads_to_latch(program: SsaProgram, loop: FlowLoop, block: int, live: Container[Node]) -> bool:
    """Returns whether only register moves stand between the test in ``block`` and the next iteration: then it does no harm
    that they happen once more than in the machine code."""
    flow = program.flow
    stays = [s for s in flow.blocks[block].successors if s in loop.blocks]
    before, at = block, stays[0]
    while at != loop.latch:
        busy = any(e.op in SIDE_EFFECTS or e in live for e in program.events[at])
        if busy or flow.graph.predecessors[at] != (before,) or not isinstance(flow.blocks[at].term, Go):
            return False
        before, at = at, flow.blocks[at].successors[0]
    return flow.graph.predecessors[at] == (before,)


def _along(counted: CountedLoop, node: Node) -> tuple[Node | None, int]:
    """``node`` as (invariant part, coefficient of the counter); the part is None where it is not linear in the counter."""
    memo: dict[Node, bool] = {}
    coefficient = 0
    for atom, coef in parts(node)[1]:
        if atom is counted.counter or (atom.op == "lo32" and atom.args[0] is counted.counter):
            coefficient += coef
        elif varies(counted.loop, atom, memo):
            return None, 0
    return node, coefficient


def _without(g: Graph, counted: CountedLoop, node: Node, coefficient: int) -> Node:
    index = counted.counter if node.ty == "i64" else g.lo32(counted.counter)
    return g.lin(node.ty, 0, ((node, 1), (index, -coefficient)))


def _trip(program: SsaProgram, counted: CountedLoop, stay: Node, bottom: bool) -> Node | None:
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
        return _after_equal(g, distance, abs(step), bottom, alone=len(counted.loop.exits) == 1)
    if step < 0:
        return None
    return _after_order(g, stay.op, a, b, step, bottom)


def _after_equal(g: Graph, distance: Node, step: int, bottom: bool, alone: bool) -> Node:
    """The test fails when ``step * k == distance``. Where the loop has no other exit (``alone``) that divides exactly, else
    the program would run round the integers."""
    if distance.ty == "i32":
        taken = g.zext("i64", _divided(g, distance, step, alone))
        return g.add(taken, g.const("i64", 1)) if bottom else taken
    return _divided(g, g.add(distance, g.const("i64", step if bottom else 0)), step, alone)


def _divided(g: Graph, node: Node, step: int, alone: bool) -> Node:
    """``node / step`` where it is known to divide (``exact``), else so often that another exit is taken before (``upto``):
    a loop that is written out twice may be left in the middle. It stays symbolic until all loops are closed: pointers of an
    outer loop that cancel make it linear."""
    return g.build("exact" if alone else "upto", node.ty, node, g.const(node.ty, step))


def lower_exact(program: SsaProgram) -> None:
    """Lowers the ``exact`` and ``upto`` quotients that did not become linear to shifts and divisions."""
    g = program.graph
    replace: dict[Node, Node] = {}
    for node in program.live():
        if node.op not in ("exact", "upto"):
            continue
        g.block, g.origin = node.block, node.origin
        whole, step = node.args[0], node.args[1].imm
        if step & (step - 1) == 0:
            quotient = g.build("lshr", node.ty, whole, g.const(node.ty, step.bit_length() - 1))
        else:  # the divisor is a constant: cannot trap, so may be moved like any formula
            quotient = g.build("udiv", node.ty, *node.args)
        if node.op == "upto" and step > 1:
            divides = g.build("eq", "i1", g.lin(node.ty, 0, ((quotient, step),)), whole)
            most = (1 << (63 if node.ty == "i64" else 32)) - 1
            quotient = g.select(node.ty, divides, quotient, g.const(node.ty, most))
        replace[node] = quotient
    rewrite(program, replace)


def _after_order(g: Graph, name: str, a: Node, b: Node, step: int, bottom: bool) -> Node:
    """The test ``a + step * k < b`` (or <=); at least one iteration where the test stands at the bottom."""
    unsigned = name[0] == "u"
    if a.ty == "i32":  # in 64 bits the difference cannot overflow
        widen = "zext" if unsigned else "sext"
        a, b = (g.build(widen, "i64", x) for x in (a, b))
        unsigned = False
    extra = 1 if name[2] == "e" else 0
    least = 1 if bottom else 0
    room = g.lin("i64", extra + step - 1 + (step if bottom else 0), ((b, 1), (a, -1)))
    if step == 1:
        count = room
    elif step & (step - 1) == 0:
        count = g.build("ashr", "i64", room, g.const("i64", step.bit_length() - 1))
    else:
        count = g.build("sdiv", "i64", room, g.const("i64", step))
    if unsigned and not is_const(a, 0):
        enters = g.build(name, "i1", a, b)
        return g.select("i64", enters, count, g.const("i64", least))
    return g.build("smax", "i64", count, g.const("i64", least))


def _facts(flow: Flow, program: SsaProgram, block: int) -> list[Node]:
    """Conditions that hold whenever ``block`` is reached: branches that every path to it has taken."""
    found: list[Node] = []
    at: int | None = block
    while at is not None:
        up = flow.graph.idom[at]
        if up is not None and flow.graph.predecessors[at] == (up,):
            term = flow.blocks[up].term
            if isinstance(term, Cond) and up in program.conds:
                node = program.conds[up]
                found.append(node if term.taken == at else program.graph.negate(node))
        at = up
    return found


def _widen(program: SsaProgram, counted: CountedLoop) -> None:
    """``sext(a + k)`` and ``zext(a + k)`` of 32-bit counters become ``sext(a) + k`` where they are seen not to wrap."""
    g, loop = program.graph, counted.loop
    if counted.test is None:
        return
    index = g.lo32(counted.counter)
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
            replace[node] = g.lin("i64", 0, ((g.build(node.op, "i64", first), 1), (counted.counter, 1)))
    if replace:
        rewrite(program, replace)


def _stays_below(program: SsaProgram, counted: CountedLoop, first: Node, sign: bool, facts: list[Node]) -> bool:
    """Returns whether ``first + k`` (32 bits) never wraps: it starts below the bound that ends the loop."""
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
    wanted = [g.build(f"{prefix}lt", "i1", first, bound)]
    if not strict:
        wanted.append(g.build(f"{prefix}le", "i1", first, bound))
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
