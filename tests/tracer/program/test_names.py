"""Names and places as the programmer knows them: in his own source, not the linker's and not the library's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.layoutalgebra.bridges.declarations import declare, declare_structure
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.symbols import bare_name
from tests.support.mockups.native import candidate, relayout

VECTOR = """
#include <vector>
struct body { double x, v; };
__attribute__((noinline)) void drift(std::vector<body> &all, double dt)
{
    for (auto &b : all) b.x += dt * b.v;
}
int main() { std::vector<body> all(100); drift(all, 0.5); return all[3].x > 1; }
"""


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("drift(std::vector<body, std::allocator<body> >&, double)", "drift"),
        ("double total<int, 5>(int)", "total<int, 5>"),
        ("ns::Grid<double>::sum(int) const", "ns::Grid<double>::sum"),
        ("(anonymous namespace)::step(int)", "(anonymous namespace)::step"),
        ("ns::Less::operator()(int, int) const", "ns::Less::operator()"),
        ("work(int) [clone .constprop.0]", "work"),
        ("__grid_mod_MOD_step", "step"),
        ("plain", "plain"),
    ],
)
def test_bare_names(name: str, bare: str) -> None:
    assert bare_name(name) == bare


def test_lines_are_the_programs_own(tmp_path: Path) -> None:
    """The first instruction of a loop over a vector is of a header; the allocation, too."""
    (tmp_path / "v.cpp").write_text(VECTOR)
    subprocess.run(["g++", "-g", "-O2", "-o", "v", "v.cpp"], check=True, cwd=tmp_path)
    binary = ElfBinary.open(tmp_path / "v")
    drift = binary.find("drift")
    assert binary.title(drift) == "drift"
    inner = [
        a for f in binary.functions for a in range(f.start, f.end) if (line := binary.line(a)) and line.in_system_header
    ]
    assert inner
    for address in inner:
        line = binary.user_line(address)
        assert line is not None
        assert not line.in_system_header or not binary.inlined(address)


def test_an_array_in_a_structure_is_declared_as_one() -> None:
    hot = (Field("x", 0, 8, "double", 1, 1),)
    cold = (*(Field(f"name[{k}]", 8 + k, 1, "char") for k in range(32)), Field("m[1]", 40, 8, "double"))
    shape = Structure("s0", "p", 0x1000, 4800, (Dim(100, 48),), hot, cold)
    assert "    char name[32];  /* not used here */\n    double m_1;  /* not used here */" in declare_structure(shape)
    split = candidate(relayout(shape, "compact"))
    assert "name_0" not in declare(split)
