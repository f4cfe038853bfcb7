"""Known contents of the vector registers at a loop's entry: constants, and lanes that hold one value.

A compiler loads the constants of a loop, and spreads factors over the lanes of a register, before the loop. Of a loop that
is lifted by itself these registers are live-ins; that their lanes are equal is what makes its lanes copies of one another
(:mod:`layout_advise.mockup.rewrite.unrolled_copies`), and a sign mask is a negation only where it is known to be one. A
forward analysis over the whole function. A value is named after the instruction that made it and means its last execution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import (
    BITS,
    X87,
    Const,
    Expr,
    Flags,
    Gpr,
    Lane,
    LoadEffect,
    MaskBit,
    Op,
    Read,
    SetEffect,
    Temp,
    X87Depth,
)
from layout_advise.mockup.ir.evaluate import evaluate
from layout_advise.mockup.machine.cfg import Cfg
from layout_advise.mockup.machine.disassembly import Insn
from layout_advise.mockup.machine.semantics import semantics

ReadOnly = Callable[[int, int], bytes | None]
Known = tuple[tuple[Lane | MaskBit, Expr], ...]
"""Lanes and what they hold: a constant, another lane's value, or its own lower half twice (both told by ``Read``); and the
bits of mask registers that are constant."""
Place = Lane | MaskBit | Gpr
State = Mapping[Place, Expr]
"""The values of lanes, and of mask bits and general registers that hold constants (masks come from there); leaves are
constants and names. A place that is absent holds anything."""
MADE = "made"
"""An operation of this name is the value that an instruction made: address and number are its arguments."""
FOLDED = frozenset(
    (
        "bitcast",
        "lo32",
        "hi32",
        "pair",
        "zext",
        "sext",
        "trunc",
        "and",
        "or",
        "xor",
        "not",
        "shl",
        "lshr",
        "add",
        "sub",
        "neg",
    )
)
"""Computed where all arguments are constants; not what rounds, which depends on the program's modes."""
LARGEST = 12
"""Values of more nodes get a name."""


def states_before(cfg: Cfg, constant: ReadOnly) -> dict[int, State]:
    """The state before each block that a way leads to; ``constant`` gives the bytes that cannot change, as in
    :meth:`layout_advise.mockup.machine.image.Image.read`."""
    before: dict[int, State] = {cfg.entry: {}}
    predecessors = cfg.graph.predecessors
    work = [cfg.entry]
    while work:
        at = work.pop()
        state = _through(cfg, at, before[at], constant, None)
        for following in cfg.blocks[at].successors:
            old = before.get(following)
            # where paths meet a lane keeps its value or loses it for good: that comes to an end
            alone = old is None or len(predecessors[following]) == 1
            new = state if alone else {lane: v for lane, v in (old or {}).items() if state.get(lane) == v}
            if new != old:
                before[following] = new
                work.append(following)
    return before


def known_vectors(cfg: Cfg, before: Mapping[int, State], block: int, address: int, constant: ReadOnly) -> Known:
    """The known contents of vector registers before the instruction at ``address`` of ``block``, by the
    :func:`states_before` the blocks."""
    return _described(_through(cfg, block, before[block], constant, address)) if block in before else ()


def _through(cfg: Cfg, block: int, before: State, constant: ReadOnly, until: int | None) -> State:
    state = dict(before)
    for insn in cfg.blocks[block].insns:
        if insn.address == until:
            break
        if insn.address in cfg.calls or insn.mnemonic == "call":
            state.clear()
            continue
        # what this instruction made when it ran before has no name any more
        state = {lane: value for lane, value in state.items() if not _mentions(value, insn.address)}
        _step(insn, state, constant)
    return state


