"""Calls that stay calls become nodes of the value graph: pure functions, OpenMP's runtime, and what is not lifted."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Flags, Gpr, Lane, MaskBit, Ty
from layout_advise.mockup.ir.lifted import Origin
from layout_advise.mockup.ir.node import Node
from layout_advise.mockup.lift.flow import RSP, FlowStep
from layout_advise.mockup.lift.machine_state import FrameEscapes, MachineState, Slot, State
from layout_advise.mockup.lift.runtime_arguments import FramePart, held, low_half, part_at, put, stored_at
from layout_advise.mockup.machine.call_abi import (
    INTEGERS,
    KEPT,
    RESULTS,
    STRING_OPERATIONS,
    VECTOR_COUNT,
    VECTORS,
    WIDE_VECTORS,
    Clobbered,
    Opaque,
    OpaqueArguments,
)
from layout_advise.mockup.machine.liveness import FLOATING, KNOWN
from layout_advise.mockup.machine.openmp_runtime import PLACE_ARGUMENTS, POINTERS, ROUTINES, RuntimeArguments

RAX = Gpr(0)
MASKS, MASK_BITS = 8, 64
CALLER_SAVED = tuple(Gpr(n) for n in (0, 1, 2, 6, 7, 8, 9, 10, 11))

_UNARY = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt cbrt fabs "
    "floor ceil trunc rint nearbyint round erf erfc"
)
_BINARY = "pow atan2 hypot fmod fmin fmax copysign remainder fdim"
_SUFFIXES: tuple[tuple[str, Ty], ...] = (("", "f64"), ("f", "f32"))
PURE: dict[str, tuple[Ty, int]] = {
    f"{name}{suffix}": (ty, count)
    for names, count in ((_UNARY, 1), (_BINARY, 2))
    for name in names.split()
    for suffix, ty in _SUFFIXES
}
"""libm functions without effects (but for errno): type of arguments and result, number of arguments."""

TEAM: dict[str, tuple[Ty, int]] = {
    f"omp_{name}": ("i32", 0)
    for name in ("get_thread_num", "get_num_threads", "get_max_threads", "in_parallel", "get_level")
}
"""Functions of OpenMP whose result is the same all through a thread's part of a parallel region."""

CALLED = frozenset((*PURE, *TEAM, *ROUTINES))
"""What may stay a call."""


def named_call(owner: MachineState, state: State, step: FlowStep, events: list[Node]) -> None:
    """Translates a call of a pure function (:data:`CALLED`): its result, and the places that are unknown after it."""
    g = owner.graph
    g.origin = Origin(step.pc)
    if step.call in ROUTINES:
        _runtime(owner, state, step, events)
        return
    ty, count = (PURE | TEAM)[step.call or ""]
    raw = (owner.read(state, Lane(i, 0)) for i in range(count))
    args = tuple(g.bitcast(ty, x if ty == "f64" else g.lo32(x)) for x in raw)
    call = g.raw("call", ty, args, step.call)
    events.append(call)
    lost = _clobber(owner, state, Clobbered(step.call))
    if ty == "i32":
        state[RAX] = g.pair(call, g.hi32(state[RAX]))
        return
    bits = g.bitcast("i64" if ty == "f64" else "i32", call)
    state[Lane(0, 0)] = bits if ty == "f64" else g.pair(bits, g.hi32(lost))


def _runtime(owner: MachineState, state: State, step: FlowStep, events: list[Node]) -> None:
    """An event that is handed its arguments; the numbers that it fills in become the cells of the frame that it was
    handed pointers to. Where the frame is memory, the pointers are arguments like others."""
    g, name = owner.graph, step.call or ""
    routine = ROUTINES[name]
    args: list[Node] = []
    places: list[FramePart] = []
    for number, kind in enumerate(routine.parameters):
        value = _argument(owner, state, number, step, events)
        if kind in POINTERS and owner.frame_cells:
            place = part_at(value, POINTERS[kind])
            if any(place.overlaps(other) for other in places):
                raise FrameEscapes
            places.append(place)
            if kind == "o":
                continue
            value = held(owner, state, place)
        elif value.op == "frame":
            raise FrameEscapes
        elif kind == "i":
            value = low_half(g, value)
        args.append(value)
    event = g.raw("runtime", "i64", args, RuntimeArguments(name, len(places)))
    events.append(event)
    _clobber(owner, state, Clobbered(name))
    given = [g.raw("given", "i64", (event,), number) for number in range(not routine.result, len(places) + 1)]
    events += given
    if routine.result:
        state[RAX] = given.pop(0)
    for place, node in zip(places, given, strict=True):
        put(owner, state, place, node)


def _argument(owner: MachineState, state: State, number: int, step: FlowStep, events: Sequence[Node]) -> Node:
    if number < len(PLACE_ARGUMENTS):
        return owner.read(state, PLACE_ARGUMENTS[number])
    pointer, above = owner.read(state, RSP), 8 * (number - len(PLACE_ARGUMENTS))
    if pointer.op == "frame":
        base, offset = pointer.imm
        return owner.read(state, Slot(base, offset + above))
    found = stored_at(owner.graph, events, owner.graph.lin("i64", above, ((pointer, 1),)))
    if found is None:
        raise NotLiftedError(step.pc, step.text, f"calls {step.call} with an argument in a stack that is kept in memory")
    return found


