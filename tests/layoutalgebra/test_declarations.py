"""Suggested declarations have the types of the source, as C calls them, and their members where the maps have them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra import explore
from layout_advise.layoutalgebra.bridges.changes import source_change
from layout_advise.layoutalgebra.bridges.declarations import declare, declare_structure, identifier, new_array
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Relayout, Structure
from tests.support import slower
from tests.support.mockups.native import candidate, relayout

Kind = Literal["heap", "global", "stack", "mapped"]


@pytest.mark.parametrize(
    ("type_", "size", "called"),
    [
        ("real(kind=8)", 8, "double x;"),
        ("real(kind=4)", 4, "float x;"),
        ("integer(kind=4)", 4, "int32_t x;"),
        ("logical(kind=1)", 1, "int8_t x;"),
        ("_Bool", 1, "_Bool x;"),
        ("unsigned int", 4, "unsigned int x;"),
        ("node *", 8, "uint64_t x;"),
        (None, 4, "uint32_t x;"),
    ],
)
def test_types(type_: str | None, size: int, called: str) -> None:
    """A cell's `real(8)` was a `uint64_t` in what the report suggested."""
    fields = (Field("x", 0, size, type=type_, reads=1), Field("y", 16, 8, type="double", reads=1))
    assert called in declare_structure(Structure("s0", "cells", 4096, 2400, (Dim(100, 24),), fields))


def cells(*names: str, cold: tuple[str, ...] = (), count: int = 100, kind: Kind = "heap") -> Structure:
    """An array of records of doubles, in the order of the names; those in ``cold`` are not used."""
    every = [Field(name, 8 * k, 8, "double", int(name not in cold)) for k, name in enumerate(names)]
    used, rest = (tuple(f for f in every if bool(f.reads) is wanted) for wanted in (True, False))
    dims = (Dim(count, 8 * len(names)),)
    return Structure("s0", "p", 4096, 8 * len(names) * count, dims, used, rest, kind=kind, type="cell", alloc_site="a.c:7")


def change_of(structure: Structure, families: tuple[str, ...], **changes: bool) -> list[str]:
    found = next(c for c in explore([structure]) if c.families == families)
    return source_change(replace(found, **changes)).splitlines()  # type: ignore[arg-type]


def test_a_change_keeps_what_is_not_used_in_its_place() -> None:
    assert change_of(cells("x", "y", "vx", "m", cold=("x", "y")), ("soa", "compact")) == [
        " struct cell {  /* 32 bytes */",
        "     double x, y;",
        "-    double vx, m;",
        " };",
        " struct cell *p = malloc(100 * sizeof *p);  /* a.c:7 */",
        "+double *p_vx = malloc(100 * sizeof *p_vx);",
        "+double *p_m = malloc(100 * sizeof *p_m);",
        "-p[i].vx, p[i].m  /* in the loop */",
        "+p_vx[i], p_m[i]  /* in the loop */",
    ]


def test_a_temporary_change_takes_nothing_away() -> None:
    lines = change_of(cells("x", "y", "vx", "m", cold=("x", "y")), ("soa", "compact"), temporary=True)
    assert [line for line in lines if line.startswith("-")] == ["-p[i].vx, p[i].m  /* in the loop */"]


def test_a_change_of_cxx_names_vectors() -> None:
    structure = replace(cells("x", "vx", "m", cold=("x",)), alloc_site="a.cpp:7")
    assert change_of(structure, ("soa", "compact"))[4:7] == [
        " std::vector<cell> p(100);  /* a.cpp:7 */",
        "+std::vector<double> p_vx(100);",
        "+std::vector<double> p_m(100);",
    ]


