"""One test for a loop whose bottom test the compiler has copied into several arms of its body.

``for (...) if (c) A else B`` often becomes a loop with a copy of ``++i < n`` at the end of A and of B. Where all copies ask
the same and leave to the same place they are merged again, so that the loop can be counted.
"""

from __future__ import annotations

from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.lift.flow import Cond, FlowBlock, FlowLoop, Go, analyse
from layout_advise.mockup.lift.ssa import SsaProgram, rewrite


def merge_tests(program: SsaProgram) -> None:
    """Merges copied bottom tests (in place); loops without any are unchanged."""
    for head in list(program.flow.loops):
        found = _copies(program, program.flow.loops[head])
        if found is not None:
            _merge(program, program.flow.loops[head], *found)
    rewrite(program, {})


def _copies(program: SsaProgram, loop: FlowLoop) -> tuple[tuple[int, ...], list[int], Node] | None:
    """(test blocks, pads, condition to stay), where the latch is reached by copies of one test only."""
    flow = program.flow
    tests = flow.graph.predecessors[loop.latch]
    if len(tests) < 2 or program.flow.blocks[loop.latch].steps:
        return None
    stays: list[Node] = []
    pads: list[int] = []
    for block in tests:
        # the edge to a latch with several predecessors was split: look through the empty block in between
        source = _above(program, loop, block)
        if source is None:
            return None
        test, via = source
        term = flow.blocks[test].term
        assert isinstance(term, Cond)
        pad = term.other if term.taken == via else term.taken
        if pad in loop.blocks or flow.graph.predecessors[pad] != (test,):
            return None
        stays.append(program.conds[test] if term.taken == via else program.graph.negate(program.conds[test]))
        pads.append(pad)
    targets = {_lands(program, pad)[1] for pad in pads}
    same = len(targets) == 1 and all(stay is stays[0] for stay in stays)
    return (tests, pads, stays[0]) if same else None


def _lands(program: SsaProgram, pad: int) -> tuple[int, int]:
    """Follows a pad through empty blocks (every ``ret`` is such a block of its own): the last of them (or the
    pad), and what comes then."""
    last, at = pad, program.flow.blocks[pad].successors[0]
    while at not in program.flow.loops and not program.events[at] and not program.phis.get(at):
        term = program.flow.blocks[at].term
        if not isinstance(term, Go) or term.target is None:
            break
        last, at = at, term.target
    return last, at


def _above(program: SsaProgram, loop: FlowLoop, block: int) -> tuple[int, int] | None:
    """(test block, its successor on the way to the latch) for a predecessor of the latch."""
    flow = program.flow
    before = flow.graph.predecessors[block]
    empty = not program.events[block] and not program.phis.get(block) and isinstance(flow.blocks[block].term, Go)
    if empty and len(before) == 1 and isinstance(flow.blocks[before[0]].term, Cond) and flow.loop_of[before[0]] == loop.head:
        return before[0], block
    return None


def _merge(program: SsaProgram, loop: FlowLoop, tests: tuple[int, ...], pads: list[int], stay: Node) -> None:
    """``tests`` (the empty blocks behind the copies) meet in a new block that asks once."""
    flow = program.flow
    middle = FlowBlock(max(flow.blocks) + 1, flow.blocks[loop.latch].start)
    flow.blocks[middle.id] = middle
    lasts = [_lands(program, pad)[0] for pad in pads]
    target = _lands(program, pads[0])[1]
    flow.blocks[pads[0]].term = Go(target)
    old_preds = flow.graph.predecessors[target]
    for block in tests:
        test = flow.graph.predecessors[block][0]
        flow.blocks[test].term = Go(block)
        del program.conds[test]
        flow.blocks[block].term = Go(middle.id)
    middle.term = Cond("merged", loop.latch, pads[0])
    program.conds[middle.id] = stay
    program.events[middle.id] = []
    program.phis[middle.id] = program.phis.pop(loop.latch, [])
    for phi in program.phis[middle.id]:
        phi.block = middle.id
    carried = {phi: dict(zip(old_preds, phi.args, strict=True)) for phi in program.phis.get(target, ())}
    analyse(flow)
    for phi, args in carried.items():
        args[pads[0]] = _joined(program, middle.id, [args[last] for last in lasts])
        phi.args = tuple(args[block] for block in flow.graph.predecessors[target])
    for block in set(program.events) - set(flow.graph.order):
        del program.events[block]
        program.phis.pop(block, None)


def _joined(program: SsaProgram, block: int, args: list[Node]) -> Node:
    """The value at the new block of what the old pads carried, one argument for each copy of the test."""
    if all(a is args[0] for a in args):
        return args[0]
    for known in program.phis[block]:
        if list(known.args) == args:
            return known
    program.graph.block = block
    phi = program.graph.raw("phi", args[0].ty, tuple(args))
    program.phis[block].append(phi)
    return phi
