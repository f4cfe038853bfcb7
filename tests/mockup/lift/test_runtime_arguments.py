"""Numbers in the frame that a runtime's function has pointers to, and arguments that it finds on the stack."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.mockup.ir.effects import Gpr, Ty
from layout_advise.mockup.ir.node import Node, StoreTo
from layout_advise.mockup.ir.value_graph import Graph
from layout_advise.mockup.lift.machine_state import FrameEscapes, MachineState, Slot, State
from layout_advise.mockup.lift.runtime_arguments import FramePart, held, low_half, part_at, put, stored_at


def machine() -> MachineState:
    return MachineState(Graph(), True, lambda address, size: None)


def test_two_numbers_of_four_bytes_share_a_cell() -> None:
    owner, state = machine(), State()
    g = owner.graph
    low, high = part_at(g.frame(0, -16), 4), part_at(g.frame(0, -12), 4)
    assert (low, high) == (FramePart(Slot(0, -16), 0, 4), FramePart(Slot(0, -16), 4, 4))
    assert held(owner, state, low).op == "undef"  # never written
    put(owner, state, low, g.const("i64", 0x1_0000_0007))
    put(owner, state, high, g.const("i64", 9))
    assert [held(owner, state, part).imm for part in (low, high)] == [7, 9]
    put(owner, state, low, g.const("i64", 8))
    assert owner.read(state, Slot(0, -16)).imm == (9 << 32) + 8
    assert held(owner, state, part_at(g.frame(0, -16), 8)).imm == (9 << 32) + 8


@given(st.sampled_from([4, 8]), st.sampled_from([4, 8]), st.integers(-8, -1), st.integers(-8, -1))
def test_parts_overlap_where_they_have_a_byte_in_common(one: int, other: int, at: int, to: int) -> None:
    owner = machine()
    parts = [part_at(owner.graph.frame(0, offset * size), size) for offset, size in ((at, one), (to, other))]
    spans = [range(offset * size, offset * size + size) for offset, size in ((at, one), (to, other))]
    assert parts[0].overlaps(parts[1]) == bool(set(spans[0]) & set(spans[1]))


@pytest.mark.parametrize("offset", [0, 8, -6, -9])
def test_what_is_no_cell_of_the_own_frame_is_not_kept_in_variables(offset: int) -> None:
    owner = machine()
    with pytest.raises(FrameEscapes):
        part_at(owner.graph.frame(0, offset), 4)
    with pytest.raises(FrameEscapes):
        part_at(owner.graph.raw("livein", "i64", (), Gpr(7)), 8)


def store(g: Graph, address: Node, value: Node, ty: Ty = "i64") -> Node:
    return g.raw("store", "i64", (address, value), StoreTo(ty, 0, 0))


def test_an_argument_is_what_was_stored_there_last() -> None:
    g = Graph()
    rsp, other = (g.raw("livein", "i64", (), Gpr(n)) for n in (4, 7))

    def at(offset: int) -> Node:
        return g.lin("i64", offset, ((rsp, 1),))

    one, two, half = g.const("i64", 1), g.const("i64", 2), g.const("i32", 3)
    events = [store(g, at(-8), one), store(g, at(-16), two), g.raw("load", "i64", (other,))]
    assert stored_at(g, events, at(-8)) is one
    assert stored_at(g, events, at(-16)) is two
    assert stored_at(g, events, at(-24)) is None
    assert stored_at(g, [*events, store(g, at(-8), two)], at(-8)) is two
    assert stored_at(g, [*events, store(g, at(-12), half, "i32")], at(-16)) is None  # the upper half is another
    assert stored_at(g, [*events, store(g, other, one)], at(-8)) is None  # that may be anywhere
    assert stored_at(g, [*events, g.raw("opaque", "i64", (other,))], at(-8)) is None
    found = stored_at(g, [*events, store(g, at(-8), half, "i32")], at(-8))
    assert found is not None
    assert low_half(g, found).imm == 3
