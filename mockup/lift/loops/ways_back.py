"""Ways that no call took, and that come back to the loop that they leave: what the machine code does on them.

Compilers write ``y[i] = x >= 0 ? x : 0`` as a jump to a copy of the loop's end, which comes back to its head. Where that
copy reaches no memory but what the loop itself reaches, it is no more than the other one of two values.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Const, Effect, Expr, LoadEffect, Semantics, SetEffect, StoreEffect
from layout_advise.mockup.lift.flow import Flow, Unreachable
from layout_advise.mockup.machine import cfg as control
from layout_advise.mockup.machine.disassembly import Insn

MOST_BLOCKS = 8
"""A way of more is not followed."""


@dataclass(frozen=True, slots=True)
class WayBack:
    """A way that comes back to code that ran, at one of the addresses ``to``; the addresses that it ``reads`` and
    ``writes``, as its instructions have them."""

    to: frozenset[int]
    reads: frozenset[Expr]
    writes: frozenset[Expr]


def way_back(
    graph: control.Cfg, start: int, untaken: Container[int], semantics: Callable[[Insn], Semantics]
) -> WayBack | None:
    """The way that begins at ``start``, whose blocks are all ``untaken``; None where it calls something, returns, goes
    round, or does anything else than to compute, load and store."""
    seen, work, to, effects = set[int](), [start], set[int](), list[Effect]()
    while work:
        at = work.pop()
        if at not in untaken:
            to.add(at)
            continue
        if at in seen:
            continue
        seen.add(at)
        block = graph.blocks[at]
        straight = isinstance(block.terminator, control.Jump | control.Branch)
        if not straight or len(seen) > MOST_BLOCKS or any(after in untaken and after <= at for after in block.successors):
            return None
        found = _effects(block.insns, graph.calls, semantics)
        if found is None:
            return None
        effects += found
        work += block.successors
    return WayBack(frozenset(to), _addresses(effects, LoadEffect), _addresses(effects, StoreEffect))


def _effects(insns: Iterable[Insn], calls: Container[int], semantics: Callable[[Insn], Semantics]) -> list[Effect] | None:
    """The effects of instructions; None where these do more than to compute, load and store."""
    found = list[Effect]()
    for insn in insns:
        if insn.address in calls or insn.prefixes:
            return None
        if insn.mnemonic == "jmp":
            continue
        try:
            found += semantics(insn).effects
        except NotLiftedError:
            return None
    return found if all(isinstance(one, LoadEffect | StoreEffect | SetEffect) for one in found) else None


def _addresses(effects: Iterable[Effect], kind: type[LoadEffect] | type[StoreEffect]) -> frozenset[Expr]:
    return frozenset(one.address for one in effects if isinstance(one, kind))


def tell_rejoined(flow: Flow, ways: Mapping[int, WayBack]) -> None:
    """Tells of the blocks in ``ways``, which end there, to which innermost loops their ways come back (in place): to code in
    the loop, or where it is left, and with nothing read or written that an iteration does not reach by the same address."""
    around = {loop.parent for loop in flow.loops.values()}
    for block, way in ways.items():
        end = flow.blocks[block]
        if block not in flow.graph.predecessors or not isinstance(end.term, Unreachable):
            continue
        heads = (head for head in flow.loops if head not in around and _comes_back(flow, head, end.start, way))
        end.term = Unreachable(end.term.reason, frozenset(flow.blocks[head].start for head in heads))


def _comes_back(flow: Flow, head: int, start: int, way: WayBack) -> bool:
    loop = flow.loops[head]
    left = {flow.blocks[pad].start for _, pad in loop.exits}
    inside = {flow.blocks[block].start for block in loop.blocks}
    if start not in left or not way.to <= inside | (left - {start}):
        return False
    effects = [one for block in loop.blocks for step in flow.blocks[block].steps for one in step.semantics.effects]
    writes = _addresses(effects, StoreEffect)
    reads = writes | _addresses(effects, LoadEffect)
    return way.writes <= writes and all(address in reads or isinstance(address, Const) for address in way.reads)
