"""Candidates are what the rules make of the structure's term: the same place for every accessed unit, the rules by name."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra import explore
from layout_advise.layoutalgebra.derive.structure import Dim, Field, FieldMap, Structure
from layout_advise.layoutalgebra.explore import rewritten_parts
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.families import proposals
from layout_advise.layoutalgebra.explore.placement import place_group
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group, LayoutPlan, whole
from layout_advise.layoutalgebra.explore.relayout import of_another, relayout
from layout_advise.layoutalgebra.explore.rewritten_parts import new_place, runs_of
from layout_advise.layoutalgebra.terms.text import parse
from tests.support.algebra_structures import is_injective, of_sizes


def structure(counts: list[int], used: list[int], size: int, unit: int = 8, gap: int = 0) -> Structure:
    """Elements of ``size`` units; ``gap`` elements unused at the end of every row."""
    stride, dims = size * unit, list[Dim]()
    for k, count in reversed(list(enumerate(counts))):
        dims.insert(0, Dim(count, stride))
        stride *= count + (gap if k == len(counts) - 1 else 0)
    fields = tuple(Field(f"x{k}", k * unit, unit, None, 1 + k % 3, k % 2) for k in used)
    return Structure("s0", "t", 0, stride, tuple(dims), fields)


def check(s: Structure, plan: LayoutPlan) -> int:
    """Every field of every element goes to the same place both ways; the number of units compared."""
    parts = [(part, run) for _, run in runs_of(s, plan) for part in run.parts]
    assert sorted(n for part, _ in parts for n in part.fields) == list(range(len(s.fields)))
    tried = 0
    for part, run in parts:
        unit, begin, steps = part.unit_bytes, dict[int, int](), part.steps()
        by_field = {m.field: m for maps in run.maps for m in maps}
        for b in part.buffers:
            begin[b] = sum(run.bytes[a] for a in begin)
        moved = set()
        for index in itertools.product(*(range(d.count) for d in s.dims)):
            for number in part.fields:
                one, size = by_field[number], s.fields[number].bytes
                old = sum(i * d.stride for i, d in zip(index, s.dims, strict=True)) + s.fields[number].offset
                for k in range(0, size, unit):
                    new = new_place(steps, (old + k) // unit)
                    if not part.record:
                        assert new * unit == begin[one.buffer] + one.place(index) + k, (part.term, plan)
                    moved.add(new)
                    tried += 1
        assert part.term.offsets() == sorted(moved)
    layout = relayout(s, plan)
    assert is_injective(layout)
    assert all(parse(part.term).size * part.unit_bytes <= layout.bytes for part in layout.parts)
    return tried


CASES = [
    structure([24], [0, 3, 4], 10),
    structure([6, 8], [0, 1, 2, 3], 4),
    structure([3, 2, 5], [1, 2, 5], 6),
    structure([3, 5], [0, 2], 3, gap=2),
    structure([17], [0, 1, 2, 3, 4], 5, unit=4),
]
WALKS = [Walk(0, density=0.5), Walk(0, shared=True), Walk(0)]


@pytest.mark.parametrize("case", CASES, ids=lambda s: "x".join(str(d.count) for d in s.dims))
def test_every_candidate_is_its_rules(case: Structure) -> None:
    plans = {p.plan for walk in WALKS for p in proposals(case, walk, (8, 16, 32))}
    assert len(plans) >= 6
    for plan in plans:
        assert check(case, plan) == case.count * len(case.fields)


@settings(max_examples=12)
@given(st.data())
def test_random_structures_too(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 7))
    used = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1)))
    counts = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    s = structure(counts, used, size, unit=data.draw(st.sampled_from([4, 8])), gap=data.draw(st.integers(0, 2)))
    for proposal in proposals(s, data.draw(st.sampled_from(WALKS)), (8, 16, 32)):
        check(s, proposal.plan)


@settings(max_examples=25)
@given(st.data())
def test_fields_of_several_sizes(data: st.DataObject) -> None:
    """Also packed ones, whose places are no multiples of their sizes."""
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 4, 8, 16, 3]), min_size=1, max_size=5))
    gaps = data.draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
    counts = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))
    s = of_sizes(counts, sizes, gaps, data.draw(st.sampled_from([1, 4, 8])))
    for proposal in proposals(s, data.draw(st.sampled_from(WALKS)), (8, 16, 32)):
        check(s, proposal.plan)


@settings(max_examples=20)
@given(st.integers(1, 3), st.sampled_from([2, 3]), st.integers(2, 9), st.sampled_from([2, 4]), st.sampled_from("pg "))
def test_members_stay_together_in_blocks(records: int, together: int, count: int, block: int, kind: str) -> None:
    """The pattern ``* ⊗ A ⊗ S_c`` in blocks: A_n/b ⊗ A_k ⊗ A_b ⊗ A_c."""
    used = [k + (k // together if kind == "g" else 0) for k in range(records * together)]
    s = structure([count], used, used[-1] + 1 + (kind == "g"))
    if kind == "p":
        s = of_sizes([count], [8] * len(used), [int(k == 0) for k in used], 1)
    steps = (AxisStep(0, "div", block),), (AxisStep(0, "mod", block),)
    plan = LayoutPlan((Group(tuple(range(len(used))), *steps, together=together),))
    check(s, plan)
    layout = relayout(s, plan)
    for one, other in itertools.pairwise(layout.fields):
        near = other.place((0,)) == one.place((0,)) + 8
        assert near or other.field % together == 0


def test_the_rules_are_named() -> None:
    s = structure([24], [0, 3, 4], 10)
    everything, steps = (0, 1, 2), whole(s)
    blocks = (AxisStep(0, "div", 5),), (AxisStep(0, "mod", 5),)
    rules = {
        "records": relayout(s, LayoutPlan((Group(everything, steps),))).rules,
        "arrays": relayout(s, LayoutPlan(tuple(Group((n,), steps) for n in everything))).rules,
        "blocks": relayout(s, LayoutPlan((Group(everything, *blocks),))).rules,
        "split": relayout(s, LayoutPlan((Group((0,), steps), Group((1, 2), steps)))).rules,
        "padded": relayout(s, LayoutPlan((Group(everything, steps, record=32),))).rules,
    }
    assert rules == {
        "records": ("7",),
        "arrays": ("4", "7"),
        "blocks": ("8", "5", "4", "7"),
        "split": ("9", "7"),
        "padded": ("7", "8"),
    }


def test_a_map_that_is_not_the_rules_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(s: Structure, group: Group, buffer: int) -> tuple[list[FieldMap], int]:
        maps, size = place_group(s, group, buffer)
        return [FieldMap(m.field, m.buffer, maps[-1 - k].offset, m.axes) for k, m in enumerate(maps)], size

    monkeypatch.setattr(rewritten_parts, "place_group", wrong)
    with pytest.raises(AlgebraError, match="not what the rules make"):
        explore([replace(CASES[0], id="other")])


@pytest.mark.parametrize(
    "case", [structure([40], [0, 1, 3], 4), structure([6, 10], [0, 2], 4), structure([12], [0, 1, 2, 3], 4)]
)
def test_a_layout_is_that_of_another_instance_too(case: Structure) -> None:
    more = replace(case, id="s9", base=0x9000, dims=(Dim(case.dims[0].count * 3 + 1, case.dims[0].stride), *case.dims[1:]))
    seen = 0
    for proposal in proposals(case, Walk(fastest=len(case.dims) - 1), (2, 4)):
        if proposal.plan.chosen is not None:
            continue
        layout = relayout(case, proposal.plan)
        assert of_another(layout, case) == layout
        found = of_another(layout, more)
        assert found == relayout(more, proposal.plan)
        seen += 1
    assert seen > 3
