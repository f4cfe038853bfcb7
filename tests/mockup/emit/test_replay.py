"""A replay makes the accesses of the program, all of them, in the program's order; or it is refused."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import ReplayError
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.measure.replays import Replays, sentence
from layout_advise.mockup.emit.replay import emit_replay
from layout_advise.mockup.evidence.touch_nest import Touch, TouchNest, frame, touches
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.mockup.run.build import build
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.tracer.backends.clone.address import choose_address
from layout_advise.tracer.backends.clone.image import build_clone
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.fold import fold_records
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.trace.trace import Trace
from tests.support.command import advise
from tests.support.mockups.native import candidate, relayout
from tests.support.tracing.parked_programs import entry_of

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
struct p { double x, v; float m, q; double rest[4]; };
static double grid[40][24][2], rows[40], out[40];
static struct p *ps;
%s
int main(void) {
    ps = calloc(96, sizeof *ps);
    for (int call = 0; call < 3; call++) hot(ps, 96);
    printf("%%g\n", ps[3].x + out[3]);
}
"""
PROGRAMS = {
    "particles": "for (long i = 0; i < n; i++) { p[i].x += p[i].v * p[i].m; p[i].q = p[i].m; }",
    "sweeps": "for (long k = 1; k < 5; k++) for (long i = 0; i < n - 8; i++) p[i].x += p[i + k].v;",
    "rows": "(void)n; for (long r = 0; r < 40; r++) { double s = 0; for (long c = 0; c < 24; c++) "
    "s += grid[r][c][0] * p[c].v; out[r] = s + rows[r]; }",
    "flat": "(void)n; for (long r = 0; r < 40; r++) for (long c = 0; c < 24; c++) grid[r][c][1] = grid[r][c][0] + p[c].v;",
    "twice": "for (long i = 0; i < n; i++) p[i].x = p[i].v; for (long i = 0; i < n / 2; i++) p[2 * i].v = p[i].x;",
    "inner": "(void)n; for (long r = 0; r < 40; r++) { for (long c = 0; c < 24; c++) grid[r][c][1] += p[c].v; "
    "for (long c = 0; c < 12; c++) grid[r][c][0] += p[c].x; }",
}
REFUSED = {
    "conditional": (
        "for (long i = 0; i < n; i++) { p[i].q = 1; if (i % 3) p[i].x += p[i].v; }",
        "every iteration|nest evenly",
    ),
    "triangle": (
        "(void)n; for (long r = 0; r < 24; r++) for (long c = r; c < 24; c++) grid[r][c][1] += p[c].v;",
        "nest evenly",
    ),
    "irregular": ("for (long i = 0; i < n; i++) p[(i * i * 7) % 89].x += 1.0;", "reference"),
}
O2, O3 = ("-O2",), ("-O3", "-fno-tree-loop-vectorize")
TRIED = [*((name, O2) for name in PROGRAMS), ("rows", O3), ("inner", O3)]


@dataclass(frozen=True)
class Case:
    program: AgentProcess
    region: Region
    trace: Trace
    records: np.ndarray
    """As the clone wrote them: address | reference << 48, in the program's order."""
    folder: Path


@contextmanager
def traced(text: str, flags: tuple[str, ...], folder: Path) -> Iterator[Case]:
    source, target = folder / "program.c", folder / "program"
    hot = "__attribute__((noinline, noclone)) void hot(struct p *p, long n) {\n" + text + "\n}"
    source.write_text(MAIN % hot)
    subprocess.run(["gcc", *flags, "-g", str(source), "-o", str(target)], check=True)
    entry = entry_of(target, "hot")

    binary = ElfBinary.open(target)
    with park([str(target)], entry, 2, timeout=60, command_timeout=20) as stopped:
        region = binary.region(binary.find("hot"), stopped.load_base, callees=True)
        image = build_clone(region, choose_address(stopped.mappings(), region.entry))
        raw = folder / "raw"
        with stopped.fork() as child:
            taken, truncated = child.trace(image, raw, 1 << 20)
        assert not truncated
        records = np.fromfile(raw, np.uint64)
        streams = tuple(fold_records(records, len(image.references)))
        trace = Trace(
            "hot", 2, "clone", image.references, streams, taken, False, stopped.registers(), stopped.mappings(),
            stopped.allocations(),
        )  # fmt: skip
        yield Case(stopped, region, trace, records, folder)


def body_of(case: Case) -> tuple[Touch | TouchNest, ...]:
    return touches(case.trace, build_cfg(case.region), frame(case.trace))


