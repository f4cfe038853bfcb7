"""Bridges against the real thing: NumPy, gcc and g++; names in LLAMA and Kokkos."""

import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra import A, S, explore
from layout_advise.layoutalgebra.bridges.arrays import (
    accessed,
    as_array,
    element_dtype,
    field_dtype,
    from_layout,
    places,
    shape_of,
    to_layout,
)
from layout_advise.layoutalgebra.bridges.names import kokkos_views, llama_mapping
from layout_advise.layoutalgebra.bridges.source import c_source, cpp_source
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Relayout, Structure
from layout_advise.layoutalgebra.explore.wide_search import search

FIELDS = (
    Field("x", 0, 8, "double", 9, 0),
    Field("id", 8, 4, "int", 1, 0),
    Field("tag", 12, 1, "unsigned char", 2, 1),
    Field("w.re", 16, 4, "float", 5, 5),
)
COLD = (Field("next", 24, 8, "node *"),)
GRID = Structure("s0", "grid", 64, 6 * 7 * 32 + 64, (Dim(6, 7 * 32), Dim(7, 32)), FIELDS, COLD, 0)


def layouts() -> list[Relayout]:
    found = [c.relayouts[0] for c in (*explore([GRID], budget=50), *search(GRID, budget=400)[::7])]
    return list(dict.fromkeys(found))


# --- NumPy -----------------------------------------------------------------------------------------------------------


def memory() -> bytearray:
    return bytearray(np.random.default_rng(7).integers(0, 256, GRID.bytes, dtype=np.uint8).tobytes())


def test_arrays_read_the_structure_as_it_lies() -> None:
    block = memory()
    elements = as_array(GRID, block)
    assert elements.shape == (6, 7)
    assert elements.strides == (224, 32)
    assert element_dtype(GRID).names == ("x", "id", "tag", "w.re", "next")
    for i, j in itertools.product(range(6), range(7)):
        start = 64 + 224 * i + 32 * j
        assert elements[i, j]["x"].tobytes() == bytes(block[start : start + 8])
        assert elements[i, j]["tag"] == block[start + 12]
    elements["tag"][2, 3] = 77
    assert block[64 + 2 * 224 + 3 * 32 + 12] == 77  # a view
    with pytest.raises(AlgebraError, match="too few"):
        as_array(GRID, block[:-1])


def test_copies_in_a_new_layout_and_back() -> None:
    assert len(layouts()) >= 25
    for layout in layouts():
        block = memory()
        elements = as_array(GRID, block)
        buffers = to_layout(layout, elements)
        assert [len(b) for b in buffers] == [b.bytes for b in layout.buffers]
        for one in layout.fields:
            field, at = GRID.fields[one.field], places(layout, one)
            for i, j in itertools.product(range(6), range(7)):
                assert at[i, j] == one.place((i, j))
                start = 64 + 224 * i + 32 * j + field.offset
                moved = buffers[one.buffer][at[i, j] : at[i, j] + field.bytes]
                assert moved.tobytes() == bytes(block[start : start + field.bytes])
        empty = bytearray(memory())
        cleared = as_array(GRID, empty)
        for field in FIELDS:
            cleared[field.name] = 0
        from_layout(layout, buffers, cleared)
        assert empty == block


def test_views_of_the_accessed_places() -> None:
    term = A(4) @ S([range(1, 6, 2)], 6) @ S([2], 3)
    data = np.arange(term.size)
    view = accessed(term, data)
    assert view.reshape(-1).tolist() == term.offsets()
    view[...] = -1
    assert np.flatnonzero(data == -1).tolist() == term.offsets()
    assert shape_of(term) == (4, 6, 3)
    assert np.argwhere(term.bitmap().reshape(shape_of(term))).shape == (term.count, 3)
    with pytest.raises(AlgebraError, match="does not fit"):
        accessed(term, np.arange(5))


# --- C and C++ -------------------------------------------------------------------------------------------------------


def places_as_text(layout: Relayout) -> str:
    return "".join(
        f"{one.buffer} {one.place((i, j))}\n" for one in layout.fields for i, j in itertools.product(range(6), range(7))
    )


