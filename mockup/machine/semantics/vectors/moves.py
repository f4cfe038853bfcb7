"""Vector moves, broadcasts, inserts and extracts, masked moves, gathers."""

from __future__ import annotations

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Lane, Ty, mask
from layout_advise.mockup.ir.expressions import bitcast, build, const, zext
from layout_advise.mockup.machine.disassembly import MemoryOperand, Register
from layout_advise.mockup.machine.semantics.context import Context, rule
from layout_advise.mockup.machine.semantics.elements import INTEGER, ZERO
from layout_advise.mockup.machine.semantics.strings import move_string
from layout_advise.mockup.machine.semantics.vectors.subvectors import gather_by_bits

_ELEMENT: dict[str, Ty] = {"b": "i8", "w": "i16", "d": "i32", "q": "i64"}


@rule(
    "movaps", "movapd", "movups", "movupd", "movdqa", "movdqu", "lddqu", "movntps", "movntpd", "movntdq", "movntdqa",
    "movdqa32", "movdqa64", "movdqu8", "movdqu16", "movdqu32", "movdqu64",
)  # fmt: skip
def move(c: Context) -> None:
    size = c.vector_size()
    values = c.lanes(c.ops[1], size)
    if isinstance(c.ops[0], MemoryOperand):
        c.store_elements(c.ops[0], values)
        c.mark(size)
    else:
        c.set_packed(c.vector(c.ops[0]), values)