def replayed(case: Case, chosen: Candidate | None, wrong: bool = False) -> tuple[np.ndarray, int, int]:
    """The records of the check build, its mismatches, and how many accesses it sent to new buffers."""
    text = emit_replay(body_of(case), "hot", chosen, check=True, wrong=wrong)
    built = build(text, case.folder / f"replay{chosen is not None}{wrong}.so", "gcc", ("-O1",))
    assert built.path is not None, built.log
    out = case.folder / "replayed"
    with case.program.fork() as fork:
        done = fork.run(fork.load(built.path), records=(out, 1 << 20))
    return np.fromfile(out, np.uint64), done.mismatches, done.remapped


def expected(case: Case) -> np.ndarray:
    """The records of the program without those of its own frame."""
    skipped = list(frame(case.trace))
    return case.records[~np.isin((case.records >> np.uint64(48)).astype(np.int64), skipped)]


def particles(case: Case) -> Structure:
    block = next(a for a in case.trace.allocations if a.bytes == 96 * 56)
    places = {"x": (0, 8), "v": (8, 8), "m": (16, 4), "q": (20, 4), "a": (24, 8), "b": (32, 8), "c": (40, 8), "d": (48, 8)}
    fields = tuple(Field(name, *place, None, 1, 1) for name, place in places.items())
    return Structure("s0", "p", block.address, block.bytes, (Dim(96, 56),), fields)


@pytest.mark.parametrize(("name", "flags"), TRIED, ids=[f"{name}{flags[0]}" for name, flags in TRIED])
def test_the_accesses_are_the_program_s_in_its_order(name: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    with traced(PROGRAMS[name], flags, tmp_path) as case:
        records, mismatches, _ = replayed(case, None)
        assert mismatches == 0
        assert np.array_equal(records, expected(case))
        for kind, block in (("soa", 0), ("aosoa", 4)):
            chosen = candidate(relayout(particles(case), kind, block))
            records, mismatches, moved = replayed(case, chosen)
            assert np.array_equal(records, expected(case))
            assert mismatches == 0
            assert moved > 0
        assert replayed(case, chosen, wrong=True)[1] > 0


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_is_refused(name: str, tmp_path: Path) -> None:
    text, why = REFUSED[name]
    with traced(text, ("-O1",), tmp_path) as case, pytest.raises(ReplayError, match=why):
        body_of(case)


X87 = r"""
#include <stdio.h>
#include <stdlib.h>
struct p { double x, v, m, e, rest[8]; };
__attribute__((noinline)) void energy(struct p *p, long n) {
    for (long i = 0; i < n; i++) __asm__("fldl %1; fsin; fstpl %0" : "=m"(p[i].e) : "m"(p[i].v));
}
int main(void) {
    long n = 200000;
    struct p *p = calloc(n, sizeof *p);
    for (long i = 0; i < n; i++) p[i].v = i;
    for (int k = 0; k < 40; k++) energy(p, n);
    printf("%g\n", p[3].e);
}
"""


@pytest.mark.slow
def test_what_is_not_lifted_is_replayed_and_says_what_that_is(tmp_path: Path) -> None:
    (tmp_path / "x87.c").write_text(X87)
    subprocess.run(["gcc", "-O2", "-g", "x87.c", "-o", "x87"], check=True, cwd=tmp_path)
    options = ("--restores", "5", "--candidates", "2", "--hotspot", "energy")
    (hotspot,) = advise(["./x87"], *options, folder=tmp_path).hotspots
    assert (hotspot.verdict.action, hotspot.verdict.reason) == ("undecided", "not-lifted")
    assert "x87" in hotspot.verdict.text
    assert hotspot.candidates
    for found in hotspot.candidates:
        assert found.evidence == "replayed"
        assert found.replay is not None
        assert found.replay.restores is not None
        assert 2 <= found.replay.restores <= 5  # processes on a disturbed machine are left out
        assert (found.speedup, found.over_identity, found.net_speedup, found.program_speedup) == (None,) * 4
        assert (tmp_path / "run" / str(found.mockup)).is_file()
    assert "no speedup of the hotspot" in hotspot.verdict.text


def test_the_sentence_names_what_takes_longer() -> None:
    """That the present layout takes "0.35 times as long" was read as if it lost."""
    good = sentence(Replays({"c1": Ratio(2.0, 1.8, 2.5, 9), "c2": Ratio(0.5, 0.4, 0.8, 9)}))
    assert "take 2.00 times as long in the present layout as in c1 (95 % interval 1.80 to 2.50, 9 processes)" in good
    bad = sentence(Replays({"c2": Ratio(0.5, 0.4, 0.8, 9)}))
    assert "take 2.00 times as long in c2, the best of the layouts replayed, as in the present layout" in bad
    assert "(95 % interval 1.25 to 2.50, 9 processes)" in bad
    assert sentence(Replays()) == ""