def test_accessors_in_c_and_cpp_compute_the_places(tmp_path: Path) -> None:
    """One program in each language calls every accessor of every layout for every element."""
    members = ["x", "id", "tag", "w_re"]
    expected, c_main, cpp_main = "", "", ""
    loops = "for (size_t i = 0; i < 6; i++) for (size_t j = 0; j < 7; j++)"
    for number, layout in enumerate(layouts()):
        name, count = f"grid{number}", len(layout.buffers)
        (tmp_path / f"{name}.h").write_text(c_source(layout, name))
        (tmp_path / f"{name}.hpp").write_text(cpp_source(layout, name))
        c_main += f"{{ struct {name} s; unsigned char **b = (unsigned char **)(void *)&s;\n"
        c_main += f"  for (int k = 0; k < {count}; k++) b[k] = m + ((size_t)k << 20);\n"
        cpp_main += (
            f"{{ std::array<std::byte *, {count}> b; for (std::size_t k = 0; k < {count}; k++) b[k] = m + (k << 20);\n"
        )
        cpp_main += f"  static_assert({name}::bytes[0] == {layout.buffers[0].bytes}); {name} s(b);\n"
        for one in layout.fields:
            c_main += f"  {loops} show((unsigned char *){name}_{members[one.field]}(&s, i, j) - m);\n"
            cpp_main += f"  {loops} show((std::byte *)&s.{members[one.field]}(i, j) - m);\n"
        c_main += "}\n"
        cpp_main += "}\n"
        expected += places_as_text(layout)
    show = 'static void show(ptrdiff_t d) { printf("%d %d\\n", (int)(d >> 20), (int)(d & 0xfffff)); }\n'
    for ending, head, unit, body, compiler in (
        ("c", "h", "unsigned char", c_main, ["gcc", "-std=c11", "-Wno-unused-function"]),
        ("cpp", "hpp", "std::byte", cpp_main, ["g++", "-std=c++17"]),
    ):
        includes = "".join(f'#include "grid{n}.{head}"\n' for n in range(len(layouts())))
        text = f"#include <stdio.h>\n#include <stddef.h>\n{includes}static {unit} m[64 << 20];\n{show}"
        (tmp_path / f"main.{ending}").write_text(f"{text}int main(void) {{\n{body}return 0; }}\n")
        program = tmp_path / f"main_{ending}"
        flags = ["-Wall", "-Wextra", "-Werror", "-O0", "-o", str(program), str(tmp_path / f"main.{ending}")]
        subprocess.run([*compiler, *flags], check=True)
        assert subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout == expected


# --- names ---------------------------------------------------------------------------------------------------------------


def test_names_in_llama_and_kokkos() -> None:
    two = Structure("s", "p", 0, 3200, (Dim(10, 320), Dim(10, 32)), (FIELDS[0], Field("y", 8, 8, "double")))
    flat = Structure("s", "p", 0, 3200, (Dim(100, 32),), two.fields)
    names = {llama_mapping(c.relayouts[0]) for s in (two, flat) for c in search(s, budget=2000)} - {None}
    assert names == {
        "llama::mapping::PackedAoS<Extents, Record>",
        "llama::mapping::PackedAoS<Extents, Record, llama::mapping::LinearizeArrayIndexLeft>",
        "llama::mapping::PackedSingleBlobSoA<Extents, Record>",
        "llama::mapping::PackedSingleBlobSoA<Extents, Record, llama::mapping::LinearizeArrayIndexLeft>",
        "llama::mapping::MultiBlobSoA<Extents, Record>",
        "llama::mapping::MultiBlobSoA<Extents, Record, llama::mapping::LinearizeArrayIndexLeft>",
        "llama::mapping::AoSoA<Extents, Record, 2>",
        "llama::mapping::AoSoA<Extents, Record, 4>",
    }
    views = {kokkos_views(c.relayouts[0]) for c in search(two, budget=2000)}
    assert ("Kokkos::View<double**, Kokkos::LayoutRight> p_x", "Kokkos::View<double**, Kokkos::LayoutRight> p_y") in views
    assert ("Kokkos::View<p_x_y_record**, Kokkos::LayoutLeft> p_x_y",) in views
    assert None in views  # blocks have no name there


@pytest.mark.parametrize(
    ("type_", "size", "scalar"),
    [
        ("real(kind=8)", 8, "f8"),
        ("real(kind=4)", 4, "f4"),
        ("integer(kind=4)", 4, "i4"),
        ("logical(kind=1)", 1, "i1"),
        ("double", 8, "f8"),
        ("long double", 16, "V16"),
        ("complex float", 8, "V8"),
        ("long unsigned int", 8, "u8"),
        ("long int", 8, "i8"),
        ("node *", 8, "u8"),
        ("real_t *", 8, "u8"),
        (None, 4, "V4"),
    ],
)
def test_scalars_by_names_of_types(type_: str | None, size: int, scalar: str) -> None:
    """Fortran's `real(8)` was an `int64_t` in emitted C, and gcc's `long unsigned int` signed."""
    assert field_dtype(Field("x", 0, size, type_)) == np.dtype(scalar)


def test_fortrans_reals_are_doubles_in_c() -> None:
    fields = (Field("x", 0, 8, "real(kind=8)", 1), Field("y", 8, 8, "real(kind=8)", 1))
    cells = Structure("s0", "cells", 64, 1600, (Dim(100, 16),), fields)
    layout = explore([cells])[0].relayouts[0]
    assert "static inline double *cells_x(" in c_source(layout)
    assert "int64_t" not in c_source(layout)
