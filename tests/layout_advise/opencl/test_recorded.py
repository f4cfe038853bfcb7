"""Recorded accesses: the same field graph as from the source where that knows everything, and brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.fieldgraph.memory_distance import FieldAccess, Repeat, Step
from layout_advise.opencl.graph.fields import field_graph
from layout_advise.opencl.graph.recorded import recorded_graph
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.measure.jobs import name_of
from layout_advise.opencl.measure.processes import items_of
from layout_advise.opencl.measure.record import record_job
from layout_advise.opencl.source.read import read_program
from tests.support.opencl.kernels import FORCES, device, forces_launch

RECORD = read_program(FORCES).records[0]


def own(steps: tuple[Step, ...]) -> list[Step]:
    """The accesses to fields alone."""
    kept: list[Step] = []
    for step in steps:
        if isinstance(step, Repeat):
            kept.append(Repeat(step.times, tuple(own(step.body))))
        elif isinstance(step, FieldAccess) and step.field is not None:
            kept.append(step)
    return kept


def test_recorded_and_from_the_source_are_one_graph() -> None:
    launch, program = forces_launch(64), read_program(FORCES)
    items = items_of(record_job(program, program.records[0], launch, name_of(device()), 4, 4096))
    assert [len(item) for item in items] == [64 * 7 + 2] * 4
    found = recorded_graph(program.records[0], items)
    expected = field_graph(program.records[0], own(kernel_steps(program, program.kernels[0], {"n": 64})))
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
