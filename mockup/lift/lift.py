"""The whole lifter in one call: from machine code to statements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Literal

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.lifted import Atomic, Item, Lifted, LiveOut, Load, Store, everything
from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.lift.build_ssa import build_ssa
from layout_advise.mockup.lift.calls import CALLED
from layout_advise.mockup.lift.flow import RIP
from layout_advise.mockup.lift.inline_calls import ALL_TAKEN, Untaken, build_flow
from layout_advise.mockup.lift.loops.carried_pointers import index_carried
from layout_advise.mockup.lift.loops.closed_forms import close_loops, lower_exact
from layout_advise.mockup.lift.loops.merge_exit_tests import merge_tests
from layout_advise.mockup.lift.loops.wide_indices import widen_indices
from layout_advise.mockup.lift.machine_state import FrameEscapes
from layout_advise.mockup.lift.native_code import native_code
from layout_advise.mockup.lift.retype import retype
from layout_advise.mockup.lift.ssa import SsaProgram
from layout_advise.mockup.lift.structuring import StatementWriter
from layout_advise.mockup.machine.call_abi import Clobbered
from layout_advise.mockup.machine.entry_values import Known
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.machine.semantics import semantics
from layout_advise.tracer.code.region import Region

Result = Literal["any", "int", "float", "none"]

_SECOND = (Gpr(2), Lane(0, 1), Lane(1, 0), Lane(1, 1))
"""Where a function leaves the second half of its result, if that has one."""
RESULTS: dict[str, tuple[Gpr | Lane, ...]] = {
    "any": (Gpr(0), Lane(0, 0)), "int": (Gpr(0),), "float": (Lane(0, 0),), "none": (),
}  # fmt: skip
"""Registers that may hold the result (SysV ABI), by kind of return type."""


def lift(
    region: Region,
    *,
    result: Result = "any",
    opaque: bool = False,
    outs: tuple[Gpr | Lane, ...] = (),
    known: Known = (),
    untaken: Untaken = ALL_TAKEN,
    loops: frozenset[int] = frozenset(),
) -> Lifted:
    """``region`` (and the callees it names, inlined) as structured, typed statements.

    ``result`` tells which register holds what the function returns (from its debug information); "any" keeps rax and xmm0
    where the code writes them. Raises :class:`layout_advise.errors.NotLiftedError` with the instruction that cannot be
    lifted and why; calls of functions that are neither among the region's callees nor pure are such, unless ``opaque``:
    then they stay calls. What is ``untaken`` is not lifted where it stands in the way
    (:class:`layout_advise.mockup.ir.lifted.WayEnd`). The frame is kept in variables; where an address in it is computed at
    run time it stays memory below the rsp of the entry. Of a loop, whose frame is its function's, ``outs`` are the
    registers that the code after it reads; the place where it is left (:data:`layout_advise.mockup.lift.flow.RIP`) is one
    more. ``known`` is what vector registers are known to hold at the entry. ``rep`` operations at the addresses ``loops``
    are written as loops over their elements.
    """
    if region.kind == "loop":
        return _lift(region, (*outs, RIP), opaque, untaken, loops, guess=False, frame_cells=False, known=known)
    try:
        return _lift(region, RESULTS[result], opaque, untaken, loops, guess=result == "any", frame_cells=True)
    except FrameEscapes:
        return _lift(region, RESULTS[result], opaque, untaken, loops, guess=result == "any", frame_cells=False)


def _lift(
    region: Region,
    results: tuple[Gpr | Lane, ...],
    opaque: bool,
    untaken: Untaken,
    strings: frozenset[int],
    *,
    guess: bool,
    frame_cells: bool,
    known: Known = (),
    carried: bool = True,
) -> Lifted:
    flow = build_flow(region, semantics, CALLED.__contains__, opaque=opaque, untaken=untaken, loops=strings)
    constant = open_image(region.path, region.load_base).read
    program = build_ssa(flow, frame_cells=frame_cells, results=results, constant=constant, known=known)
    merge_tests(program)
    retype(program)
    # a result register that a call or an undefined result has clobbered, on any path, cannot be what the function returns
    program.outs = {place: node for place, node in program.outs.items() if not _clobbered(node, guess)}
    loops = close_loops(program)
    widen_indices(program, loops.values())
    indexed = carried and index_carried(program)
    lower_exact(program)
    _hand_over_arguments_only(program)
    _hand_over_kept(program)
    writer = StatementWriter(program, loops)
    body = writer.body()
    outs = _by_exit(writer.live_outs(), region)
    skipped, thinned = _not_executed(program, body)
    live_ins, native = tuple(writer.make.live_ins), native_code(region, body)
    lifted = Lifted(region.symbol, region.entry, live_ins, outs, body, skipped, thinned, native)
    if not indexed:
        return lifted

    @cache
    def same() -> Lifted | None:
        try:
            return _lift(
                region, results, opaque, untaken, strings, guess=guess, frame_cells=frame_cells, known=known, carried=False
            )
        except NotLiftedError:
            return None

    return replace(lifted, with_pointers=same)


def _by_exit(outs: tuple[LiveOut, ...], region: Region) -> tuple[LiveOut, ...]:
    """``outs`` with the exits of a loop behind which each is read; where the loop is left is read at all of them."""
    if not region.kept:
        return outs

    def behind(place: Gpr | Lane) -> frozenset[int] | None:
        name = ("g" if isinstance(place, Gpr) else "v", place.number)
        read = (end for end, kept in zip(region.ends, region.kept, strict=True) if name in kept)
        return frozenset(read) if place != RIP else None

    return tuple(replace(out, read_at=behind(out.location)) for out in outs)


def _hand_over_kept(program: SsaProgram) -> None:
    """Passes registers that are used after a call as if it had kept them: their values become arguments of the call."""
    live = program.live()
    for events in program.events.values():
        for result in events:
            if result.op != "result" or result not in live or len(result.args) == 1:
                continue
            call, old = result.args
            if result.imm not in call.imm.places:
                call.args = (*call.args, old)
                call.imm = replace(call.imm, places=(*call.imm.places, result.imm))
            result.args = (call,)


def _hand_over_arguments_only(program: SsaProgram) -> None:
    """Takes from calls what only happens to be in registers: what an earlier call may have left there, and the upper half of
    a vector that holds nothing computed. (Where that is wrong, the comparison shows it.)"""
    for events in program.events.values():
        for call in events:
            if call.op != "opaque" or (call.imm.name or "").startswith("rep "):
                continue
            first = 1 + call.imm.stack
            handed = list(zip(call.imm.places, call.args[first:], strict=True))
            kept = [(place, value) for place, value in handed if _may_be_argument(place, value, call.imm.sure)]
            call.args = (*call.args[:first], *(value for _, value in kept))
            call.imm = replace(call.imm, places=tuple(place for place, _ in kept))


def _may_be_argument(place: Gpr | Lane, value: Node, sure: bool) -> bool:
    leaves = list(_leaves(value))
    if not sure and place in _SECOND and any(leaf.op == "result" and leaf.imm == place for leaf in leaves):
        return False
    if any(leaf.op == "undef" and isinstance(leaf.imm, Clobbered) for leaf in leaves):
        return False
    if isinstance(place, Gpr) or place.index == 0:
        return True
    return any(leaf.op not in ("livein", "undef") and (leaf.op != "const" or leaf.imm) for leaf in leaves)


def _leaves(value: Node) -> Iterator[Node]:
    """What a value is chosen from, on different ways."""
    seen: set[Node] = set()
    work = [value]
    while work:
        node = work.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op in ("phi", "exitphi", "bitcast"):
            work += node.args
        else:
            yield node


def _clobbered(out: Node, guess: bool) -> bool:
    """Returns whether a result register may hold what a call or an undefined result left there. A value of an unknown
    function may be no result, unless the kind of the result is known (no ``guess``)."""
    seen: set[int] = set()
    work = [out]
    while work:
        node = work.pop()
        if node.op == "undef" or (node.op == "result" and guess):
            return True
        if node.op in ("phi", "bitcast") and node.uid not in seen:
            seen.add(node.uid)
            work += node.args
    return False


def _not_executed(
    program: SsaProgram, body: tuple[Item, ...]
) -> tuple[tuple[tuple[int, int, Literal["dead", "frame"]], ...], tuple[tuple[int, int], ...]]:
    """The references that the statements do not execute at all, with the reason, and those that they do not execute in each
    copy of their code."""
    copies = {(i.origin.pc, i.operand, i.origin.block) for i in everything(body) if isinstance(i, Load | Store | Atomic)}
    executed = {(pc, operand) for pc, operand, _ in copies}
    missing = {(pc, operand) for pc, operand, block in program.references if (pc, operand, block) not in copies}
    skipped = [(*one, _why_skipped(program, one)) for one in sorted(missing - executed)]
    return tuple(skipped), tuple(sorted(missing & executed))


def _why_skipped(program: SsaProgram, reference: tuple[int, int]) -> Literal["dead", "frame"]:
    return "frame" if reference in program.framed else "dead"