@rule("movss", "movsd")
def move_scalar(c: Context) -> None:
    if not any(isinstance(op, Register) and op.kind == "vector" for op in c.ops):
        move_string(c)
        return
    ty: Ty = "f32" if c.name == "movss" else "f64"
    if isinstance(c.ops[0], MemoryOperand):
        c.store_elements(c.ops[0], [c.scalar(c.ops[1], ty)])
    elif isinstance(c.ops[1], MemoryOperand):
        value = bitcast(INTEGER[BITS[ty] // 8], c.scalar(c.ops[1], ty))
        c.set_lowest(c.vector(c.ops[0]), value, [ZERO, ZERO])
    else:
        dest, first, second = c.sources()
        c.set_scalar(dest, c.scalar(second, ty), first)


@rule("movq", "movd")
def move_low(c: Context) -> None:
    """Between the low bits of a vector register and a general register or memory; the rest of a vector is cleared."""
    dest, source = c.ops
    ty: Ty = "i64" if c.name == "movq" or 8 in _gpr_sizes(c) else "i32"
    value = c.scalar(source, ty) if _is_vector(source) else c.integer(source, BITS[ty] // 8)
    if _is_vector(dest):
        c.set_vector(c.vector(dest), [zext("i64", value), ZERO])
    elif isinstance(dest, MemoryOperand):
        c.store_elements(dest, [value])
    else:
        c.set_integer(dest, value)


def _is_vector(operand: object) -> bool:
    return isinstance(operand, Register) and operand.kind == "vector"


def _gpr_sizes(c: Context) -> list[int]:
    return [op.bytes for op in c.ops if isinstance(op, Register) and op.kind == "gpr"]


@rule("movlps", "movlpd", "movhps", "movhpd")
def move_half(c: Context) -> None:
    high = c.name[3] == "h"
    if isinstance(c.ops[0], MemoryOperand):
        c.store_elements(c.ops[0], [c.lanes(c.ops[1], 16)[high]])
        return
    dest, first, second = c.sources()
    if not isinstance(second, MemoryOperand):
        raise c.refuse("operand form that is not lifted")
    keep = c.lanes(first, 16)
    value = c.load("i64", c.address(second))
    c.set_vector(dest, [keep[0], value] if high else [value, keep[1]])


@rule("movhlps", "movlhps")
def move_across(c: Context) -> None:
    dest, first, second = c.sources()
    a, b = c.lanes(first, 16), c.lanes(second, 16)
    c.set_vector(dest, [b[1], a[1]] if c.name == "movhlps" else [a[0], b[0]])


@rule("movddup")
def duplicate_double(c: Context) -> None:
    size = c.vector_size()
    if size == 16:  # reads 8 bytes of memory only
        value = c.scalar(c.ops[1], "f64")
        c.set_packed(c.vector(c.ops[0]), [value, value])
        return
    values = c.elements(c.ops[1], "f64", size)
    c.set_packed(c.vector(c.ops[0]), [values[i & ~1] for i in range(len(values))])


@rule("movsldup", "movshdup")
def duplicate_single(c: Context) -> None:
    values = c.elements(c.ops[1], "f32", c.vector_size())
    odd = c.name == "movshdup"
    c.set_packed(c.vector(c.ops[0]), [values[(i & ~1) + odd] for i in range(len(values))])


@rule("broadcastss", "broadcastsd", "pbroadcastb", "pbroadcastw", "pbroadcastd", "pbroadcastq")
def broadcast(c: Context) -> None:
    types: dict[str, Ty] = {"broadcastss": "f32", "broadcastsd": "f64"}
    ty = types.get(c.name) or _ELEMENT[c.name[-1]]
    general = isinstance(c.ops[1], Register) and c.ops[1].kind == "gpr"
    value = c.integer(c.ops[1], BITS[ty] // 8) if general else c.scalar(c.ops[1], ty)
    c.set_packed(c.vector(c.ops[0]), [value] * (c.vector_size() * 8 // BITS[ty]))


@rule("broadcastf128", "broadcasti128")
def broadcast_half(c: Context) -> None:
    c.set_packed(c.vector(c.ops[0]), c.lanes(c.ops[1], 16) * 2)


@rule("insertf128", "inserti128")
def insert_half(c: Context) -> None:
    a, b = c.lanes(c.ops[1], 32), c.lanes(c.ops[2], 16)
    c.set_packed(c.vector(c.ops[0]), a[:2] + b if c.immediate() & 1 else b + a[2:])


@rule("extractf128", "extracti128")
def extract_half(c: Context) -> None:
    at = 2 * (c.immediate() & 1)
    half = c.lanes(c.ops[1], 32)[at : at + 2]
    if isinstance(c.ops[0], MemoryOperand):
        c.store_elements(c.ops[0], half)
        c.mark(16)
    else:
        c.set_packed(c.vector(c.ops[0]), half)


@rule("insertps")
def insertps(c: Context) -> None:
    immediate = c.immediate()
    dest, first, second = c.sources()
    result = c.elements(first, "f32", 16)
    selected = 0 if isinstance(second, MemoryOperand) else immediate >> 6  # the selector does not count for memory
    value = c.elements(second, "f32", 4 * (selected + 1))[selected]
    result[immediate >> 4 & 3] = value
    c.set_vector(dest, [Const("f32", 0) if immediate >> i & 1 else e for i, e in enumerate(result)])


@rule("pinsrb", "pinsrw", "pinsrd", "pinsrq")
def insert_integer(c: Context) -> None:
    ty = _ELEMENT[c.name[-1]]
    dest, first, second = c.sources()
    elements = c.elements(first, ty, 16)
    value = c.integer(second, BITS[ty] // 8)
    at = c.immediate() % len(elements)
    per = 64 // BITS[ty]
    lanes = c.lanes(first, 16)
    if BITS[ty] < 32:  # mask the lane rather than rebuild it from all its elements
        shift = BITS[ty] * (at % per)
        kept = build("and", "i64", lanes[at // per], const("i64", ~(mask(ty) << shift)))
        placed = build("shl", "i64", zext("i64", value), Const("i64", shift))
        lanes[at // per] = build("or", "i64", kept, placed)
        c.set_vector(dest, lanes)
        return
    elements[at] = value
    c.set_vector(dest, elements)


@rule("pextrb", "pextrw", "pextrd", "pextrq", "extractps")
def extract_integer(c: Context) -> None:
    ty = "i32" if c.name == "extractps" else _ELEMENT[c.name[-1]]
    elements = c.elements(c.ops[1], ty, 16)
    value = elements[c.immediate() % len(elements)]
    if isinstance(c.ops[0], MemoryOperand):
        c.store_elements(c.ops[0], [value])
    else:
        c.set_integer(c.ops[0], zext("i64", value))


@rule("maskmovps", "maskmovpd", "pmaskmovd", "pmaskmovq")
def masked_move(c: Context) -> None:
    """One guarded access per element (its ``operand`` is the element's number)."""
    types: dict[str, Ty] = {"maskmovps": "f32", "maskmovpd": "f64", "pmaskmovd": "i32", "pmaskmovq": "i64"}
    ty = types[c.name]
    integer = INTEGER[BITS[ty] // 8]
    size = c.vector_size()
    guards = [build("slt", "i1", m, Const(integer, 0)) for m in c.elements(c.ops[1], integer, size)]
    step = BITS[ty] // 8
    dest, source = c.ops[0], c.ops[2]
    if isinstance(dest, MemoryOperand):
        address = c.address(dest)
        for i, (guard, value) in enumerate(zip(guards, c.elements(source, ty, size), strict=True)):
            c.store(build("add", "i64", address, Const("i64", i * step)), value, guard=guard, operand=i)
        c.mark(size)
        return
    if not isinstance(source, MemoryOperand):
        raise c.refuse("operand form that is not lifted")
    address = c.address(source)
    places = [build("add", "i64", address, Const("i64", i * step)) for i in range(len(guards))]
    loaded = [c.load(ty, at, operand=i, guard=guard) for i, (at, guard) in enumerate(zip(places, guards, strict=True))]
    zero = Const(ty, 0)
    c.set_packed(c.vector(dest), [build("select", ty, g, v, zero) for g, v in zip(guards, loaded, strict=True)])


@rule("maskmovdqu")
def byte_masked_move(c: Context) -> None:
    raise c.refuse("byte-masked store")


_GATHERS: dict[str, tuple[Ty, Ty]] = {
    "gatherdps": ("i32", "f32"), "gatherdpd": ("i32", "f64"), "gatherqps": ("i64", "f32"), "gatherqpd": ("i64", "f64"),
    "pgatherdd": ("i32", "i32"), "pgatherdq": ("i32", "i64"), "pgatherqd": ("i64", "i32"), "pgatherqq": ("i64", "i64"),
}  # fmt: skip


@rule(*_GATHERS)
def gather(c: Context) -> None:
    """One guarded load per element (its ``operand`` is the element's number). The mask register is cleared."""
    if c.insn.evex:
        gather_by_bits(c, *_GATHERS[c.name])
        return
    index_type, ty = _GATHERS[c.name]
    dest, memory, mask = c.vector(c.ops[0]), c.ops[1], c.vector(c.ops[2])
    if not isinstance(memory, MemoryOperand) or memory.vector_index is None:
        raise c.refuse("operand form that is not lifted")
    index = memory.vector_index
    if dest.number in (index.number, mask.number) or index.number == mask.number:
        raise c.refuse("undefined: gather with equal registers")
    count = min(dest.bytes * 8 // BITS[ty], index.bytes * 8 // BITS[index_type])
    integer = INTEGER[BITS[ty] // 8]
    size = count * BITS[ty] // 8
    guards = [build("slt", "i1", m, Const(integer, 0)) for m in c.elements(mask, integer, size)]
    addresses = c.indexed(memory, index_type, count)
    result: list[Expr] = []
    for i, (address, guard, old) in enumerate(zip(addresses, guards, c.elements(dest, ty, size), strict=True)):
        result.append(build("select", ty, guard, c.load(ty, address, operand=i, guard=guard), old))
    result += [Const(ty, 0)] * ((16 * 8 // BITS[ty]) - count)
    for lane in range(8):
        c.sets[Lane(mask.number, lane)] = ZERO
    c.set_packed(dest, result)


def select_by_mask(c: Context, dest: Register, a: list[Expr], b: list[Expr], mask: list[Expr]) -> None:
    """Element of ``b`` where the mask's sign bit is set, else of ``a``."""
    chosen = [build("select", x.ty, build("slt", "i1", m, Const(m.ty, 0)), y, x) for x, y, m in zip(a, b, mask, strict=True)]
    c.set_packed(dest, chosen)


@rule("blendvps", "blendvpd", "pblendvb")
def blend_variable(c: Context) -> None:
    ty: Ty = {"s": "f32", "d": "f64", "b": "i8"}[c.name[-1]]  # type: ignore[assignment]
    size = c.vector_size()
    dest = c.vector(c.ops[0])
    if c.vex:
        first, second, mask = c.ops[1], c.ops[2], c.ops[3]
    else:  # the mask is xmm0, whether or not the decoder names it
        first, second, mask = c.ops[0], c.ops[1], Register("vector", 0, 16)
    integer = INTEGER[BITS[ty] // 8]
    a, b = c.elements(first, ty, size), c.elements(second, ty, size)
    select_by_mask(c, dest, a, b, c.elements(mask, integer, size))


@rule("blendps", "blendpd", "pblendd", "pblendw")
def blend_constant(c: Context) -> None:
    types: dict[str, Ty] = {"blendps": "f32", "blendpd": "f64", "pblendd": "i32", "pblendw": "i16"}
    ty = types[c.name]
    immediate = c.immediate()
    dest, first, second = c.sources()
    size = c.vector_size()
    pairs = zip(c.elements(first, ty, size), c.elements(second, ty, size), strict=True)
    c.set_packed(dest, [b if immediate >> (i % 8) & 1 else a for i, (a, b) in enumerate(pairs)])
