"""Type inference: raw 64-bit values get the type that they are used as.

A location is a raw i64. Where every use reads it as a double it becomes one; where its halves are read it is split in two
(and each half becomes a float likewise); where a 32-bit register is carried round a loop it becomes an i32. The use is
looked for through phis and selects; mere copying (storing what was loaded) and turning the sign do not decide.
"""

from __future__ import annotations

from collections.abc import Callable

from layout_advise.mockup.ir.effects import BITS, Ty, mask, sign_bit
from layout_advise.mockup.ir.node import GraphAccess, Node, StoreTo
from layout_advise.mockup.ir.rules.form import HALF, HIGH
from layout_advise.mockup.ir.value_graph import Graph
from layout_advise.mockup.lift.ssa import SsaProgram, rewrite

_SOURCES = frozenset(("load", "livein", "phi", "select"))
_THROUGH = frozenset(("phi", "select"))


def retype(program: SsaProgram) -> None:
    """Types every load, live-in, phi and select of ``program`` by its uses (in place)."""
    for _ in range(8):
        replace = _decide(program)
        if not replace:
            break
        rewrite(program, replace)
    _split_stores(program)
    rewrite(program, _narrow_phis(program))
    rewrite(program, {})


def _uses(program: SsaProgram) -> tuple[dict[Node, set[str]], dict[Node, list[Node]]]:
    """For each source node how it is used directly, and the phis and selects that pass it on."""
    kinds: dict[Node, set[str]] = {}
    through: dict[Node, list[Node]] = {}
    for user in program.live():
        for index, node in enumerate(user.args):
            if node.op not in _SOURCES:
                continue
            if user.op in _THROUGH and not (user.op == "select" and index == 0):
                through.setdefault(node, []).append(user)
            else:
                kinds.setdefault(node, set()).add(_kind(user, index))
    for node in (*program.conds.values(), *program.switches.values()):
        kinds.setdefault(node, set()).add("integer")
    for node in program.outs.values():
        kinds.setdefault(node, set()).add("copy")
    return kinds, through


def _kind(user: Node, index: int) -> str:
    if user.op == "store" and index == 1:
        return "copy"
    if user.op == "bitcast" and user.ty in ("f64", "f32"):
        return "float"
    if user.op == "xor" and user.args[1 - index].op == "const" and user.args[1 - index].imm == sign_bit(user.ty):
        return "sign"  # of a float as of an integer: does not decide
    if user.op in ("lo32", "hi32"):
        return "half"
    of = user.args[index].ty
    return "high" if user.op == HIGH.get(of) else "low" if user.op == "trunc" and of in HALF else "integer"


def _decide(program: SsaProgram) -> dict[Node, Node]:
    kinds, through = _uses(program)
    nodes = [n for n in dict.fromkeys((*kinds, *through)) if n.ty in HALF and n.op in _SOURCES]
    for node in nodes:
        kinds.setdefault(node, set())
    changed = True
    while changed:
        changed = False
        for node in nodes:
            wanted = kinds[node].union(*(kinds.get(user, ()) for user in through.get(node, ())))
            if wanted != kinds[node]:
                kinds[node] = wanted
                changed = True
    replace: dict[Node, Node] = {}
    for node in nodes:
        how = _verdict(node, kinds[node])
        if how is not None:
            replace[node] = _retyped(program, node, how)
    return replace


def _verdict(node: Node, kinds: set[str]) -> str | None:
    if "low" in kinds and "high" not in kinds:
        # of a packed load the rest is nobody's, or another load's; elsewhere it is a field's
        return "split" if node.op == "load" and node.origin.pack is not None and kinds == {"low"} else None
    if "integer" in kinds or (node.op == "phi" and any(a.ty == "flags" for a in node.args)):
        return None
    halves = kinds & {"half", "high"}
    if "float" in kinds:
        return None if halves or node.ty == "i16" else "float"
    if halves:
        return "split" if node.op != "livein" or node.ty == "i64" else None
    if node.op in _THROUGH:  # only copied: what it is made of decides
        made = {a.op for a in node.args[(node.op == "select") :]}
        if "bitcast" in made:
            return "float"
        return "split" if "pair" in made else None
    return None