def _clobber(owner: MachineState, state: State, gone: Clobbered | str) -> Node:
    """Makes unknown what a call may change; returns the node that stands for it in vector registers."""
    g = owner.graph
    for register in CALLER_SAVED:
        state[register] = g.raw("undef", "i64", (), gone)
    state[Flags()] = g.raw("undef", "flags", (), str(gone))
    lost = g.raw("undef", "i64", (), gone)
    for number in range(32):
        for index in range(8):
            state[Lane(number, index)] = lost
    if owner.masks:
        bit = g.raw("undef", "i1", (), gone)
        state.update({MaskBit(number, index): bit for number in range(MASKS) for index in range(MASK_BITS)})
    return lost


def opaque_call(owner: MachineState, state: State, step: FlowStep, call: Opaque, events: list[Node]) -> None:
    """An event that is handed every register which may hold an argument, and events for what it may return."""
    g = owner.graph
    g.origin = Origin(step.pc)
    if (call.name or "").startswith("rep "):
        _string(owner, state, call, events)
        return
    stack = _stack_for(owner, state, call)
    if any(_holds(owner.read(state, Lane(number, 4))) for number in range(8)):
        raise NotLiftedError(step.pc, step.text, "a call with values in the upper halves of zmm registers")
    handed: list[tuple[Gpr | Lane, Node]] = []
    every = (*INTEGERS, VECTOR_COUNT, *(WIDE_VECTORS if owner.wide else VECTORS))
    for place in every if call.takes is None else sorted(call.takes, key=_order):
        value = owner.read(state, place)
        if value.op == "undef" or (place == VECTOR_COUNT and value.op != "const"):
            continue  # nothing that the caller put there
        if value.op == "livein" and isinstance(place, Lane) and place.index:
            continue  # the upper half of what the caller itself was handed: no scalar argument
        handed.append((place, value))
    target = owner.expression(state, call.target, {})
    args = (target, *(() if stack is None else (stack,)), *(value for _, value in handed))
    event = g.raw(
        "opaque",
        "i64",
        args,
        OpaqueArguments(call.name, stack is not None, tuple(place for place, _ in handed), call.takes is not None),
    )
    events.append(event)
    before = {place: owner.read(state, place) for place in KEPT} if call.local else {}
    gone = Clobbered(call.name)
    _clobber(owner, state, str(gone) if call.local else gone)
    for place in before or returned_by(call.name):
        # of a local callee each register is read back: where it was not changed, it is what it was before the call
        old = before.get(place)
        made = (event,) if old is None or old.op == "undef" else (event, old)
        state[place] = g.raw("result", "i64", made, place)
        events.append(state[place])


def returned_by(name: str | None) -> tuple[Gpr | Lane, ...]:
    """The registers that hold what a function may return. Those of the library that are known return one number: what the
    other registers hold then is left from the code before the call, and in a mock-up another value than in the original."""
    if name is None or name not in KNOWN:
        return RESULTS
    return (Lane(0, 0),) if KNOWN[name][1] or name in FLOATING else (Gpr(0),)


def _order(place: Gpr | Lane) -> tuple[bool, int, int]:
    return isinstance(place, Lane), place.number, place.index if isinstance(place, Lane) else 0


def _holds(value: Node) -> bool:
    """Returns whether a lane may hold a computed value, rather than its value at the entry or zeros."""
    seen: set[Node] = set()
    work = [value]
    while work:
        node = work.pop()
        if node.op == "phi":
            work += [] if node in seen else node.args
            seen.add(node)
        elif node.op not in ("livein", "undef", "const") or (node.op == "const" and node.imm):
            return True
    return False


def _string(owner: MachineState, state: State, call: Opaque, events: list[Node]) -> None:
    """``rep movs`` or ``rep stos``, upwards (the ABI keeps the direction flag clear)."""
    g = owner.graph
    name = (call.name or "").removeprefix("rep ")
    size = STRING_OPERATIONS[name]
    to, count = Gpr(7), Gpr(1)
    source = Gpr(6) if name.startswith("movs") else Gpr(0)
    places = (to, source, count)
    args = (g.const("i64", 0), *(owner.read(state, place) for place in places))
    events.append(g.raw("opaque", "i64", args, OpaqueArguments(call.name, False, places)))
    for place in (to, source) if source != Gpr(0) else (to,):
        moved = g.scale(owner.read(state, count), size)
        state[place] = g.add(owner.read(state, place), moved)
    state[count] = g.const("i64", 0)


def _stack_for(owner: MachineState, state: State, call: Opaque) -> Node | None:
    """The stack pointer that the callee needs; None where it takes nothing from the stack."""
    if call.name in KNOWN and not call.local:  # takes its arguments in registers
        return None
    pointer = owner.read(state, RSP)
    if not owner.frame_cells:
        return owner.graph.lin("i64", 8 if call.tail else 0, ((pointer, 1),))
    if pointer.op != "frame":
        raise FrameEscapes
    base, offset = pointer.imm
    if call.tail:  # our own caller's arguments on the stack are the callee's
        return owner.plain_address(owner.graph.frame(base, offset + 8))
    if owner.read(state, Slot(base, offset & ~7)).op != "undef":
        raise FrameEscapes  # perhaps an argument on the stack: then the frame has to be where the callee looks
    return None
