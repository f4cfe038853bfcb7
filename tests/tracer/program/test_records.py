"""Records by name: members, namespaces, several of one name, and the units that are not parsed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.records.find import find_records, find_variables, has_types
from layout_advise.tracer.program.records.mentions import units_naming
from layout_advise.tracer.program.records.type_text import plain_name, shape
from tests.support.compilers import needs_clang

CPP = """
#include <map>
#include <vector>
namespace sim {
struct base { int b; };
template <class T, unsigned long N> struct box : base { T x[N]; std::map<int, T> m; static int s; };
typedef struct { short a, b; } pair;
}
struct pair { long a; };
sim::box<double, 4> made;
double use(sim::box<double, 4> *p, sim::pair *q, pair *r, std::vector<pair> &v) { return p->x[1] + q->a + r->a + v[0].a; }
"""


def built(folder: Path, name: str, text: str, *command: str) -> ElfBinary:
    (folder / name).write_text(text)
    subprocess.run([*command, "-shared", "-fPIC", "-o", f"{name}.so", name], cwd=folder, check=True)
    return ElfBinary.open_module(folder / f"{name}.so")


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=needs_clang)])
@pytest.mark.parametrize("flags", ["-gdwarf-4", "-gdwarf-5"])
def test_names_with_and_without_namespaces(compiler: str, flags: str, tmp_path: Path) -> None:
    binary = built(tmp_path, "a.cpp", CPP, compiler, *flags.split(), "-O1")
    found = find_records(binary.debug, {"box<double, 4>", "sim::box<double, 4>", "pair", "sim::pair", "none"})
    (box,) = found["box<double, 4>"]
    assert found["sim::box<double, 4>"] == (box,)
    assert [(m.name, m.at) for m in box.members] == [("b", 0), ("x", 8), ("m", 40)]
    assert plain_name(box.name) == "sim::box<double,4>"
    assert {(one.name, one.bytes) for one in found["pair"]} >= {("sim::pair", 4), ("pair", 8)}
    assert [(one.name, one.bytes) for one in found["sim::pair"]] == [("sim::pair", 4)]
    assert found["none"] == ()
    assert {(v.name, v.function, v.record) for v in find_variables(binary.debug, {"q", "r"})} >= {
        ("q", "use", "pair"),
        ("r", "use", "pair"),
    }


def test_only_units_that_name_it_are_parsed(tmp_path: Path) -> None:
    for number in range(3):
        text = (
            f"struct s{number} {{ int a; double xs{number}; }} v{number}; struct both {{ int n[{number + 1}]; }} w{number};"
        )
        (tmp_path / f"{number}.c").write_text(text)
    subprocess.run("gcc -g -shared -fPIC -o all.so 0.c 1.c 2.c", shell=True, cwd=tmp_path, check=True)
    debug = ElfBinary.open_module(tmp_path / "all.so").debug
    assert len(list(units_naming(debug, {"s1"}))) == 1  # xs1 has it as its end, in the same unit
    assert len(list(units_naming(debug, {"both"}))) == 3
    assert len(list(units_naming(debug, {"gone"}))) == 0
    assert sorted((one.file, one.bytes) for one in find_records(debug, {"both"})["both"]) == [
        ("0.c", 4),
        ("1.c", 8),
        ("2.c", 12),
    ]


def test_files_without_types(tmp_path: Path) -> None:
    text = "struct s { int a; }; int f(struct s *p) { return p->a; }"
    assert has_types(built(tmp_path, "a.c", text, "gcc", "-g").debug)
    assert not has_types(built(tmp_path, "b.c", text, "gcc", "-g1").debug)
    assert not has_types(built(tmp_path, "c.c", text, "gcc", "-gsplit-dwarf").debug)
    assert not has_types(built(tmp_path, "d.c", text, "gcc").debug)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("long", "unsigned long", True),
        ("double *", "float *", False),
        ("double[4]", "double[5]", False),
        ("double[4]", "long[4]", True),
        ("box<double, 4UL> *", "box<double, 4> *", True),
        ("node *", "node **", False),
        ("int *[3]", "unsigned int *[3]", True),
    ],
)
def test_shapes(one: str, other: str, same: bool) -> None:
    assert (shape(one) == shape(other)) == same


def test_a_type_of_several_lines_has_a_shape() -> None:
    assert shape("box\n*") == shape("box\n *")
