"""``layout-advise emit``: what it picks, what it refuses, and that the text computes the places of the layout."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from layout_advise.cli import main
from layout_advise.emit.languages import WRITERS, emitted
from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra import explore
from layout_advise.layoutalgebra.bridges.source import members_of
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Relayout, Structure
from layout_advise.layoutalgebra.explore.wide_search import search
from layout_advise.propose.candidates_file import plain
from tests.support.changed.compared_runs import before, region, tried, with_region
from tests.support.run_folders import saved

FIELDS = (
    Field("x", 0, 8, "double", 9, 0),
    Field("id", 8, 4, "int", 1, 0),
    Field("tag", 12, 1, "unsigned char", 2, 1),
    Field("w.re", 16, 4, "float", 5, 5),
)
COLD = (Field("next", 24, 8, "node *"),)
GRID = Structure("s0", "grid", 64, 6 * 7 * 32 + 64, (Dim(6, 7 * 32), Dim(7, 32)), FIELDS, COLD, 0)
LINE = Structure("s0", "line", 64, 42 * 32 + 64, (Dim(42, 32),), FIELDS, COLD, 0)
CCCL = sorted(Path("/usr/local").glob("cuda*/include/cccl/cuda/std/mdspan"))
LLAMA = """
#pragma once
#include <cstddef>
namespace llama {
template <class T, class V> struct Field {}; template <class... F> struct Record {};
template <class T, T... n> struct ArrayExtents {};
namespace mapping {
struct LinearizeArrayIndexLeft {}; struct LinearizeArrayIndexRight {};
template <class E, class R, class L = LinearizeArrayIndexRight> struct MultiBlobSoA {};
template <class E, class R, class L = LinearizeArrayIndexRight> struct PackedSingleBlobSoA {};
template <class E, class R, class L = LinearizeArrayIndexRight> struct PackedAoS {};
template <class E, class R, class L = LinearizeArrayIndexRight> struct AlignedAoS {};
template <class E, class R, class L = LinearizeArrayIndexRight> struct MinAlignedAoS {};
template <class E, class R, std::size_t n> struct AoSoA {};
}
template <class M> M allocView(M m) { return m; }
}
"""
KOKKOS = """
#pragma once
namespace Kokkos {
struct LayoutLeft {}; struct LayoutRight {}; struct LayoutStride {};
template <class D, class L> struct View { View() = default; template <class... N> View(const char *, N...) {} };
}
"""


def layouts(structure: Structure) -> list[Relayout]:
    found = [c.relayouts[0] for c in (*explore([structure], budget=50), *search(structure, budget=300)[::9])]
    return list(dict.fromkeys(one for one in found if one.chosen is None))


def written(language: str, structure: Structure = LINE) -> list[tuple[Relayout, str]]:
    """The layouts that the language has a text for."""
    texts = []
    for layout in layouts(structure):
        with contextlib.suppress(AlgebraError):
            texts.append((layout, emitted([layout], language)))
    return texts


def test_numpy_views_are_at_the_places_of_the_layout() -> None:
    found = written("numpy", GRID)
    assert len(found) == len(layouts(GRID)) > 20
    for layout, text in found:
        names: dict[str, Any] = {}
        exec("import numpy\n" + text, names)
        made = names["grid_new"]()
        buffers = [getattr(made, f"{name}_bytes") for name in made.buffers]
        assert [len(one) for one in buffers] == [buffer.bytes for buffer in layout.buffers]
        for _, one, member in members_of(layout):
            view = getattr(made, member)
            for i, j in itertools.product(range(6), range(7)):
                view[getattr(made, f"at_{member}")(i, j)] = 1
                at = one.place((i, j))
                assert np.flatnonzero(buffers[one.buffer]).tolist() != []
                assert at <= np.flatnonzero(buffers[one.buffer])[0] < at + view.itemsize
                buffers[one.buffer][:] = 0


def cpp_checks(layout: Relayout) -> str:
    """A program that compares each reference with the place of the layout."""
    checks = []
    for _, one, member in members_of(layout):
        for index in itertools.product(*(range(0, dim.count, 3) for dim in layout.structure.dims)):
            arguments = ", ".join(map(str, index))
            address = f"reinterpret_cast<std::byte *>(&s.{member}({arguments}))"
            checks.append(f"if ({address} != b[{one.buffer}] + {one.place(index)}) return 1;")
    sizes = [buffer.bytes for buffer in layout.buffers]
    memory = "".join(f"alignas(64) static std::byte m{number}[{size}];\n" for number, size in enumerate(sizes))
    given = ", ".join(f"m{number}" for number in range(len(sizes)))
    name = f"{layout.structure.name}_new"
    return (
        f"{memory}int main() {{ std::array<std::byte *, {len(sizes)}> b{{{given}}}; {name} s(b);\n"
        + "\n".join(checks)
        + "\nreturn 0; }\n"
    )


def compiled(text: str, folder: Path, *flags: str, compiler: str = "g++") -> Path:
    (folder / "t.cpp").write_text(text)
    command = [compiler, "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", *flags, "-o", "t", "t.cpp"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return folder / "t"


def in_namespaces(found: list[tuple[Relayout, str]], structure: Structure) -> str:
    """Several texts in one source, each in a namespace, which `main` goes through."""
    heads, bodies, calls = "", "", ""
    for number, (layout, text) in enumerate(found):
        head, _, body = text.partition("\n// ")
        heads = head.replace("#pragma once", "")
        program = cpp_checks(layout).replace("int main()", "int check()")
        bodies += f"namespace n{number} {{\n// {body}{program}}}\n"
        calls += f"if (n{number}::check()) return {number + 1};\n"
    return f"{heads}\n{bodies}int main() {{ {calls} return 0; }}\n"


@pytest.mark.skipif(not CCCL, reason="no mdspan at hand: CUDA's header library is not installed")
def test_mdspan(tmp_path: Path) -> None:
    found = written("std-mdspan", GRID)
    assert len(found) >= 10
    program = compiled(in_namespaces(found[::2], GRID), tmp_path, "-isystem", str(CCCL[0].parents[2]))
    assert subprocess.run([program], check=False).returncode == 0


def test_cpp(tmp_path: Path) -> None:
    program = compiled(in_namespaces(written("c++", GRID)[::4], GRID), tmp_path)
    assert subprocess.run([program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("language", "header", "stand_in"),
    [("llama", "llama/llama.hpp", LLAMA), ("kokkos", "Kokkos_Core.hpp", KOKKOS)],
)
def test_libraries_that_are_not_at_hand(language: str, header: str, stand_in: str, tmp_path: Path) -> None:
    """Compiled against stand-ins of the names used; what they compute is not checked."""
    (tmp_path / header).parent.mkdir(exist_ok=True)
    (tmp_path / header).write_text(stand_in)
    found = written(language)
    assert found
    bodies = [text[text.index("// ") :] for _, text in found]
    source = "".join(f"namespace n{number} {{\n{body}}}\n" for number, body in enumerate(bodies))
    head = f"#include <cstddef>\n#include <cstdint>\n#include <{header}>\n"
    compiled(f"{head}{source}int main() {{}}\n", tmp_path, "-I.")


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc is not installed")
def test_rust(tmp_path: Path) -> None:
    """Without the crate's macro, which is not at hand."""
    found = written("rust-soa_derive")
    assert 3 <= len(found) < len(layouts(LINE))
    text = "".join(
        f"mod m{number} {{\n{text.replace('use soa_derive::StructOfArray;', '').replace(', StructOfArray)', ')')}}}\n"
        for number, (_, text) in enumerate(found)
    )
    (tmp_path / "t.rs").write_text(text)
    command = ["rustc", "--crate-type", "lib", "--emit", "metadata", "-A", "dead_code", "-D", "warnings", "t.rs"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


@pytest.mark.parametrize("language", ["zig", "odin"])
def test_languages_without_a_compiler_here(language: str) -> None:
    """Only looked at: brackets close, and each field of each layout has its accessor."""
    for layout, text in written(language, GRID):
        for left, right in ("()", "[]", "{}"):
            assert text.count(left) == text.count(right)
        assert all(f"{member}" in text for _, _, member in members_of(layout))
        assert text.count("return ") == len(FIELDS)
        assert "not in it, to be kept in a record of their own: next" in text


# --- the command -----------------------------------------------------------------------------------------------------


def run_of(folder: Path, **changes: Any) -> Path:
    """A run whose advised layout is a structure of arrays of ``LINE``."""
    found = next(c for c in explore([LINE], budget=50) if c.families[0] == "soa")
    report = before()
    candidate = tried("c1", 3.0, "x | id | tag | w.re", structures=("s0",))
    report = with_region(report, candidates=(candidate, tried("c1-simd", 2.0, "x", structures=("s0",), variant="simd")))
    if changes:
        report = with_region(report, **changes)
    run = saved(folder / "run", report)
    (run / "regions" / "step").mkdir(parents=True)
    listed = msgspec.json.encode([plain(Candidate("c1", found.relayouts, found.families, found.derivation))])
    (run / "regions" / "step" / "candidates.json").write_bytes(listed)
    return run


@pytest.mark.parametrize("language", WRITERS)
def test_every_language_writes_the_advised_layout(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path)
    assert main(["emit", str(run), "--as", language]) == 0
    said = capsys.readouterr()
    assert said.err == "c1\n"
    assert main(["emit", str(run), "--as", language, "--candidate", "c1-simd", "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == said.out


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path)

    def refused(code: int, *words: str) -> str:
        assert main(["emit", *words]) == code
        said = capsys.readouterr()
        assert said.out == ""
        (line,) = said.err.splitlines()
        return line

    assert "no candidate c9 in the report" in refused(2, str(run), "--as", "c", "--candidate", "c9")
    assert "no such file or folder" in refused(2, str(tmp_path / "none"), "--as", "c")
    assert "its candidates.json is missing" in refused(1, str(run / "report.json"), "--as", "c")
    (run / "regions" / "step" / "candidates.json").write_text("[{")
    assert "cannot read" in refused(1, str(run), "--as", "c")
    with pytest.raises(SystemExit, match="2"):
        main(["emit", str(run), "--as", "cobol"])
    capsys.readouterr()
    (tmp_path / "other").mkdir()
    verdict = msgspec.structs.replace(region(before()).verdict, action="keep", candidate=None)
    other = run_of(tmp_path / "other", candidates=(), verdict=verdict)
    assert "no layout to write" in refused(1, str(other), "--as", "c")
