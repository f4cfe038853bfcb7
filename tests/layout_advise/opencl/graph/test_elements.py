"""Elements that a work item reads at once: by how the source spells them."""

from __future__ import annotations

import pytest

from layout_advise.opencl.graph.elements import elements_around
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.source.read import read_program

HEAD = """typedef struct { float a, b; float4 c; } cell;
float at(__global const cell *p, int k) { return p[k].a; }
__kernel void k(__global cell *p, __global cell *q, int n) { const int i = get_global_id(0); """


@pytest.mark.parametrize(
    ("body", "around"),
    [
        ("p[i].a = p[i].b * 2;", {"b": 1}),  # what is only written has no place here
        ("p[i].b += p[i].a * (p)[(i)].a;", {"a": 1, "b": 1}),
        ("q[i].a = p[i - 1].a + p[i].a + p[i + 1].a + p[i].b;", {"a": 3, "b": 1}),
        ("q[i].a = at(p, i - 1) + at(p, i) + at(p, i + 1) + at(p, i);", {"a": 3}),
        ("for (int j = -1; j < 2; j++) q[i].a += p[i + j].b;", {"a": 1, "b": 1}),  # a loop's turns are counted as such
        ("q[i].a = p[i].c.x + p[i].c.y + p[i + n].c.x;", {"c": 2}),
        ("cell own = p[i], next = p[i + 1]; q[i].a = own.a + next.a + next.b;", {"a": 2, "b": 1}),
        ("__global cell *o = p + i; q[i].a = o->a + (*o).b + o[1].b;", {"a": 1, "b": 2}),
    ],
    ids=["own", "changed", "beside", "helper", "loop", "vector", "copies", "pointer"],
)
def test_elements_read_at_once(body: str, around: dict[str, int]) -> None:
    program = read_program(f"{HEAD}{body} }}")
    (record,) = program.records
    assert elements_around(record, [kernel_steps(program, program.kernels[0])]) == around
