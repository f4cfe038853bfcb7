"""Arrays with one index as one array of records: the map against brute force, and which candidates are proposed."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as cartesian

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.bridges.declarations import declare
from layout_advise.layoutalgebra.derive.structure import (
    Candidate,
    DerivationStep,
    Dim,
    Field,
    Relayout,
    Structure,
    first_buffers,
    new_buffers,
)
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.explore.families import MOST_GROWN
from layout_advise.layoutalgebra.explore.plans import Group, LayoutPlan, whole
from layout_advise.layoutalgebra.explore.relayout import relayout
from layout_advise.layoutalgebra.merge.merged_candidates import (
    MOST_MERGED,
    SharedIndex,
    groupings,
    merged_candidates,
    with_merged,
)
from layout_advise.layoutalgebra.merge.records import MERGE, merge, thought_of
from tests.support.algebra_structures import is_injective, of_sizes


def array(number: int, count: int, size: int = 8, inner: int = 1) -> Structure:
    """A plain array of numbers."""
    dims = (Dim(count, size * inner), *((Dim(inner, size),) if inner > 1 else ()))
    own = (Field("value", 0, size, {8: "double", 4: "float"}.get(size), 100, 0),)
    return Structure(f"s{number}", f"a{number}", 0x10000 * (number + 1), count * inner * size, dims, own)


def shared(parts: list[Structure], loops: list[set[int]] | None = None) -> SharedIndex:
    return SharedIndex({one.id: frozenset(loops[k] if loops else {1}) for k, one in enumerate(parts)})


def merged(
    parts: list[Structure], indices: list[SharedIndex] | None = None, walks: dict[str, Walk] | None = None
) -> list[Candidate]:
    """The candidates of arrays with these indices; with one for all of them without."""
    return merged_candidates(parts, indices if indices is not None else [shared(parts)], walks or {}, (16, 32))


def groups_of(candidate: Candidate) -> set[tuple[str, ...]]:
    return {names for layout in candidate.stored for names in layout.arrays}


def check_places(layouts: tuple[Relayout, ...], parts: tuple[Structure, ...]) -> None:
    """Every byte of every part has a place of its own in the buffer that they share."""
    used: set[int] = set()
    for layout, part in zip(layouts, parts, strict=True):
        assert is_injective(layout)
        for index in cartesian(*(range(dim.count) for dim in part.dims)):
            for mapped in layout.fields:
                start = mapped.place(index)
                places = set(range(start, start + part.fields[mapped.field].bytes))
                assert not used & places
                used |= places
    assert max(used) < layouts[0].buffers[0].bytes


@given(st.lists(st.sampled_from((1, 2, 4, 8)), min_size=2, max_size=6), st.integers(2, 9), st.integers(1, 4), st.data())
def test_parts_share_a_buffer_without_meeting(sizes: list[int], count: int, inner: int, data: st.DataObject) -> None:
    counts = [count + data.draw(st.integers(0, 2)) for _ in sizes]
    parts = tuple(array(k, n, size, inner) for k, (size, n) in enumerate(zip(sizes, counts, strict=True)))
    layouts = merge(parts)
    assert len({layout.merged for layout in layouts}) == 1
    check_places(layouts, parts)
    block = data.draw(st.integers(2, 4))
    one = thought_of(parts)
    if one.dims[-1].count > block:
        steps = whole(one)
        last = len(one.dims) - 1
        div, mod = replace(steps[-1], part="div", block=block), replace(steps[-1], part="mod", block=block)
        plan = LayoutPlan((Group(tuple(range(len(one.fields))), (*steps[:last], div), (mod,)),))
        check_places(merge(parts, plan), parts)


@given(st.integers(2, 9), st.lists(st.integers(1, 3), min_size=1, max_size=2), st.integers(0, 3))
def test_records_are_merged_with_numbers(count: int, sizes: list[int], gap: int) -> None:
    """Of a structure with several fields those that are used, whatever lies between them."""
    records = of_sizes([count], [8 for _ in sizes], [8 * gap for _ in sizes], 8)
    parts = (replace(records, id="s7"), array(1, count, 4))
    check_places(merge(parts), parts)


def test_what_is_not_used_stays_in_a_structure_of_its_own() -> None:
    cold = (Field("spare", 8, 8, "double"),)
    own = (Field("x", 0, 8, "double", 10, 0),)
    records = Structure("s7", "records", 0, 16_000, (Dim(1000, 16),), own, cold)
    found = merged([records, array(1, 1000)])
    assert all(c.keeps_cold for c in found)
    text = declare(next(c for c in found if c.block is None))
    assert text.count("struct ") == 2
    assert "records_cold" in text


@given(st.lists(st.sampled_from((1, 2, 4, 8)), min_size=2, max_size=5), st.integers(2, 9), st.integers(1, 3))
def test_the_rules_make_the_arrays_of_the_records(sizes: list[int], count: int, inner: int) -> None:
    """The structure of arrays of the records is what the program has: right to left, that is the candidate."""
    one = thought_of(tuple(array(k, count, size, inner) for k, size in enumerate(sizes)))
    apart = relayout(one, LayoutPlan(tuple(Group((n,), whole(one)) for n in range(len(one.fields)))))
    for mapped in apart.fields:
        size = one.fields[mapped.field].bytes
        assert mapped.offset == 0
        assert [a.stride for a in mapped.axes] == ([size * inner, size] if inner > 1 else [size])


def test_the_way_is_told_step_by_step() -> None:
    (_, records, *_) = merged([array(0, 100), array(1, 100)])
    assert [layout.steps for layout in records.relayouts] == [
        (DerivationStep(MERGE, "A_2 ⊗ A_100"), DerivationStep("4", "A_100 ⊗ A_2", True))
    ] * 2
    (blocks, *_) = merged([array(0, 100), array(1, 100)])
    told = [(step.rule, step.term) for step in blocks.relayouts[0].steps]
    assert told[-2:] == [("5", "A_25 ⊗ A_4 ⊗ A_2"), ("4", "A_25 ⊗ A_2 ⊗ A_4")]


@given(st.lists(st.sampled_from((1, 2, 4, 8)), min_size=2, max_size=5), st.integers(2, 30), st.integers(1, 3))
def test_each_way_has_the_rules_of_the_derivation_and_ends_at_the_layout(sizes: list[int], count: int, inner: int) -> None:
    for candidate in merged([array(k, count, size, inner) for k, size in enumerate(sizes)]):
        for layout in candidate.relayouts:
            assert layout.steps[0].rule == MERGE
            assert {step.rule for step in layout.steps} <= set(candidate.derivation)
            undone = [step.undone for step in layout.steps[1:]]
            assert undone == sorted(undone, reverse=True)  # back first, then on
            if len(set(sizes)) == 1 and candidate.block is None:
                assert layout.steps[-1].term == layout.term


def test_plain_arrays_get_candidates_where_they_share_an_index() -> None:
    parts = [array(0, 1000), array(1, 1001, 4)]
    assert explore(parts) == ()
    found = merged(parts)
    assert [c.families for c in found if c.block is None] == [(MERGE,)]
    assert all(groups_of(c) == {("a0", "a1")} for c in found)
    assert all(new_buffers(c.relayouts) == [(parts[0], c.relayouts[0].buffers[0])] for c in found)
    assert all(first_buffers(c.relayouts) == [0, 0] for c in found)
    assert all(c.bytes == c.relayouts[0].bytes >= 1001 * 12 for c in found)
    assert "struct a0_a1 {\n    double a0;" in declare(next(c for c in found if c.block is None))


def test_gathered_arrays_are_better_off_merged_by_the_model() -> None:
    parts = [array(0, 1000), array(1, 1000)]
    (best, *_) = merged(parts, None, {s.id: Walk(0, True) for s in parts})
    assert best.block is None
    assert best.cost["relative"] < 0.6


def test_arrays_of_other_lengths_are_not_merged() -> None:
    """The records would be mostly empty; those of one length still go together."""
    parts = [array(0, 10), array(1, 1000), array(2, 1000)]
    found = merged(parts)
    assert found
    assert all(groups_of(c) == {("a1", "a2")} for c in found)
    assert merged(parts[:2]) == []
    assert MOST_GROWN * 1000 * 16 > 10 * 8 + 1000 * 8


def test_rows_go_with_rows_only() -> None:
    parts = [array(0, 60, 8, 4), array(1, 240), array(2, 60, 4, 4)]
    found = merged(parts)
    assert found
    assert all(groups_of(c) == {("a0", "a2")} for c in found)


def test_many_arrays_are_also_merged_in_groups() -> None:
    parts = [array(k, 5000) for k in range(27)]
    ways = [sorted(len(group) for group in way) for way in groupings(tuple(parts), shared(parts).loops)]
    assert sorted(ways) == sorted([[27], [3] * 9, [9] * 3])
    assert len(merged(parts, None, {s.id: Walk(0) for s in parts})) == MOST_MERGED
    prime = tuple(array(k, 5000) for k in range(5))
    assert sorted(len(g) for way in groupings(prime, shared(list(prime)).loops) for g in way) == [2, 3, 5]


def test_groups_follow_the_loops() -> None:
    parts = [array(k, 5000) for k in range(4)]
    loops = shared(parts, [{1, 2}, {2}, {1, 2}, {2}]).loops
    ways = [{tuple(s.id for s in group) for group in way} for way in groupings(tuple(parts), loops)]
    assert {("s0", "s2"), ("s1", "s3")} in ways


def test_several_indices_at_once() -> None:
    """Each by itself, and all of them; where one candidate has two buffers, their parts have theirs."""
    parts = [array(k, 5000) for k in range(4)]
    found = merged(parts, [shared(parts[:2]), shared(parts[2:])])
    assert len(found) <= MOST_MERGED
    both = next(c for c in found if len(c.relayouts) == 4)
    assert groups_of(both) == {("a0", "a1"), ("a2", "a3")}
    assert first_buffers(both.relayouts) == [0, 0, 1, 1]


def test_the_best_one_has_a_place_among_others() -> None:
    records = replace(of_sizes([4000], [8, 8, 8], [0, 8, 16], 8), id="s9")
    parts = [array(0, 4000), array(1, 4000)]
    structures, joint = [records, *parts], merged(parts)
    others = explore(structures, budget=3)
    found = with_merged(others[:3], joint, structures, 4)
    assert [c.id for c in found] == ["c1", "c2", "c3", "c4"]
    assert [c.families for c in found if MERGE in c.families] == [joint[0].families]
    assert len(with_merged((), joint, structures, 4)) == len(joint)
