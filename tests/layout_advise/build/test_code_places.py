"""Builds of one mock-up whose code lies at other places."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from layout_advise.build.code_places import MOVED_BY, have_room, moved, moved_identities
from layout_advise.build.mockups import Mockup
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.measure.contest import controls
from layout_advise.mockup.ir.data_branches import branches_on_data
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.code_placement import InnerLoop
from layout_advise.mockup.run.compilers import GCC
from layout_advise.mockup.timing.ratios import identity_ratio
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL, Variant
from layout_advise.observe.observe import Observation
from layout_advise.propose import source as sources
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.recipes import Recipe
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.verify.verify import Finding
from tests.support.benchmark_scripts import script
from tests.support.mockups.branching_kernels import BRANCHING
from tests.support.mockups.native import Native, candidate, relayout

LAYOUT, KEPT, SAME = Variant("l"), Variant("i"), Variant("s")
TEXT = """__attribute__((visibility("default"))) double sum_of(const double *x, long n)
{ double s = 0; for (long i = 0; i < n; i++) if (x[i] < 0.5) s += x[i]; return s; }
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_code_lies_further_into_a_cache_line_and_does_the_same(tmp_path: Path, compiler: str) -> None:
    layout, identity = (Mockup(Recipe(n), TEXT, tmp_path / str(n) / "x.so", None, None) for n in (LAYOUT, KEPT))
    found = moved((layout, identity), compiler)
    assert set(found) == {*LAYOUT.elsewhere, *KEPT.elsewhere}
    numbers = (ctypes.c_double * 4)(0.25, 0.5, 0.125, 3.0)
    for names in (LAYOUT.elsewhere, KEPT.elsewhere):
        for name, by in zip(names, MOVED_BY, strict=True):
            binary = ElfBinary.open_module(found[name])
            start = binary.region("sum_of", 0).entry
            assert start % 64 == 0
            assert binary.read(start, by + 1)[by:] != b"\x90"  # the first instruction of its own
            function = ctypes.CDLL(str(found[name])).sum_of
            function.restype = ctypes.c_double
            assert function(numbers, ctypes.c_long(4)) == 0.375


@pytest.mark.parametrize(
    ("name", "short", "beyond", "hangs"),
    [
        ("below", False, True, True),  # its way hangs on its data
        ("sums", False, False, False),
        ("sums", True, False, True),  # particles: eleven instructions, 1.00 or 1.20 by where they begin
        ("sums", True, True, False),  # it waits for its data
    ],
)
def test_whose_times_hang_on_where_the_code_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, short: bool, beyond: bool, hangs: bool
) -> None:
    native = Native(BRANCHING[name][0], name, tmp_path, ("-O2",))
    seen = cast(Observation, SimpleNamespace(region=None, trace=None))
    loop = InnerLoop(0, 1, Counter()) if short else None
    monkeypatch.setattr(sources, "is_beyond_the_l2", lambda seen: beyond)
    assert sources.depends_on_place(seen, branches_on_data(native.lifted()), loop) is hangs


def test_what_cannot_be_built_is_left_out(tmp_path: Path) -> None:
    good = Mockup(Recipe(KEPT), TEXT, tmp_path / "x.so", None, None)
    bad = Mockup(Recipe(LAYOUT), "no C", tmp_path / "x.so", None, None)
    none = Mockup(Recipe(LAYOUT), TEXT, None, None, "it does not compile")
    same = replace(good, recipe=Recipe(SAME), same_as=KEPT)
    assert set(moved((bad, none, same, good), "gcc")) == {*KEPT.elsewhere}


def test_the_benchmark_moves_the_code_of_the_examples_and_nothing_else(tmp_path: Path) -> None:
    built = [script("placement").build("entities", "entities_hot", "O2", nops, tmp_path) for nops in (0, 24)]
    first, moved = (subprocess.run([p, "100", "2"], capture_output=True, text=True, check=True).stdout for p in built)
    assert first == moved
    assert first.startswith("checksum ")
    plain, later = (ElfBinary.open(p).find("integrate") for p in built)
    assert plain.size < later.size <= plain.size + 24  # its loops stay aligned
    assert plain.start % 64 == later.start % 64 == 0


def test_the_unchanged_layout_is_tried_at_other_places_where_its_time_hangs_on_them(tmp_path: Path) -> None:
    """``scan`` by clang -O3: the same instructions 15 % slower, as their branches lie at other addresses."""
    identity = Mockup(Recipe(IDENTITY), TEXT, tmp_path / "x.so", None, None)
    found = moved_identities((identity,), "gcc")
    assert set(found) == {*IDENTITY.elsewhere}
    assert all(m.recipe.candidate is None and not m.recipe.checked for m in found.values())
    made = {IDENTITY: identity, **found}
    timed = controls(made, {name: Finding(None) for name in made}, compared=False, kernel="sum_of")
    assert set(timed) == {IDENTITY, *IDENTITY.elsewhere}
    times = {
        ORIGINAL: 100.0,
        IDENTITY: 115.0,
        IDENTITY.elsewhere[0]: 121.0,
        IDENTITY.elsewhere[1]: 102.0,
        IDENTITY.elsewhere[2]: 90.0,
    }
    ratio = identity_ratio(Timings(steady=[{name: [ns] for name, ns in times.items()}] * 5))
    assert ratio is not None
    assert ratio.median == pytest.approx(1.02)


def test_loops_lie_as_their_compiler_puts_them_where_branches_hang_on_data(tmp_path: Path) -> None:
    """At multiples of 16 ``scan`` took 1.36 times as long, wherever these were: gcc puts its loop at one of 8."""
    heads = {}
    for name, flags in (("mockup", ()), ("own", GCC.own_alignment)):
        result = build(TEXT, tmp_path / f"{name}.so", "gcc", ("-O2", *flags))
        assert result.path is not None
        cfg = build_cfg(ElfBinary.open_module(result.path).region("sum_of", 0))
        heads[name] = [loop.head % 32 for loop in cfg.loops]
    alone = tmp_path / "alone.so"
    (tmp_path / "alone.c").write_text(TEXT)
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", alone, tmp_path / "alone.c"], check=True)
    region = ElfBinary.open_module(alone).region("sum_of", 0)
    own = [(loop.head - region.entry) % 16 for loop in build_cfg(region).loops]
    assert set(heads["mockup"]) == {0}
    assert [head % 16 for head in heads["own"]] == own != [0]
    assert Compiled("/usr/bin/clang-14", ()).family.own_alignment == ("-falign-loops=16",)


def test_further_builds_need_room_for_their_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are loaded into one process: forty with 100 MB each would be 4 GB."""
    words = Structure("s0", "p", 0, 1 << 20, (Dim(1 << 16, 16),), (Field("a", 0, 8, "double", 1, 1),), ())
    chosen = [candidate(relayout(words, "soa"))] * 4
    room = {"SC_AVPHYS_PAGES": 0, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", room.__getitem__)
    need = 4 * len(MOVED_BY) * chosen[0].relayouts[0].bytes
    for pages, enough in ((2 * need // 4096, True), (2 * need // 4096 - 1, False)):
        room["SC_AVPHYS_PAGES"] = pages
        assert have_room(chosen) is enough
