"""Layouts beside the best one: joined and split clusters, alike members once, what must stay together together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.explore.partitions import Partition, partition
from layout_advise.opencl.candidates import GraphOfRecord, key
from layout_advise.opencl.graph.alike import alike
from layout_advise.opencl.graph.fields import field_graph
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.neighbours import near_choices
from layout_advise.opencl.rewrite.layouts import layout
from layout_advise.opencl.source.read import read_program

SOURCE = """
typedef struct { float a, b, c, d, e; int unused; } item;
__kernel void k(__global item *p, int n) {
    const int i = get_global_id(0);
    float s = 0;
    for (int j = 0; j < n; j++) s += p[j].a * p[j].b;
    p[i].e = s + p[i].c + p[i].d;
}
"""
PROGRAM = read_program(SOURCE)
STEPS = [kernel_steps(PROGRAM, PROGRAM.kernels[0])]


def record(together: frozenset[str] = frozenset(), classes: bool = True) -> GraphOfRecord:
    own = PROGRAM.records[0]
    return GraphOfRecord(field_graph(own, STEPS[0]), together, 64, {}, alike(own, STEPS) if classes else ())


def beside(groups: Partition, one: GraphOfRecord) -> list[Partition]:
    best = (layout(PROGRAM.records[0], groups, (1,) * len(groups)),)
    return [choice[0].partition for choice in near_choices(best, [one], [best])]


def test_beside_a_structure_of_arrays_the_nearest_are_joined_first() -> None:
    single: Partition = ((0,), (1,), (2,), (3,), (4,), (5,))
    found = beside(single, record())
    assert found[0] == ((0, 1), (2,), (3,), (4,), (5,))  # a and b, which one loop reads
    # a and b are alike, and so are c and d: of {c e} and {d e} one is enough, and of {a c}, {a d}, {b c} and {b d}
    pairs = [next(set(group) for group in one if len(group) == 2) for one in found]
    assert sorted((len(pair & {0, 1}), len(pair & {2, 3})) for pair in pairs) == [(0, 1), (0, 2), (1, 0), (1, 1), (2, 0)]
    assert len(beside(single, record(classes=False))) == 10


def test_members_are_taken_out_unless_they_must_stay() -> None:
    groups: Partition = ((0, 1, 2), (3, 4), (5,))
    found = beside(groups, record())
    assert ((0,), (1, 2), (3, 4), (5,)) in found
    assert ((0, 1), (2,), (3, 4), (5,)) in found
    kept = beside(groups, record(frozenset({"a", "b"})))
    assert all(any({0, 1} <= set(group) for group in one) for one in kept)
    assert ((0, 1), (2,), (3, 4), (5,)) in kept


@given(st.lists(st.integers(0, 5), min_size=6, max_size=6), st.sampled_from([1, 8]))
def test_each_is_one_step_away_and_new(homes: list[int], tile: int) -> None:
    groups = partition([[k for k in range(6) if homes[k] == home] for home in range(6)])
    own = PROGRAM.records[0]
    best = (layout(own, groups, [tile if len(group) > 1 else 1 for group in groups]),)
    found = near_choices(best, [record()], [best])
    assert len({key(one) for one in found}) == len(found)
    for (one,) in found:
        assert sorted(k for group in one.partition for k in group) == list(range(6))
        assert abs(len(one.partition) - len(groups)) == 1
        assert {t for group, t in zip(one.partition, one.tiles, strict=True) if len(group) > 1} <= {tile, 1}