def _step(insn: Insn, state: dict[Place, Expr], constant: ReadOnly) -> None:
    """Applies one instruction to ``state``."""
    try:
        effects = semantics(insn).effects
    except NotLiftedError:
        state.clear()
        return
    temps: dict[int, Expr] = {}
    sets: dict[Place, Expr] = {}
    others: dict[Place, Expr] = {}
    for number, effect in enumerate(effects):
        if isinstance(effect, LoadEffect):
            data = None
            if isinstance(effect.address, Const) and effect.guard is None:
                data = constant(effect.address.value, BITS[effect.ty] // 8)
            made = _made(insn, number, effect.ty)
            temps[effect.number] = made if data is None else Const(effect.ty, int.from_bytes(data, "little"))
        elif isinstance(effect, SetEffect) and isinstance(effect.location, Lane):
            value = _value(effect.value, insn, state, temps)
            sets[effect.location] = value if _size(value) <= LARGEST else _made(insn, number, "i64")
        elif isinstance(effect, SetEffect) and isinstance(effect.location, Gpr | MaskBit):
            others[effect.location] = _value(effect.value, insn, state, temps)
    state.update(sets)
    for place, value in others.items():
        state.pop(place, None)
        if isinstance(value, Const):
            state[place] = value


def _made(insn: Insn, number: int, ty: str) -> Op:
    return Op(MADE, ty, (Const("i64", insn.address), Const("i64", number)))  # type: ignore[arg-type]


def _value(expr: Expr, insn: Insn, state: State, temps: Mapping[int, Expr]) -> Expr:
    match expr:
        case Const():
            return expr
        case Temp(number, _):
            return temps[number]
        case Read(location, ty):
            known = None if isinstance(location, Flags | X87 | X87Depth) else state.get(location)
            # the register as this instruction finds it
            return known or Op(MADE, ty, (Const("i64", insn.address), expr))
        case Op(name, ty, args):
            return _built(name, ty, tuple(_value(a, insn, state, temps) for a in args), expr)


def _built(name: str, ty: str, args: tuple[Expr, ...], expr: Op) -> Expr:
    first = args[0] if args else None
    if name in ("lo32", "hi32") and isinstance(first, Op) and first.name == "pair":
        return first.args[0 if name == "lo32" else 1]
    if name == "lo32" and isinstance(first, Op) and first.name == "zext" and first.args[0].ty == "i32":
        return first.args[0]
    if name == "bitcast" and isinstance(first, Op) and first.name == "bitcast" and first.args[0].ty == ty:
        return first.args[0]
    constants = [a for a in args if isinstance(a, Const)]
    if name in FOLDED and len(constants) == len(args):
        return Const(expr.ty, evaluate(name, expr.ty, tuple(c.value for c in constants), tuple(c.ty for c in constants)))
    return Op(name, expr.ty, args)


def _mentions(value: Expr, address: int) -> bool:
    if not isinstance(value, Op):
        return False
    if value.name == MADE:
        return value.args[0] == Const("i64", address)
    return any(_mentions(a, address) for a in value.args)


def _size(value: Expr) -> int:
    return 1 + sum(map(_size, value.args)) if isinstance(value, Op) else 1


def _described(state: State) -> Known:
    """The state without names of values: constants, and places that are equal to another one."""
    found: list[tuple[Lane | MaskBit, Expr]] = []
    first: dict[Expr, Lane] = {}
    masks = [place for place in state if isinstance(place, MaskBit)]
    found += [(bit, state[bit]) for bit in sorted(masks, key=lambda place: (place.number, place.index))]
    lanes = [place for place in state if isinstance(place, Lane)]
    for lane in sorted(lanes, key=lambda place: (place.number, place.index)):
        value = state[lane]
        if isinstance(value, Const):
            found.append((lane, value))
        elif value in first:
            found.append((lane, Read(first[value], "i64")))
        else:
            first[value] = lane
            if isinstance(value, Op) and value.name == "pair" and value.args[0] == value.args[1]:
                half = Op("lo32", "i32", (Read(lane, "i64"),))
                found.append((lane, Op("pair", "i64", (half, half))))
    return tuple(found)
