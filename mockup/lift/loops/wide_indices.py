"""Indices that the code computes in 32 bits and extends: ``x[3 * i + 1]`` with an ``int i``, as sums of 64 bits.

After ``lea (i,i,2)`` and ``movslq`` the address has the extended sum in it, as one number that no stride divides, and no
compiler sees that it moves evenly. What is added up are ints, whose sums do not overflow in a correct program of C, C++ or
Fortran, so that the sum may be taken of the extended numbers instead. Where a program relies on the overflow, its address in
the mock-up is another one, which the comparison with the original shows. Only addresses are taken so: elsewhere numbers wrap
as they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.ir.value_graph import Graph, parts
from layout_advise.mockup.lift.loops.loop_exits import CountedLoop
from layout_advise.mockup.lift.ssa import SsaProgram, renew, rewrite

MOST_FACTOR = 1 << 16
"""Greater factors are those of hash functions, which overflow on purpose."""
_EXTENDS = ("sext", "zext")
_ACCESSES = ("load", "store", "atomic", "prefetch")


def widen_indices(program: SsaProgram, loops: Iterable[CountedLoop]) -> None:
    """Takes extended sums and products in addresses as those of the extended numbers (in place), the loops' counters as they
    are."""
    counters = frozenset(loop.counter for loop in loops)
    live = program.live()
    accesses = [e for events in program.events.values() for e in events if e.op in _ACCESSES and e in live]
    atoms = dict.fromkeys(atom for access in accesses for atom, _ in parts(access.args[0])[1])
    replace = {atom: other for atom in atoms if (other := extended(program.graph, atom, counters)) is not None}
    memo: dict[Node, Node] = {}
    for access in accesses:
        access.args = (renew(program, access.args[0], replace, memo), *access.args[1:])
    rewrite(program, {})


def extended(g: Graph, node: Node, counters: frozenset[Node]) -> Node | None:
    """An extension to 64 bits as the sum of what is extended; None where ``node`` is none, or of no sum of such numbers."""
    if node.op not in _EXTENDS or node.ty != "i64" or node.args[0].ty != "i32":
        return None
    const, terms = parts(node.args[0])
    if any(abs(coef) > MOST_FACTOR for _, coef in terms) or _is_distance(terms, counters):
        return None
    g.block, g.origin = node.block, node.origin
    wide = _sum(g, const, terms, counters)
    return None if wide.op == "sext" else wide


def _is_distance(terms: Sequence[tuple[Node, int]], counters: frozenset[Node]) -> bool:
    """Whether it is a difference of low halves: of two pointers each half alone may overflow."""
    halves = [coef for atom, coef in terms if atom.op == "lo32" and atom.args[0] not in counters]
    return len(halves) > 1 and min(halves) < 0


def _sum(g: Graph, const: int, terms: Iterable[tuple[Node, int]], counters: frozenset[Node]) -> Node:
    """The sum in 64 bits."""
    return g.lin("i64", const, [(_atom(g, atom, counters), coef) for atom, coef in terms])


def _atom(g: Graph, atom: Node, counters: frozenset[Node]) -> Node:
    """One number of a sum in 64 bits."""
    if atom.op == "lo32" and atom.args[0] in counters:
        return atom.args[0]
    if atom.op == "mul":
        return g.build("mul", "i64", *(_sum(g, *parts(factor), counters) for factor in atom.args))
    return g.build("sext", "i64", atom)
