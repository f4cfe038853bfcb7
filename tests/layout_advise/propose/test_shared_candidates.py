"""Layouts that several regions are measured in: one list with one id each, and what a region has of it."""

from __future__ import annotations

from dataclasses import replace

from layout_advise.layoutalgebra.bridges.printed_maps import printed_map
from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.observe.observe import Observation
from layout_advise.propose.proposals import propose
from layout_advise.propose.shared_candidates import fitted, layout_key, place_of, renumbered, shared_candidates, with_own
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.trace.trace import Registers, Trace
from tests.support.algebra_structures import of_sizes

RECORD = replace(of_sizes([4000], [8, 8, 8], [0, 8, 16], 8), base=0x10000)
OTHER = replace(RECORD, id="s1", base=0x90000)
BUDGET = 4


def proposed(structure: Structure, budget: int = BUDGET) -> tuple[Candidate, ...]:
    """The layouts of a region that uses ``structure`` only."""
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    trace = Trace("f", 1, "step", (), (), 0, False, registers, (), ())
    seen = Observation(Region("f", "function", 0, (), "", 0), trace, (Derived(structure, None, 8, 0, False),), (), ())
    return propose(seen, budget)


def called(structure: Structure, name: str) -> Structure:
    """The same memory as another region numbers it."""
    return replace(structure, id=name, name=f"of {name}")


def test_one_layout_of_one_memory_is_one_candidate_whatever_it_is_called() -> None:
    here, there = proposed(RECORD), proposed(called(RECORD, "s4"))
    assert [layout_key(c) for c in here] == [layout_key(c) for c in there]
    shared = shared_candidates([here, there], BUDGET)
    assert [c.id for c in shared] == [f"c{k}" for k in range(1, len(here) + 1)]
    assert [layout_key(c) for c in shared] == [layout_key(c) for c in here]


def test_regions_take_turns_within_the_budget() -> None:
    many = proposed(RECORD, 8)
    shared = shared_candidates([many[:3], many[3:]], BUDGET)
    assert [layout_key(c) for c in shared] == [layout_key(many[k]) for k in (0, 3, 1, 4)]


def test_a_region_gets_them_with_its_own_structures_and_the_same_ids() -> None:
    shared = shared_candidates([proposed(RECORD)], BUDGET)
    own = called(RECORD, "s7")
    fit = fitted(shared, [own, OTHER])
    assert [c.id for c in fit] == [c.id for c in shared]
    assert {r.structure.id for c in fit for r in c.relayouts} == {"s7"}


def test_fields_are_called_as_the_region_calls_them() -> None:
    """cjpeg: a plain array is `value` where nothing names it, and another region knows its name."""
    shared = shared_candidates([proposed(RECORD)], BUDGET)
    own = replace(RECORD, fields=tuple(replace(f, name=f"own_{f.name}") for f in RECORD.fields))
    for one in fitted(shared, [own]):
        (layout,) = one.relayouts
        assert sorted(name for part in layout.parts for name in part.fields) == sorted(f.name for f in own.fields)
        assert all(printed_map(layout, part) for part in layout.parts)


def test_what_does_not_fit_a_region_is_left_out() -> None:
    shared = shared_candidates([proposed(RECORD)], BUDGET)
    assert fitted(shared, [OTHER]) == ()  # other memory
    assert fitted(shared, [replace(RECORD, fields=RECORD.fields[:2])]) == ()  # other fields
    assert place_of(OTHER) != place_of(RECORD)


def test_what_any_region_could_propose_is_not_added_for_one() -> None:
    many = proposed(RECORD, 8)
    assert with_own(many[:2], many, 8, 9) == many[:2]
    assert [c.id for c in renumbered(many[:2], 9)] == ["c9", "c10"]
