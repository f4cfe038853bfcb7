"""New arrays of the mock-up's own where the program's are global, and neighbours a constant apart."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Dim, Structure
from layout_advise.mockup.emit import statics
from layout_advise.mockup.run.build import command
from layout_advise.mockup.run.compilers import GCC
from tests.support.mockups.case import GRID, Case, compare, f64_fields, particles
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout


def stencil(where: Path, flags: tuple[str, ...] = ("-O2",)) -> tuple[Case, Structure]:
    case = Case(GRID, "step", flags, where)
    data = np.random.default_rng(2).random((11, 13, 8))
    case.arrays, case.integers = [data], [data.ctypes.data, 11, 13, 1]
    fields = f64_fields(("next", 0), ("now", 8), ("rate", 24))
    dims = (Dim(11, 13 * 64), Dim(13, 64))
    shape = Structure("s0", "grid", data.ctypes.data, data.nbytes, dims, fields, kind="global")
    case.structures = (shape,)
    return case, shape


def versioned(text: str, out: Path) -> bool:
    """Whether gcc -O3 vectorises the mock-up's loop behind a check that its arrays do not overlap."""
    out.with_suffix(".c").write_text(text)
    argv = command(out.with_suffix(".c"), out, "gcc", ("-O3", *GCC.more_checks, "-fopt-info-loop"))
    told = subprocess.run(argv, capture_output=True, text=True, check=True).stderr
    kernel = next(n for n, line in enumerate(text.splitlines(), 1) if "LA_APART" in line)
    lines = [line for line in told.splitlines() if int(line.split(":")[1]) > kernel]
    assert any("loop vectorized" in line for line in lines)
    return any("versioned for vectorization because of possible aliasing" in line for line in lines)


@pytest.mark.parametrize("kind", ["soa", "compact", "aosoa"])
def test_the_layouts_of_a_global_compute_the_same(kind: str, tmp_path: Path) -> None:
    case, shape = particles(("-O2",), tmp_path)
    case.structures = (replace(shape, kind="global"),)
    case.prepare()
    compare(case, candidate(relayout(case.structures[0], kind)), "plain", "restrict")


@pytest.mark.parametrize("flags", [("-O2",), ("-O3", "-march=haswell", "-ffp-contract=off")], ids=["O2", "O3"])
def test_a_stencil_in_static_arrays(flags: tuple[str, ...], tmp_path: Path) -> None:
    case, shape = stencil(tmp_path, flags)
    case.prepare()
    compare(case, candidate(relayout(shape, "soa")), "plain", "restrict")


def test_only_the_timed_build_of_a_global_has_arrays_of_its_own(tmp_path: Path) -> None:
    """Promised by `restrict`, checked, or wrong on purpose: by pointers; and so is what the program has on its heap."""
    case, shape = particles(("-O2",), tmp_path)
    chosen = {}
    for kind in ("heap", "global", "stack"):
        case.structures = (replace(shape, kind=kind),)
        case.prepare()
        chosen[kind] = candidate(relayout(case.structures[0], "soa"))
        text = emit_mockup(case.lifted, chosen[kind], case.trace, case.structures, offset=128)
        assert text.count("static uint8_t la_buffer") == (6 if kind == "global" else 0)
        assert text.count(".own = la_buffer") == (6 if kind == "global" else 0)
        assert ("uint8_t *at_x" in text) == (kind != "global")
        for size, number in re.findall(r"la_buffer\d\[(\d+)\].*\n|la_buffer\d \+ (\d+);", text):
            assert not size or int(size) >= 37 * 8
            assert not number or int(number) % 64 == 0
    case.structures = (replace(shape, kind="global"),)
    for options in ({"check": True}, {"wrong": True}, {"variant": "restrict"}):
        text = emit_mockup(case.lifted, chosen["global"], case.trace, case.structures, **options)
        assert "la_buffer0" not in text


def test_arrays_too_large_or_chosen_by_an_index_are_reached_by_pointers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """clang -O3 was predicted to gain 2.35 on ``wave``, where a source in static arrays gains nothing: it has one array for
    [now] and [next]."""
    case, shape = stencil(tmp_path)
    case.prepare()

    def has_static(case: Case, shape: Structure) -> bool:
        return "la_buffer1" in emit_mockup(case.lifted, candidate(relayout(shape, "soa")), case.trace, case.structures)

    assert not has_static(case, shape)
    alone, one = particles(("-O2",), tmp_path)
    alone.structures = (replace(one, kind="global"),)
    alone.prepare()
    assert has_static(alone, alone.structures[0])
    monkeypatch.setattr(statics, "MOST_BYTES", 1 << 10)
    assert not has_static(alone, alone.structures[0])


def test_a_compiler_needs_no_check_for_static_arrays(tmp_path: Path) -> None:
    """gcc -O3 vectorises a loop over heap arrays behind a check that they do not overlap; of static ones it knows."""
    case, shape = particles(("-O2",), tmp_path)
    case.prepare()
    found = {}
    for kind in ("heap", "global"):
        case.structures = (replace(shape, kind=kind),)
        chosen = candidate(relayout(case.structures[0], "soa"))
        text = emit_mockup(case.lifted, chosen, case.trace, case.structures)
        found[kind] = versioned(text, tmp_path / f"{kind}.so")
    assert found == {"heap": True, "global": False}


def test_neighbours_are_a_constant_apart(tmp_path: Path) -> None:
    """One division for the row above, the row below and both sides, where the start is not known beforehand."""
    case, shape = stencil(tmp_path, ("-O3",))
    case.prepare()
    text = emit_mockup(case.lifted, candidate(relayout(shape, "soa")), case.trace, case.structures)
    divided = re.findall(r"const int64_t d\d+_0 = rest\d+ /", text)
    beside = re.findall(r"const int64_t d\d+_0 = d\d+_0( [+-] 1)?;", text)
    assert sorted(beside) == ["", "", " + 1", " - 1"]
    assert len(divided) == 2  # [now] and [next] are chosen by different values


def test_clang_is_not_shown_more_than_of_the_one_array_of_a_source(tmp_path: Path) -> None:
    """It checks eight pairs at run time, no more: few enough pointers, and it vectorised ``wave`` as it does no source."""
    case, shape = stencil(tmp_path, ("-O3",))
    case.prepare()
    chosen = candidate(relayout(shape, "soa"))
    divided = [
        len(
            re.findall(
                r"const int64_t d\d+_0 = rest\d+ /", emit_mockup(case.lifted, chosen, case.trace, case.structures, clang=c)
            )
        )
        for c in (False, True)
    ]
    assert divided[0] == 2 < divided[1]


def test_more_arrays_than_a_mockup_is_handed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The candidate says so by itself: handed to the program, it took all others with it."""
    case, shape = particles(("-O2",), tmp_path)
    case.prepare()
    monkeypatch.setattr(statics, "MOST_BUFFERS", 5)
    with pytest.raises(RemapError, match="6, and a mock-up is handed at most 5"):
        emit_mockup(case.lifted, candidate(relayout(shape, "soa")), case.trace, case.structures)
