"""Operations and loads of vectorised loops move to where their result is needed; nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.mockup.evidence.binding import access_bytes
from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import (
    Assign,
    Call,
    Goto,
    Item,
    Label,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Linear,
    Load,
    Operand,
    Origin,
    Store,
    Val,
    Var,
)
from layout_advise.mockup.rewrite.statement_order import sink_loads, sink_operations
from tests.support.mockups.native import NO_EVIDENCE

AT = Origin(0x1000)
BASE = Val(1, "i64")
COUNTER = Val(2, "i64")
LANES = ((0x1000, 0, 0), None)


def sunk(lifted: Lifted) -> Lifted:
    return sink_operations(lifted, NO_EVIDENCE)


def body_of(items: list[Item], order: Callable[[Lifted], Lifted] = sunk) -> tuple[Item, ...]:
    loop = LiftedLoop(COUNTER, Val(3, "i64"), tuple(items), 0x1000)
    done = order(Lifted("f", 0x1000, (), (), (loop,)))
    inner = done.body[0]
    assert isinstance(inner, LiftedLoop)
    return inner.body


def late(items: list[Item]) -> tuple[Item, ...]:
    return body_of(items, sink_loads)


def scalar(items: list[Item]) -> list[Item]:
    """The same, but no vector's lanes."""
    return [replace(item, lanes=()) if isinstance(item, Load | Store) else item for item in items]


def place(offset: int) -> Linear:
    return Linear(offset, ((BASE, 1), (COUNTER, 8)))


def rows(lanes: bool) -> list[Item]:
    """Two fields: both loaded, both doubled, both increased, both stored: as a vector unit does it."""
    chosen = LANES if lanes else ()
    items: list[Item] = [Load(Val(10 + k, "f64"), place(8 * k), AT, lanes=chosen) for k in range(2)]
    items += [Let(Val(20 + k, "f64"), "fadd", (Val(10 + k, "f64"), Val(10 + k, "f64")), AT) for k in range(2)]
    items += [Let(Val(30 + k, "f64"), "fmul", (Val(20 + k, "f64"), Val(10 + k, "f64")), AT) for k in range(2)]
    return items + [Store("f64", place(8 * k), Val(30 + k, "f64"), AT, lanes=chosen) for k in range(2)]


def numbers(items: tuple[Item, ...]) -> list[int]:
    return [
        item.value.number if not isinstance(item, Store) else -1 for item in items if isinstance(item, Load | Let | Store)
    ]


def test_a_few_packed_operations_among_scalar_ones_leave_the_order_alone() -> None:
    packed = Origin(0x1000, pack=1)
    for most in (True, False):
        scalar = [Let(Val(50 + k, "f64"), "fadd", (Val(9, "f64"), Val(9, "f64")), AT) for k in range(3 if most else 5)]
        items = [replace(item, origin=packed) if isinstance(item, Let) else item for item in rows(lanes=False)]
        assert (numbers(body_of(scalar + items)) != numbers(tuple(scalar + items))) == most


def test_each_result_is_computed_in_one_piece() -> None:
    assert numbers(body_of(rows(lanes=True))) == [10, 20, 30, -1, 11, 21, 31, -1]


def test_long_chains_are_no_trouble() -> None:
    items: list[Item] = [Load(Val(10, "f64"), place(0), AT, lanes=LANES)]
    items += [Let(Val(11 + k, "f64"), "fadd", (Val(10 + k, "f64"), Val(10, "f64")), AT) for k in range(3000)]
    items.append(Store("f64", place(8), Val(3010, "f64"), AT, lanes=LANES))
    assert numbers(body_of(items)) == [*range(10, 3011), -1]


def test_lanes_of_packed_operations_are_taken_apart_too() -> None:
    packed = [
        Let(i.value, i.name, i.args, Origin(0x1000, 1, k % 2)) if isinstance(i, Let) else i
        for k, i in enumerate(rows(lanes=False))
    ]
    assert numbers(body_of(packed)) == [10, 20, 30, -1, 11, 21, 31, -1]


def test_scalar_loops_keep_their_order() -> None:
    assert body_of(rows(lanes=False)) == tuple(rows(lanes=False))


def reads(item: Item) -> list[Operand]:
    if isinstance(item, Let):
        return list(item.args)
    if isinstance(item, LetLinear):
        return [a for a, _ in item.linear.terms]
    if isinstance(item, Load):
        return [a for a, _ in item.address.terms]
    if isinstance(item, Store):
        return [item.stored, *(a for a, _ in item.address.terms)]
    if isinstance(item, Assign):
        return [item.operand]
    return [item.condition] if isinstance(item, Goto) and item.condition is not None else []


@st.composite
def bodies(draw: st.DrawFn) -> list[Item]:
    """Straight code with jumps out: every item reads what came before."""
    items: list[Item] = [Load(Val(10, "f64"), place(0), AT, lanes=LANES)]
    known: list[Val] = [Val(10, "f64")]
    for number in range(11, 11 + draw(st.integers(1, 25))):
        kind = draw(st.sampled_from(["let", "let", "let", "linear", "load", "store", "goto", "label", "assign"]))
        one, two = (draw(st.sampled_from(known)) for _ in range(2))
        value = Val(number, "f64")
        if kind == "let":
            items.append(Let(value, "fadd", (one, two), AT))
        elif kind == "linear":
            items.append(LetLinear(value, Linear(1, ((one, 1),)), AT))
        elif kind == "load":
            items.append(Load(value, Linear(0, ((one, 1),)), AT, lanes=LANES))
        elif kind == "store":
            items.append(Store("f64", Linear(0, ((one, 1),)), two, AT, lanes=LANES))
        elif kind == "goto":
            items.append(Goto(number, one))
        elif kind == "label":
            items.append(Label(number))
        else:
            items.append(Assign(Var(number, "f64"), one, number))
        if kind in ("let", "linear", "load"):
            known.append(value)
    return items