def _retyped(program: SsaProgram, node: Node, how: str) -> Node:
    g = program.graph
    g.block, g.origin = node.block, node.origin
    real: Ty = "f64" if node.ty == "i64" else "f32"
    if how == "float":
        return g.bitcast(node.ty, _like(program, node, real, lambda a: g.bitcast(real, a), None))
    low = _like(program, node, HALF[node.ty], lambda a: g.low(a), 0)
    high = _like(program, node, HALF[node.ty], lambda a: g.high(a), 1)
    _drop(program, node)
    return g.pair(low, high)


def _like(program: SsaProgram, node: Node, ty: Ty, view: Callable[[Node], Node], half: int | None) -> Node:
    """``node`` made again as type ``ty``: the whole of it, or one half."""
    g = program.graph
    if node.op == "select":
        return g.select(ty, node.args[0], view(node.args[1]), view(node.args[2]))
    if node.op == "livein":
        place, which = node.imm if isinstance(node.imm, tuple) else (node.imm, None)
        return _livein(g, ty, place, which if half is None else half)
    if node.op == "phi":
        made = g.raw("phi", ty, tuple(view(a) for a in node.args))
        assert node.block is not None
        program.phis[node.block].append(made)
        return made
    args, access = node.args, node.imm
    if half:
        size = BITS[ty] // 8
        args = (g.add(args[0], g.const("i64", size)), *args[1:])
        access = GraphAccess(access.operand, access.part + size)
    made = g.raw("load", ty, args, access)
    assert node.block is not None
    events = program.events[node.block]
    events.insert(events.index(node), made)
    if half is None:
        events.remove(node)
    return made


def _livein(g: Graph, ty: Ty, place: object, half: int | None) -> Node:
    key = ("livein", ty, place, half)
    node = g.named.get(key)
    if node is None:
        node = g.named[key] = g.raw("livein", ty, (), (place, half))
    return node


def _drop(program: SsaProgram, node: Node) -> None:
    if node.op == "load" and node.block is not None:
        program.events[node.block].remove(node)


def _split_stores(program: SsaProgram) -> None:
    """A store of two values side by side becomes two; a store takes the type of what it stores."""
    g = program.graph
    for events in program.events.values():
        work = [node for node in events if node.op == "store"]
        while work:
            node = work.pop()
            value = node.args[1]
            halves = value.args if value.op == "pair" else None
            if value.op == "zext" and value.ty == "i64" and value.args[0].op == "bitcast":
                halves = (value.args[0], g.const("i32", 0))
            if halves is None:
                continue
            at = events.index(node)
            events[at : at + 1] = made = [_store_half(g, node, halves[i], i) for i in range(2)]
            work += made


def _store_half(g: Graph, node: Node, value: Node, half: int) -> Node:
    g.block, g.origin = node.block, node.origin
    to: StoreTo = node.imm
    offset = half * BITS[value.ty] // 8
    address = g.add(node.args[0], g.const("i64", offset))
    return g.raw("store", "i64", (address, value, *node.args[2:]), StoreTo(value.ty, to.operand, to.part + offset))


def _narrow_phis(program: SsaProgram) -> dict[Node, Node]:
    """Phis of 64-bit registers that only ever hold a zero-extended 32-bit value become i32 (found optimistically)."""
    narrow = {phi for phis in program.phis.values() for phi in phis if phi.ty == "i64"}

    def fits(node: Node) -> bool:
        if node.op == "const":
            return bool(node.imm <= mask("i32"))
        return node in narrow or (node.op == "zext" and node.args[0].ty == "i32")

    while True:
        wide = {phi for phi in narrow if not all(fits(a) for a in phi.args)}
        if not wide:
            break
        narrow -= wide
    g = program.graph
    replace: dict[Node, Node] = {}
    for phi in sorted(narrow, key=lambda n: n.uid):
        if all(a.op == "const" or a in narrow for a in phi.args):
            continue  # a choice between constants: nothing gained
        g.block, g.origin = phi.block, phi.origin
        made = g.raw("phi", "i32", tuple(g.lo32(a) for a in phi.args))
        assert phi.block is not None
        program.phis[phi.block].append(made)
        replace[phi] = g.zext("i64", made)
    return replace
