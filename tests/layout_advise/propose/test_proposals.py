"""Candidates of an observation: arrays with one index beside the layouts of single structures."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.explore.relayout import ALIGN
from layout_advise.layoutalgebra.merge.merged_candidates import SharedIndex
from layout_advise.layoutalgebra.merge.records import MERGE
from layout_advise.observe.observe import Observation
from layout_advise.propose.proposals import propose
from layout_advise.propose.titles import title, words
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.trace.trace import Registers, Trace
from tests.support.algebra_structures import of_sizes

REGISTERS = Registers((0,) * 16, 0, 0, 0, 0)
RECORDS = replace(of_sizes([4000], [8, 8, 8], [0, 8, 16], 8), id="s9")


def array(number: int, name: str) -> Structure:
    return Structure(f"s{number}", name, 0, 32_000, (Dim(4000, 8),), (Field("value", 0, 8, "double", 4000, 0),))


PLAIN = (array(0, "charge"), array(1, "mass"))
SHARED = SharedIndex({"s0": frozenset((1,)), "s1": frozenset((1,))})


def seen(structures: Collection[Structure], exchanged: tuple[frozenset[str], ...] = ()) -> Observation:
    trace = Trace("f", 1, "step", (), (), 0, False, REGISTERS, (), ())
    derived = tuple(Derived(one, None, 8, 0, False) for one in structures)
    return Observation(Region("f", "function", 0, (), "", 0), trace, derived, (), (), exchanged=exchanged)


def test_plain_arrays_are_merged_only_where_they_have_one_index() -> None:
    assert propose(seen(PLAIN), 10) == ()
    found = propose(seen(PLAIN), 10, shared=[SHARED])
    assert found
    assert [c.id for c in found] == [f"c{k}" for k in range(1, len(found) + 1)]
    assert all(MERGE in c.families for c in found)


def test_where_there_is_nothing_else_plain_arrays_may_begin_with_a_line() -> None:
    lying = tuple(replace(one, base=0x1010, block_base=0x1010) for one in PLAIN)
    (only,) = propose(seen(lying), 10)
    assert (only.id, only.families) == ("c1", (ALIGN,))
    assert all(ALIGN not in c.families for c in propose(seen(lying), 10, shared=[SHARED]))
    assert all(ALIGN not in c.families for c in propose(seen((RECORDS, *lying)), 10))
    assert propose(seen(lying), 10, ("s0", "s1")) == ()
    assert propose(replace(seen(lying), scattered=12), 10) == ()


def test_what_is_swapped_or_refused_is_not_merged() -> None:
    assert propose(seen(PLAIN, (frozenset(("s0", "s7")),)), 10, shared=[SHARED]) == ()
    assert propose(seen(PLAIN), 10, ("s1",), [SHARED]) == ()


def test_one_of_them_has_a_place_in_every_budget() -> None:
    for budget in (1, 2, 3, 10):
        found = propose(seen((RECORDS, *PLAIN)), budget, shared=[SHARED])
        assert any(MERGE in c.families for c in found)
        assert len(found) <= max(2, budget)


def test_a_merged_layout_in_words() -> None:
    found = propose(seen(PLAIN), 10, shared=[SHARED])
    records, blocks = (next(c for c in found if (c.block is not None) == inside) for inside in (False, True))
    assert words(records) == "merged: charge, mass"
    assert words(blocks).startswith("merged, AoSoA\N{MULTIPLICATION SIGN}")
    where = "store charge, mass (4 000 elements each) together, as an array of"
    assert title(records, "f") == f"{where} structures with one element of each: f"
    assert title(blocks, "f").startswith(f"{where} blocks of {blocks.block} structures (AoSoA) with one element of each")
