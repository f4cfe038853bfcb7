"""Static single assignment over 64-bit locations: the form, and the replacement of values in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.node import PINNED, SIDE_EFFECTS, Node
from layout_advise.mockup.ir.value_graph import Graph
from layout_advise.mockup.lift.flow import Flow
from layout_advise.mockup.lift.machine_state import make


@dataclass(slots=True)
class SsaProgram:
    """The hotspot in SSA form. ``events`` are the loads, stores and calls of a block in order, ``conds`` the i1 of blocks
    that end in a condition, ``switches`` the target address of those that jump through a table; ``outs`` what the result
    registers hold at the exit. ``exits`` are the values carried out of loops, by pad, ``trips`` trip counts and ``stays``
    the conditions to go on that they replace, by loop head. ``references`` are all memory operands (pc, operand,
    block) of the code, ``framed`` those that became cells of the frame."""

    flow: Flow
    graph: Graph
    events: dict[int, list[Node]] = field(default_factory=dict)
    phis: dict[int, list[Node]] = field(default_factory=dict)
    conds: dict[int, Node] = field(default_factory=dict)
    switches: dict[int, Node] = field(default_factory=dict)
    outs: dict[Gpr | Lane, Node] = field(default_factory=dict)
    exits: dict[int, list[Node]] = field(default_factory=dict)
    trips: dict[int, Node] = field(default_factory=dict)
    stays: dict[int, Node] = field(default_factory=dict)
    references: set[tuple[int, int, int]] = field(default_factory=set)
    framed: set[tuple[int, int]] = field(default_factory=set)
    depth: Node | None = None
    """The count of numbers left on the x87 stack at the exit, as long as it is not known to be 0."""

    def roots(self) -> Iterator[Node]:
        """The roots of liveness: stores, unknown calls, conditions, jump targets, results."""
        for events in self.events.values():
            yield from (node for node in events if node.op in SIDE_EFFECTS)
        yield from self.conds.values()
        yield from self.switches.values()
        yield from self.trips.values()
        yield from self.outs.values()
        yield from () if self.depth is None else (self.depth,)

    def live(self) -> dict[Node, None]:
        """The nodes that the roots need, through phis and memory addresses, in an order that is the same every time (a
        set's is that of the nodes' addresses, and what is made in it would differ from one lifting to the next)."""
        seen: dict[Node, None] = {}
        work = list(self.roots())
        while work:
            node = work.pop()
            if node not in seen:
                seen[node] = None
                work.extend(node.args)
        return seen


def rebuilt(g: Graph, node: Node, args: tuple[Node, ...]) -> Node:
    """The node like ``node`` with other arguments, simplified."""
    g.block, g.origin = node.block, node.origin
    if node.op == "lin":
        const, coefs = node.imm
        return g.lin(node.ty, const, zip(args, coefs, strict=True))
    return make(g, node.op, node.ty, args)


def conditions_on_each_path(program: SsaProgram) -> None:
    """Conditions of flags that different paths set, each tested where its path sets them: the condition becomes a phi of
    what these tests give. A compiler merges paths behind their compares, so that one branch serves all of them."""
    made: dict[tuple[str, Node], Node] = {}
    while waiting := {node: node for node in program.live() if _reads_merged_flags(node)}:
        rewrite(program, {node: _test_of(program, node.op, node.args[0], made) for node in waiting})


def _reads_merged_flags(node: Node) -> bool:
    return node.op.startswith("cond.") and node.args[0].op == "phi"


def _test_of(program: SsaProgram, op: str, flags: Node, made: dict[tuple[str, Node], Node]) -> Node:
    """The condition ``op`` of ``flags``; of a phi of flags the phi of the conditions."""
    g = program.graph
    if flags.op != "phi":
        g.block, g.origin = flags.block, flags.origin
        return make(g, op, "i1", (flags,))
    if (op, flags) not in made:
        g.block, g.origin = flags.block, flags.origin
        made[op, flags] = phi = g.raw("phi", "i1", ())
        assert flags.block is not None
        program.phis[flags.block].append(phi)
        phi.args = tuple(_test_of(program, op, one, made) for one in flags.args)
    return made[op, flags]


def rewrite(program: SsaProgram, replace: dict[Node, Node]) -> None:
    """Replaces nodes everywhere and simplifies again, until no phi is left whose arguments are all the same.

    Pinned nodes keep their identity, only their arguments change.
    """
    while True:
        memo: dict[Node, Node] = {}
        _apply(program, replace, memo)
        replace = _trivial_phis(program)
        if not replace:
            return


def renew(program: SsaProgram, root: Node, replace: dict[Node, Node], memo: dict[Node, Node]) -> Node:
    """``root`` with replacements applied below it; ``memo`` is shared between the calls of one pass."""
    stack = [root]
    while stack:
        node = stack[-1]
        if node in memo:
            stack.pop()
            continue
        other = replace.get(node, node)
        if other is not node:
            if other in memo:
                memo[node] = memo[other]
            else:
                stack.append(other)
            continue
        args = node.args
        if not args or node.op in PINNED:
            memo[node] = node
            continue
        missing = [a for a in args if a not in memo]
        if missing:
            stack += missing
            continue
        renewed = tuple([memo[a] for a in args])
        # conditions that waited for their flags are tried again even if nothing below them changed
        same = renewed == args and not node.op.startswith("cond.")
        memo[node] = node if same else rebuilt(program.graph, node, renewed)
    return memo[root]


def _apply(program: SsaProgram, replace: dict[Node, Node], memo: dict[Node, Node]) -> None:
    def new(node: Node) -> Node:
        return memo[node] if node in memo else renew(program, node, replace, memo)

    for block, phis in program.phis.items():
        program.phis[block] = [phi for phi in phis if phi not in replace]
    pinned: Iterable[Node] = [
        n for group in (program.events, program.phis, program.exits) for nodes in group.values() for n in nodes
    ]
    for node in pinned:
        node.args = tuple([new(a) for a in node.args])
    program.conds = {block: new(node) for block, node in program.conds.items()}
    program.switches = {block: new(node) for block, node in program.switches.items()}
    program.trips = {head: new(node) for head, node in program.trips.items()}
    program.stays = {head: new(node) for head, node in program.stays.items()}
    program.outs = {place: new(node) for place, node in program.outs.items()}
    program.depth = None if program.depth is None else new(program.depth)


def _trivial_phis(program: SsaProgram) -> dict[Node, Node]:
    """Phis that choose between themselves and one other value; and those that nobody needs."""
    live = program.live()
    found: dict[Node, Node] = {}
    for block, phis in program.phis.items():
        program.phis[block] = [phi for phi in phis if phi in live]
        for phi in program.phis[block]:
            others = [a for a in dict.fromkeys(phi.args) if a is not phi]
            if len(others) == 1 and others[0] not in found:
                found[phi] = others[0]
    return found
