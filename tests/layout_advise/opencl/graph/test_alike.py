"""Members that kernels access alike."""

from __future__ import annotations

from layout_advise.opencl.graph.alike import alike
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.source.read import read_program

SOURCE = """
typedef struct { float a, b, c, d, e; double wide; int f, g, left, over; } item;
__kernel void k(__global const item *from, __global item *to, int n)
{
    const int i = get_global_id(0);
    float sum = from[i].a + from[i].b;
    for (int j = 0; j < n; j++)
        sum += from[j].b * from[j].a - from[j].c;
    to[i].d = sum;
    to[i].e = sum;
    to[i].f += 1;
    to[i].g++;
    to[i].wide = sum;
}
"""


def test_alike_is_what_is_accessed_alike_in_each_loop() -> None:
    program = read_program(SOURCE)
    (record,) = program.records
    found = alike(record, [kernel_steps(program, program.kernels[0])])
    # of one size, read or written or changed as often in the same loops; what is not accessed stays together
    assert found == (("a", "b"), ("c",), ("d", "e"), ("wide",), ("f", "g"), ("left", "over"))


def test_members_are_apart_where_another_kernel_tells_them_apart() -> None:
    program = read_program(SOURCE + "__kernel void l(__global item *p) { p[get_global_id(0)].a = 0; }")
    (record,) = program.records
    found = alike(record, [kernel_steps(program, kernel) for kernel in program.kernels])
    assert found[:2] == (("a",), ("b",))
