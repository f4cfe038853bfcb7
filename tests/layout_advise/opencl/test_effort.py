"""Analysis of long kernels: its work grows with the source, counted in calls of functions instead of in time."""

from __future__ import annotations

import sys
from types import FrameType

from layout_advise.opencl.graph.fields import field_graph
from layout_advise.opencl.graph.steps import kernel_steps
from layout_advise.opencl.source.read import read_program

MEMBERS = 24


def long_kernel(lines: int) -> str:
    """About so many lines: loops that call functions with loops, branches, and accesses to 24 members."""
    fields = " ".join(f"float m{k};" for k in range(MEMBERS))
    text = [f"typedef struct {{ {fields} }} Big;"]
    for h in range(20):
        text += [f"float help{h}(__global Big *p, int i, float v)", "{", f"    for (int k = 0; k < {h + 2}; k++)"]
        text += [f"        v += p[i + k].m{h} * p[i].m{(h * 7 + 3) % MEMBERS};", "    return v;", "}"]
    text += ["__kernel void big(__global Big *p, int n)", "{", "    const int i = get_global_id(0);", "    float s = 0;"]
    k = 0
    while len(text) < lines - 2:
        a, b = k * 5 % MEMBERS, (k * 11 + 1) % MEMBERS
        text += [f"    for (int j = 0; j < n; j++) {{ // {k}", f"        s += p[j].m{a} * p[i].m{b};"]
        text += [f"        s = help{k % 20}(p, j, s);", "    }", f"    if (s > {k})", f"        p[i].m{b} = s;"]
        text += [f"    s += p[i].m{(a + n) % MEMBERS} * {n}.0f;" for n in range(4)]
        k += 1
    return "\n".join([*text, "    p[i].m0 = s;", "}"])


def calls_of_analysis(lines: int) -> int:
    """Calls of Python functions from the source to the graph."""
    count = 0

    def counted(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal count
        count += event == "call"

    text = long_kernel(lines)
    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        program = read_program(text)
        graph = field_graph(program.records[0], kernel_steps(program, program.kernels[0]))
    finally:
        sys.setprofile(before)
    assert len(graph.distances) == MEMBERS * (MEMBERS - 1) // 2
    return count


def test_a_kernel_of_a_thousand_lines() -> None:
    text = long_kernel(1000)
    assert text.count("\n") + 1 >= 990
    some, more = calls_of_analysis(250), calls_of_analysis(1000)
    assert more < 10_000_000  # a second has a few million of them
    assert more < 12 * some
