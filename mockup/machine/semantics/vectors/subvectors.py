"""AVX-512: pieces of vectors inserted, extracted, repeated and shuffled; gathers and scatters under a mask."""

from __future__ import annotations

from itertools import product

from layout_advise.mockup.ir.effects import BITS, Const, Expr, Ty
from layout_advise.mockup.machine.disassembly import MemoryOperand
from layout_advise.mockup.machine.semantics.context import Context, rule
from layout_advise.mockup.machine.semantics.element_types import PIECES
from layout_advise.mockup.machine.semantics.vectors.shuffles import choose

_ELEMENT: dict[str, Ty] = {"w": "i16", "d": "i32", "q": "i64", "ps": "f32", "pd": "f64"}


def _bytes(c: Context) -> int:
    """Bytes of a piece: ``64x4`` has 32."""
    size, _, count = c.name[-4:].partition("x")
    return int(size) * int(count) // 8


@rule(*(f"insert{kind}{shape}" for kind, shape in product("fi", PIECES)))
def insert_piece(c: Context) -> None:
    size, per = c.vector_size(), _bytes(c) // 8
    lanes, piece = c.lanes(c.ops[1], size), c.lanes(c.ops[2], _bytes(c))
    at = c.immediate() % (len(lanes) // per) * per
    c.set_packed(c.vector(c.ops[0]), [*lanes[:at], *piece, *lanes[at + per :]])


@rule(*(f"extract{kind}{shape}" for kind, shape in product("fi", PIECES)))
def extract_piece(c: Context) -> None:
    per = _bytes(c) // 8
    lanes = c.lanes(c.ops[1], c.vector_size())
    at = c.immediate() % (len(lanes) // per) * per
    piece = lanes[at : at + per]
    if isinstance(c.ops[0], MemoryOperand):
        c.store_elements(c.ops[0], piece)
        c.mark(_bytes(c))
    else:
        c.set_packed(c.vector(c.ops[0]), piece)


@rule(*(f"broadcast{kind}{shape}" for kind, shape in product("fi", ("32x2", *PIECES))))
def broadcast_piece(c: Context) -> None:
    piece = c.lanes(c.ops[1], _bytes(c))
    c.set_packed(c.vector(c.ops[0]), piece * (c.vector_size() // _bytes(c)))


@rule(*(f"shuf{kind}{shape}" for kind, shape in product("fi", ("32x4", "64x2"))))
def shuffle_pieces(c: Context) -> None:
    """Pieces of 16 bytes: the lower half of them from the first source, the upper half from the second."""
    size = c.vector_size()
    count = size // 16
    first, second = c.lanes(c.ops[1], size), c.lanes(c.ops[2], size)
    bits = count.bit_length() - 1
    result: list[Expr] = []
    for number in range(count):
        source = first if number < count // 2 else second
        at = (c.immediate() >> number * bits) % count * 2
        result += source[at : at + 2]
    c.set_packed(c.vector(c.ops[0]), result)


@rule("alignd", "alignq")
def align(c: Context) -> None:
    ty, size = _ELEMENT[c.name[-1]], c.vector_size()
    both = [*c.elements(c.ops[2], ty, size), *c.elements(c.ops[1], ty, size)]
    count = len(both) // 2
    at = c.immediate() % count
    c.set_packed(c.vector(c.ops[0]), both[at : at + count])


@rule(*(f"perm{which}2{kind}" for which, kind in product("ti", _ELEMENT)))
def permute_two(c: Context) -> None:
    """Elements of two tables: ``t`` overwrites the first table, ``i`` the indices."""
    ty, size = _ELEMENT[c.name[6:]], c.vector_size()
    integer: Ty = f"i{BITS[ty]}"  # type: ignore[assignment]
    first, control = (c.ops[0], c.ops[1]) if c.name[4] == "t" else (c.ops[1], c.ops[0])
    values = [*c.elements(first, ty, size), *c.elements(c.ops[2], ty, size)]
    c.set_packed(c.vector(c.ops[0]), [choose(values, at) for at in c.elements(control, integer, size)])


@rule("permw")
def permute_words(c: Context) -> None:
    size = c.vector_size()
    control, values = c.elements(c.ops[1], "i16", size), c.elements(c.ops[2], "i16", size)
    c.set_packed(c.vector(c.ops[0]), [choose(values, at) for at in control])


_SCATTERS: dict[str, tuple[Ty, Ty]] = {
    "scatterdps": ("i32", "f32"), "scatterdpd": ("i32", "f64"), "scatterqps": ("i64", "f32"), "scatterqpd": ("i64", "f64"),
    "pscatterdd": ("i32", "i32"), "pscatterdq": ("i32", "i64"), "pscatterqd": ("i64", "i32"), "pscatterqq": ("i64", "i64"),
}  # fmt: skip


@rule(*_SCATTERS)
def scatter(c: Context) -> None:
    """One guarded store per element, the lowest first: where they overlap the highest is left. The mask is cleared."""
    index_type, ty = _SCATTERS[c.name]
    memory, source = c.ops[0], c.vector(c.ops[1])
    if not isinstance(memory, MemoryOperand) or not c.insn.mask:
        raise c.refuse("operand form that is not lifted")
    count = c.vector_size() * 8 // max(BITS[ty], BITS[index_type])
    values = c.elements(source, ty, count * BITS[ty] // 8)
    for number, (address, value) in enumerate(zip(c.indexed(memory, index_type, count), values, strict=True)):
        c.store(address, value, guard=c.permit(number), operand=number)
    c.clear_governing()


def gather_by_bits(c: Context, index_type: Ty, ty: Ty) -> None:
    """A gather under a mask register: one guarded load per element (its ``operand`` is the element's number)."""
    dest, memory = c.vector(c.ops[0]), c.ops[1]
    if not isinstance(memory, MemoryOperand) or memory.vector_index is None or not c.insn.mask:
        raise c.refuse("operand form that is not lifted")
    if dest.number == memory.vector_index.number:
        raise c.refuse("undefined: gather with equal registers")
    count = c.vector_size() * 8 // max(BITS[ty], BITS[index_type])
    addresses = c.indexed(memory, index_type, count)
    result = [c.load(ty, at, operand=i, guard=c.permit(i)) for i, at in enumerate(addresses)]
    result += [Const(ty, 0)] * (128 // BITS[ty] - count)
    c.set_packed(dest, result, count)
    c.clear_governing()
