"""Clusters that the field graph does not divide are cut evenly."""

from __future__ import annotations

from layout_advise.opencl.candidates import GraphOfRecord, even_choices
from layout_advise.opencl.graph.fields import field_graph
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.source.read import read_program

SOURCE = """
typedef struct { float a, b, c, d, e; int unused; } item;
__kernel void k(__global item *p) { const int i = get_global_id(0); p[i].e = p[i].a + p[i].b + p[i].c + p[i].d; }
"""


def straight(together: frozenset[str] = frozenset()) -> GraphOfRecord:
    program = read_program(SOURCE)
    return GraphOfRecord(field_graph(program.records[0], kernel_steps(program, program.kernels[0])), together, 64)


def test_a_cluster_is_cut_in_two_and_more_parts() -> None:
    one = straight()
    assert one.partitions()[0] == ((0, 1, 2, 3, 4), (5,))
    found = [choice[0].partition for choice in even_choices([one], [])]
    assert [sorted(map(len, groups)) for groups in found] == [[1, 2, 3], [1, 1, 2, 2]]  # with the one that is not accessed
    assert all({member.name for member in choice[0].clusters[0].members} >= {"a"} for choice in even_choices([one], []))


def test_what_was_tried_is_not_tried_again_and_what_must_stay_is_not_cut() -> None:
    one = straight()
    first, *rest = even_choices([one], [])
    assert len(even_choices([one], [first])) == len(rest)
    kept = straight(frozenset({"a", "e"}))
    assert {choice[0].partition for choice in even_choices([kept], [])} <= {((0, 1, 2, 3, 4), (5,))}
