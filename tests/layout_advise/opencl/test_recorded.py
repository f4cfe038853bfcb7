"""Recorded accesses: the same field graph as from the source where that knows everything, and brute force."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.opencl.graph.differences import differences, only_of
from layout_advise.opencl.graph.fields import field_graph
from layout_advise.opencl.graph.recorded import recorded_graph
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.measure.jobs import name_of
from layout_advise.opencl.measure.processes import items_of
from layout_advise.opencl.measure.record import record_job
from layout_advise.opencl.source.read import read_program
from tests.support.opencl.kernels import FORCES, device, forces_launch

RECORD = read_program(FORCES).records[0]


def test_recorded_and_from_the_source_are_one_graph() -> None:
    launch, program = forces_launch(64), read_program(FORCES)
    items = items_of(record_job(program, program.records[0], launch, name_of(device()), 4, 4096))
    assert [len(item) for item in items] == [64 * 7 + 2] * 4
    found = recorded_graph(program.records[0], items)
    expected = field_graph(
        program.records[0], only_of(program.records[0], kernel_steps(program, program.kernels[0], {"n": 64}))
    )
    assert found.distances == expected.distances
    assert found.accessed == expected.accessed
    assert found.clusters() == field_graph(program.records[0], kernel_steps(program, program.kernels[0])).clusters()


@given(st.lists(st.lists(st.integers(0, 7), max_size=30), min_size=1, max_size=3))
def test_distances_by_brute_force(items: list[list[int]]) -> None:
    found = recorded_graph(RECORD, [np.array(item, dtype=np.uint32) for item in items])
    names = [member.name for member in RECORD.members]
    expected: dict[tuple[str, str], float] = {}
    for item in items:
        for a, b in combinations(sorted(set(item)), 2):
            at = [(4 * k, n) for k, n in enumerate(item)]
            far = max(
                min(abs(p - q) for q, m in at if m == other) for one, other in ((a, b), (b, a)) for p, n in at if n == one
            )
            pair = (min(names[a], names[b]), max(names[a], names[b]))
            expected[pair] = max(far, expected.get(pair, 0))
    assert found.distances == expected


UNLIKE = """typedef struct { float a, b, c, d; } S;
__kernel void k(__global S *p, __global float *other, int n)
{
    const int i = get_global_id(0);
    p[i].a = p[i].b + other[i];
    if (n < 0) p[i].c = 1;
    for (int j = 0; j < n; j++) other[i] += p[j].b;
}
"""


def test_why_both_graphs_differ() -> None:
    program = read_program(UNLIKE)
    (record,), steps = program.records, kernel_steps(program, program.kernels[0])
    source = field_graph(record, steps)
    a, b, d = 0, 1, 3
    found = differences(source, recorded_graph(record, [np.array([b, a], dtype=np.uint32)]), [steps])
    assert {(one.a, one.b): one.cause for one in found} == {
        ("a", "b"): "turns",
        ("a", "c"): "not-run",
        ("b", "c"): "not-run",
    }
    found = differences(source, recorded_graph(record, [np.array([b, a, d], dtype=np.uint32)]), [steps])
    assert {one.cause for one in found if "d" in (one.a, one.b)} == {"copied-whole"}
    near = steps[:3]
    (one,) = differences(field_graph(record, near), recorded_graph(record, [np.array([b, a], dtype=np.uint32)]), [near])
    assert (one.source, one.recorded, one.cause) == (8, 4, "other-memory")
    assert not differences(source, source, [steps])


def test_clusters_for_every_length_of_edge() -> None:
    graph = field_graph(RECORD, kernel_steps(read_program(FORCES), read_program(FORCES).kernels[0]))
    lengths = [above for above, _ in graph.by_epsilon()]
    assert lengths == sorted(lengths)
    assert tuple(groups for _, groups in graph.by_epsilon()) == graph.all_clusterings()
    for (above, groups), (following, _) in pairwise([*graph.by_epsilon(), (1e12, ())]):
        assert graph.clusters(above + 1e-6) == graph.clusters(following) == groups