@given(bodies())
def test_the_same_items_defined_before_they_are_read(items: list[Item]) -> None:
    for given_ones, done in ((items, body_of(items)), (scalar(items), late(scalar(items)))):
        assert sorted(map(repr, done)) == sorted(map(repr, given_ones))
        fixed = (Store, Goto, Label, Assign)
        assert [i for i in done if isinstance(i, fixed)] == [i for i in given_ones if isinstance(i, fixed)]
        defined = {BASE.number, COUNTER.number}
        for item in done:
            assert all(o.number in defined for o in reads(item) if isinstance(o, Val))
            if isinstance(item, Let | LetLinear | Load):
                defined.add(item.value.number)


def run(items: tuple[Item, ...]) -> tuple[dict[int, int], bytes]:
    """Values and memory after straight code of additions, loads and stores, at one place of base and counter."""
    values, memory = {BASE.number: 64, COUNTER.number: 2}, bytearray(range(256))

    def value(operand: Operand) -> int:
        assert isinstance(operand, Val)
        return values[operand.number]

    for item in items:
        if isinstance(item, Let):
            values[item.value.number] = sum(map(value, item.args)) % 2**64
        elif isinstance(item, Load | Store):
            at = (item.address.const + sum(c * value(a) for a, c in item.address.terms)) % 192
            size = access_bytes(item)
            if isinstance(item, Load):
                values[item.value.number] = int.from_bytes(memory[at : at + size], "little")
            else:
                memory[at : at + size] = (value(item.stored) % 2 ** (8 * size)).to_bytes(size, "little")
    return values, bytes(memory)


@st.composite
def overlapping(draw: st.DrawFn) -> list[Item]:
    """Loads, additions and stores of four and eight bytes at places that lie beside, upon and across each other, some
    of them reached by an index that was loaded."""
    items: list[Item] = [Load(Val(10, "i64"), place(0), AT, lanes=LANES)]
    for number in range(11, 11 + draw(st.integers(1, 20))):
        known = [i.value for i in items if isinstance(i, Let | Load)]
        one, two = (draw(st.sampled_from(known)) for _ in range(2))
        where = place(draw(st.integers(-8, 24)) % 2**64)
        where = Linear(where.const, ((one, 4),)) if draw(st.booleans()) and draw(st.booleans()) else where
        kind = draw(st.sampled_from(["let", "load", "store"]))
        if kind == "let":
            items.append(Let(Val(number, "i64"), "add", (one, two), AT))
        elif kind == "load":
            items.append(Load(Val(number, draw(st.sampled_from(["i32", "i64"]))), where, AT, lanes=LANES))
        else:
            items.append(Store(draw(st.sampled_from(["i32", "i64"])), where, two, AT, lanes=LANES))
    return items


@given(overlapping())
def test_loads_see_what_they_saw(items: list[Item]) -> None:
    assert run(body_of(items)) == run(tuple(items))
    assert run(late(scalar(items))) == run(tuple(items))


def test_loads_move_behind_stores_that_are_elsewhere_only() -> None:
    def after(offset: int, ty: Ty = "f64") -> bool:
        load, store = Load(Val(10, "f64"), place(8), AT, lanes=LANES), Store(ty, place(offset % 2**64), Val(9, ty), AT)
        use = Store("f64", place(800), Val(10, "f64"), AT)
        return body_of([load, store, use])[0] == store

    assert [after(k) for k in (-8, 0, 1, 8, 15, 16)] == [True, True, False, False, False, True]
    assert [after(k, "f32") for k in (4, 5, 15, 16)] == [True, False, False, True]


@given(bodies())
def test_no_operation_crosses_a_jump(items: list[Item]) -> None:
    def between(body: list[Item]) -> list[set[str]]:
        parts: list[set[str]] = [set()]
        for item in body:
            if isinstance(item, Goto | Label | Assign):
                parts.append(set())
            else:
                parts[-1].add(repr(item))
        return parts

    assert between(list(body_of(items))) == between(items)
    assert between(list(late(scalar(items)))) == between(scalar(items))


def test_of_an_operation_the_other_operand_is_loaded_first() -> None:
    """``particles``: ``m * v * v``, where machine code has v in a register before it multiplies by m in memory."""
    v, m, p = (Load(Val(10 + k, "f64"), place(8 * k), AT) for k in range(3))
    product, square = (
        Let(Val(20 + k, "f64"), "fmul", args, AT) for k, args in enumerate(((v.value, m.value), (Val(20, "f64"), v.value)))
    )
    total = Let(Val(22, "f64"), "fadd", (square.value, p.value), AT)
    items: list[Item] = [v, m, p, product, square, total, Store("f64", place(16), total.value, AT)]
    assert numbers(late(items)) == [11, 10, 20, 21, 12, 22, -1]
    assert late([replace(i, lanes=LANES) if isinstance(i, Load) else i for i in items])[:3] != (m, v, product)


def test_a_call_and_a_store_that_may_be_to_the_same_place_are_not_passed() -> None:
    load = Load(Val(10, "f64"), place(0), AT)
    use = Let(Val(11, "f64"), "fadd", (load.value, load.value), AT)
    called = Call(Val(12, "f64"), "exp", (Val(9, "f64"),), AT)
    assert numbers(late([load, Store("f64", Linear(0, ((Val(9, "i64"), 1),)), Val(9, "f64"), AT), use])) == [10, -1, 11]
    assert late([load, called, use])[:2] == (load, called)
    assert late([load, Let(Val(13, "f64"), "fneg", (Val(9, "f64"),), AT), use])[1] == load
