"""Samples resolve to the functions that spend the time, and the choice says why it passed others over."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.errors import ProgramError
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.sampling.hotspots import OUTSIDE, Hotspot, choose, leader_of, rank
from layout_advise.tracer.sampling.perf import parse_script, perf_available, sample_with_perf
from layout_advise.tracer.trace.trace import Mapping

SOURCE = """#include <stdlib.h>
extern double far(double *p, long n);
__attribute__((noinline)) double cool(double *p, long n) { double s = 0; for (long k = 0; k < n; k++) s -= p[k]; return s; }
__attribute__((noinline)) double hot(double *p, long n) { double s = 0;
  for (long k = 0; k < n; k++) { if (__builtin_expect(p[k] < -1e9, 0)) abort(); s += p[k]; } return s; }
int main(void) { static double p[4000]; double s = 0;
  for (int k = 0; k < 40000; k++) s += hot(p, 4000) + far(p, 100) + cool(p, 40); return s > 1; }
"""
FAR = "double far(double *p, long n) { double s = 1; for (long k = 0; k < n; k++) s *= p[k]; return s; }"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hot")
    (folder / "app.c").write_text(SOURCE)
    (folder / "far.c").write_text(FAR)
    subprocess.run(
        ["gcc", "-g", "-O2", "-shared", "-fPIC", "-Wl,-soname,libfar.so", "-o", "libfar.so", "far.c"], check=True, cwd=folder
    )
    subprocess.run(["gcc", "-g", "-O2", "-o", "app", "app.c", "./libfar.so", "-Wl,-rpath,$ORIGIN"], check=True, cwd=folder)
    return folder / "app"


def test_ranking_of_made_up_samples(program: Path) -> None:
    binary = ElfBinary.open(program)
    library = ElfBinary.open_module(program.parent / "libfar.so")
    text = binary.section_at(binary.find("hot").start)
    code = library.section_at(library.find("far").start)
    assert text is not None
    assert code is not None
    mappings = [
        Mapping(0x400000 + text[1] // 4096 * 4096, 0x410000, "r-xp", text[1] // 4096 * 4096, str(program)),
        Mapping(0x700000 + code[1] // 4096 * 4096, 0x710000, "r-xp", code[1] // 4096 * 4096, str(library.path)),
        Mapping(0x7FFE0000, 0x7FFE2000, "r-xp", 0, "[vdso]"),
    ]
    starts = {f.name: f.start for f in binary.functions}
    samples = (
        [0x400000 + starts["hot"] + 5] * 50 + [0x400000 + starts["hot.cold"]] * 2 + [0x400000 + starts["cool"]] * 10
        + [0x700000 + library.find("far").start] * 20 + [(1 << 64) - 4096] * 9 + [0x7FFE0010] * 5 + [0x10] * 4
        + [OUTSIDE] * 3
    )  # fmt: skip
    ranking = rank([(a,) for a in samples], Modules(mappings, binary))
    assert [(h.symbol, h.samples) for h in ranking] == [
        ("hot", 52), ("far", 20), ("cool", 10), ("[kernel]", 9), ("[vdso]", 5), ("[unknown]", 4),
        ("[other processes]", 3),
    ]  # fmt: skip
    assert ranking[0].pieces == ("hot.cold",)
    assert ranking[0].address == starts["hot"]
    assert ranking[1].module == str(library.path)
    assert sum(h.share for h in ranking) == pytest.approx(1)
    assert choose(ranking).hotspot.symbol == "hot"


def test_perf_finds_the_hot_function(program: Path) -> None:
    if not perf_available():
        pytest.skip("perf is missing or the kernel does not let it sample")
    sampled = sample_with_perf([str(program)], timeout=120)
    ranking = rank([(a,) for a in sampled.addresses.tolist()], Modules(sampled.mappings, ElfBinary.open(program)))
    assert sampled.exit_status == 0
    assert choose(ranking).hotspot.symbol == "hot"
    assert choose(ranking).hotspot.file == str(program.parent / "app.c")
    assert ranking[0].share > 0.5


def _spot(symbol: str, share: float, module: str = "/a/app", address: int = 64) -> Hotspot:
    return Hotspot(symbol, symbol, module, share, int(share * 100), address=address)


def test_choice_passes_over_what_cannot_be_studied() -> None:
    system = [_spot("memcpy", 0.4, "/lib/libc.so.6"), _spot("[kernel]", 0.2, "[kernel]", 0)]
    ranking = [*system, _spot("main", 0.2), _spot("work", 0.1)]
    choice = choose(ranking)
    assert choice.hotspot.symbol == "work"
    assert [symbol for symbol, _ in choice.skipped] == ["memcpy", "[kernel]", "main"]
    assert "libc.so.6" in choice.skipped[0][1]
    assert "once" in choice.skipped[2][1]


def test_main_where_it_is_far_hotter_than_any_other() -> None:
    ranking = [_spot("main", 0.9), _spot("fill", 0.05)]
    assert choose(ranking).hotspot.symbol == "main"
    assert choose([_spot("main", 0.6), _spot("work", 0.3)]).hotspot.symbol == "work"


def test_main_is_the_last_resort_and_nothing_is_an_error() -> None:
    assert choose([_spot("memcpy", 0.4, "/lib/libc.so.6"), _spot("main", 0.6)]).hotspot.symbol == "main"
    with pytest.raises(ProgramError, match="memcpy 100%"):
        choose([_spot("memcpy", 1.0, "/lib/libc.so.6")])
    with pytest.raises(ProgramError, match="no samples at all"):
        choose([])


def test_perf_script_of_several_processes() -> None:
    listing = """
    0 PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x1209988) @ 0xffffffff81000000]: x [kernel.kallsyms]_text
   11 PERF_RECORD_MMAP2 11/11: [0x1000(0x1000) @ 0 fe:00 21 40]: r-xp /bin/sh
   12 PERF_RECORD_MMAP2 12/12: [0x55000(0x2000) @ 0x1000 fe:00 21 40]: r-xp /tmp/with space/app
   11 cpu-clock:      1004
   12 cpu-clock:  ffffffff8161a532
   12 cpu-clock:u:      55010
