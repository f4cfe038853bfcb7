"""Field graphs from source: the accesses in their order, trip counts, distances, clusters."""

from __future__ import annotations

import pytest

from layout_advise.layoutalgebra.fieldgraph.memory_distance import FieldAccess, Repeat, Step
from layout_advise.opencl.graph.fields import field_graph, united
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.source.read import read_program
from tests.support.opencl.kernels import FORCES

HEAD = """
typedef struct { float a, b, c; int n[4]; } S;
void twice(__global S *p, int k) { p[k].a = p[k].b; p[k].b = p[k].a; }
float of(S s) { return s.c; }
"""


def steps(body: str, known: dict[str, int] | None = None) -> tuple[Step, ...]:
    program = read_program(f"{HEAD}__kernel void k(__global S *p, __global float *o, __local float *t, int n) {{ {body} }}")
    return kernel_steps(program, program.kernels[0], known)


def a(*names: str) -> tuple[FieldAccess, ...]:
    """Accesses of four bytes; ``-`` is other memory."""
    return tuple(FieldAccess(None if name == "-" else f"S.{name}", 4) for name in names)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("p[0].a = p[1].b + o[2];", a("b", "-", "a")),
        ("p[0].a += p->c; p[0].n[2]++;", a("c", "a", "n")),
        ("__global S *q = &p[3]; q->b = (*q).c;", a("c", "b")),
        ("__global float *w = &p[3].b; *w = 1;", a("b")),
        ("twice(p, 3);", a("b", "a", "a", "b")),
        ("S s = p[0]; t[0] = s.a + s.b;", a("a", "b")),
        ("t[0] = of(p[2]);", a("c")),
        ("S s; s.a = 1; s.b = 2; t[1] = s.a;", ()),
        ("if (p[0].a > 0) o[0] = 1; else p[0].b = 2;", a("a", "-", "b")),
        ("p[p[0].n[1]].a = 1;", a("n", "a")),
        ("atomic_inc(&p[0].n[2]);", a("n")),
        ("o[0] = sizeof(p[0]) + (n > 2 ? p[0].a : p[0].b);", a("a", "b", "-")),
    ],
)
def test_accesses_in_their_order(body: str, expected: tuple[Step, ...]) -> None:
    assert steps(body) == expected


@pytest.mark.parametrize(
    ("head", "times"),
    [
        ("for (int j = 0; j < 12; j++)", 12),
        ("for (int j = 3; j <= 12; j += 2)", 5),
        ("for (int j = 20; j > 0; j -= 5)", 4),
        ("for (uint j = 64; j > 0; j >>= 1)", 7),
        ("for (int j = 1; j < 64; j *= 2)", 7),
        ("for (int j = 0; 8 > j; ++j)", 8),
        ("for (int j = 0; j < get_local_size(0); j++)", 256),
        ("for (int j = get_local_size(0) / 2; j > 0; j /= 2)", 8),
        ("for (int j = 0; j < get_global_size(0); j++)", 1_000_000),
        ("for (int j = 0; j < n; j++)", 512_000),
        ("const int m = 6; for (int j = 0; j < m * 2; j++)", 12),
        ("int j = 0; while (j++ < n)", 512_000),
        ("int j = 0; while (j++ < get_local_size(0))", 256),
    ],
)
def test_trip_counts(head: str, times: int) -> None:
    (found,) = steps(f"{head} p[0].a = 1;")
    assert found == Repeat(times, a("a"))


def test_bounds_that_are_known() -> None:
    assert steps("for (int j = 0; j < n; j++) p[j].a = 1;", {"n": 77}) == (Repeat(77, a("a")),)


def test_clusters_of_the_n_body_kernel() -> None:
    program = read_program(FORCES)
    graph = field_graph(program.records[0], kernel_steps(program, program.kernels[0]))
    names = [m.name for m in graph.record.members]
    found = {tuple(names[k] for k in group) for group in graph.clusters()}
    assert found == {("x", "y", "z", "m"), ("vx", "vy"), ("vz", "id")}
    assert graph.distances["x", "y"] == 8
    assert graph.distances["vx", "x"] > 1e6


def test_of_several_kernels_the_greatest_distance_counts() -> None:
    program = read_program(
        "typedef struct { float a, b; } S; __kernel void one(__global S *p) { p[0].a = p[0].b; }"
        "__kernel void two(__global S *p, int n) { p[0].a = 0; for (int j = 0; j < n; j++) p[j].b = 0; }"
    )
    graphs = [field_graph(program.records[0], kernel_steps(program, kernel)) for kernel in program.kernels]
    assert [len(graph.clusters()) for graph in graphs] == [1, 2]
    assert united(graphs).distances["a", "b"] == max(graph.distances["a", "b"] for graph in graphs)