@pytest.mark.parametrize("kind", ["heap", "global"])
@pytest.mark.parametrize(("suffix", "cold"), [("c", ()), ("c", ("y",)), *slower(("cpp", ())), ("cpp", ("y",))])
def test_changes_are_c(kind: Kind, cold: tuple[str, ...], suffix: str, tmp_path: Path) -> None:
    """What comes compiles together with what stays, and so does what is there now."""
    structure = replace(cells("x", "y", "z", "w", cold=cold, kind=kind), alloc_site=f"a.{suffix}:7")
    head, standard = (
        ("#include <stdlib.h>", "gnu11") if suffix == "c" else ("#include <cstdlib>\n#include <vector>", "c++11")
    )
    for number, one in enumerate(explore([structure])):
        lines = source_change(one).splitlines()
        for marks in (" -", " +"):
            code = [line[1:] for line in lines if line[0] in marks]
            *declared, access = [line for line in code if line]
            assert access.endswith("/* in the loop */")
            source = tmp_path / f"c{number}.{suffix}"
            body = "\n".join([*declared, f"for (int i = 0; i < 100; i++) total += {access.replace(', ', ' + ')};"])
            source.write_text(f"{head}\ndouble f(void) {{ double total = 0;\n{body}\nreturn total; }}\n")
            subprocess.run(["gcc", f"-std={standard}", "-fsyntax-only", str(source)], check=True)


@pytest.mark.parametrize(
    ("kind", "declared"), [("global", "double p[50][2][2];"), ("heap", "double (*p)[2][2] = malloc(50 * sizeof *p);")]
)
def test_elements_that_are_arrays_have_no_members(kind: Kind, declared: str, tmp_path: Path) -> None:
    """Of a wave's field the report told to replace ``datarr[i][j].[0][0]``, which is no C."""
    lines = change_of(cells("[0][0]", "[0][1]", "[1][0]", "[1][1]", count=50, kind=kind), ("soa",))
    assert lines[0] == f"-{declared}  /* a.c:7 */"
    today = [line[1:] for line in lines if line.startswith("-")]
    assert today[-1].startswith("p[i][0][0], p[i][0][1], ")
    source = "#include <stdlib.h>\nvoid f(int i)\n{\n" + today[0] + "\n" + today[-1].partition("  /*")[0] + ";\n}\n"
    (tmp_path / "today.c").write_text(source)
    subprocess.run(["gcc", "-fsyntax-only", "today.c"], cwd=tmp_path, check=True)


def test_elements_of_which_a_part_is_not_known_stay_records() -> None:
    lines = change_of(replace(cells("[0]", "[1]"), dims=(Dim(66, 24),)), ("soa", "compact"))
    assert lines[0].startswith("-struct cell {")


TYPES = {1: "char", 2: "short", 4: "float", 8: "double"}
COUNT = 24


@st.composite
def layouts(draw: st.DrawFn) -> Relayout:
    """Fields of several sizes, the larger ones first as a padded layout has them, in blocks or as records."""
    sizes = sorted(draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=2, max_size=6)), reverse=True)
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    fields = tuple(Field(f"f{k}", at, n, TYPES[n], 1, 1) for k, (at, n) in enumerate(zip(starts, sizes, strict=True)))
    block = draw(st.sampled_from((2, 4, 8)))
    assume(block * sum(sizes) % sizes[0] == 0)  # else the records have no places of their own by themselves
    step = -(-sum(sizes) // 8) * 8
    shape = Structure("s0", "records", 0x10000, step * COUNT, (Dim(COUNT, step),), fields)
    return relayout(shape, draw(st.sampled_from(("blocks", "aosoa", "soa"))), block)


def expected(layout: Relayout, number: int, element: int) -> int:
    mapped = next(m for m in layout.fields if m.field == number)
    return mapped.offset + sum(axis.stride * axis.digit(element) for axis in mapped.axes)


@given(layout=layouts())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_members_lie_where_the_map_has_them(layout: Relayout, tmp_path: Path) -> None:
    checks = []
    for number, buffer in enumerate(layout.buffers):
        array = new_array(layout, number, identifier(buffer.name))
        for field, rest in array.places:
            for element in (0, 1, 5, 7, COUNT - 1):
                access = f"{array.name}{array.index}{rest}".replace("[i", f"[{element}").replace("(i", f"({element}")
                checks.append(
                    f"if ((char *)&{access} - (char *){array.name} != {expected(layout, field, element)}) return 1;"
                )
    text = f"{declare(candidate(layout))}\nint main(void) {{ {' '.join(checks)} return 0; }}\n"
    (tmp_path / "places.c").write_text(text)
    subprocess.run(["gcc", "-O0", "-o", tmp_path / "places", tmp_path / "places.c"], check=True)
    assert subprocess.run([tmp_path / "places"], check=False).returncode == 0, text