"""
    addresses, mappings = parse_script(listing)
    assert addresses.tolist() == [0xFFFFFFFF8161A532, 0x55010]
    assert mappings == (Mapping(0x55000, 0x57000, "r-xp", 0x1000, "/tmp/with space/app"),)


PIECES = """
#define APART __attribute__((noinline, noclone))
double of_f(const double *p, long n) __asm__("f.part.0");
double of_g(const double *p, long n) __asm__("g.part.0");
APART double of_f(const double *p, long n) { double s = 0; for (long k = 0; k < n; k++) s += p[k] * s; return s; }
APART double of_g(const double *p, long n) { double s = 1; for (long k = 0; k < n; k++) s -= p[k] * s; return s; }
APART double f(const double *p, long n) { return n ? of_f(p, n) + 1 : 0; }
APART double g(const double *p, long n) { return n ? of_g(p, n) + 1 : 0; }
int main(int argc, char **argv) { static double p[40]; return f(p, argc) + g(p, argc) + of_f(p, 2) > 1; }
"""


def test_a_piece_that_others_call_is_a_function_of_its_own(tmp_path: Path) -> None:
    """gcc puts the head of a function into its callers, which call the rest: the function itself is then entered seldom."""
    (tmp_path / "app.c").write_text(PIECES)
    subprocess.run(["gcc", "-O2", "-o", "app", "app.c"], check=True, cwd=tmp_path)
    binary = ElfBinary.open(tmp_path / "app")
    leaders = {name: leader_of(binary, binary.find(name)).name for name in ("f.part.0", "g.part.0", "f", "g")}
    assert leaders == {"f.part.0": "f.part.0", "g.part.0": "g", "f": "f", "g": "g"}
