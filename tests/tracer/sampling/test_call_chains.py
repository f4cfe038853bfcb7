"""Who called what a sample fell in: against the calls that a program makes, and against readelf's reading of the tables."""

from __future__ import annotations

import random
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from layout_advise.choose.policy import CHOOSE
from layout_advise.choose.profile import profile
from layout_advise.config import Settings
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.program.unwind import RBP, RSP, Frame, UnwindTable
from layout_advise.tracer.sampling.call_chains import Chain, call_chains
from layout_advise.tracer.sampling.hotspots import choose, rank, share_within
from layout_advise.tracer.sampling.probe import sample

CALLS = """#include <alloca.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define APART __attribute__((noinline, noclone))
volatile double sink;
APART double leaf(const double *p, long n) { double s = 0; for (long k = 0; k < n; k++) s += p[k] * s; return s; }
APART double moving(const double *p, long n) /* its frame by rbp */
{ long bytes = 8 * (n & 15) + 8; double *copy = alloca(bytes), s;
  memset(copy, 0, bytes); s = leaf(p, n); sink = copy[0]; return s; }
APART double wide(const double *p, long n) /* its frame is larger than what is kept of the stack */
{ volatile double room[1000]; room[n & 7] = 1; return leaf(p, n) + room[n & 7]; }
APART double outer(const double *p, long n, int by) { return by ? moving(p, n) + 1 : wide(p, n) + 1; }
APART double waves(double *p, long n) { double s = 0; for (long k = 0; k < n; k++) s += sin(p[k] + s); return s; }
int main(int argc, char **argv)
{
    static double p[2000];
    for (int turn = 0; turn < atoi(argv[1]); turn++)
        sink += outer(p, 2000, 1) + outer(p, 2000, 0);
    for (int turn = 0; turn < atoi(argv[2]); turn++)
        sink += waves(p, 2000);
    return argc > 9;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ElfBinary:
    folder = tmp_path_factory.mktemp("chains")
    (folder / "calls.c").write_text(CALLS)
    subprocess.run(["gcc", "-g", "-O2", "-o", "calls", "calls.c", "-lm"], check=True, cwd=folder)
    return ElfBinary.open(folder / "calls")


def sampled(program: ElfBinary, *turns: int) -> tuple[list[Chain], Modules]:
    run = sample([str(program.path), *map(str, turns)], interval=0.001)
    assert len(run.sampled) == len(run.samples) > 20
    assert run.sampled["rip"].tolist() == run.samples.tolist()
    modules = Modules(run.mappings, program)
    return call_chains(run.sampled, modules), modules


def named(chain: Chain, modules: Modules, program: ElfBinary) -> list[str]:
    found = [(a, modules.module_at(a)) for a in chain]
    functions = [m.binary.function_at(a - m.load_base) for a, m in found if m is not None and m.binary is program]
    return [f.name for f in functions if f is not None]


def test_chains_are_the_calls_of_the_program(program: ElfBinary) -> None:
    chains, modules = sampled(program, 60000, 0)
    seen = Counter(" ".join(named(chain, modules, program)) for chain in chains)
    whole, cut = seen["leaf moving outer main _start"], seen["leaf wide"]
    # what is kept of the stack ends within `wide`; a handful of samples fall in prologues and elsewhere
    assert whole > 0.3 * len(chains)
    assert cut > 0.3 * len(chains)
    assert whole + cut > 0.95 * len(chains)
    assert not any("waves" in names for names in seen)


def test_the_mathematical_library_counts_for_its_caller(program: ElfBinary) -> None:
    chains, modules = sampled(program, 6000, 40000)
    hotspot = choose(rank(chains, modules)).hotspot
    assert hotspot.symbol == "waves"
    by_itself = rank([chain[:1] for chain in chains], modules)
    alone = next((h.share for h in by_itself if h.symbol == "waves"), 0.0)
    assert hotspot.share > alone
    waves = program.find("waves")
    share = share_within(chains, modules, program, lambda a: waves.start <= a < waves.start + waves.size)
    assert share == pytest.approx(hotspot.share, abs=0.02)


def test_a_share_takes_in_what_is_called(program: ElfBinary) -> None:
    chains, modules = sampled(program, 60000, 0)
    moving = program.find("moving")
    share = share_within(chains, modules, program, lambda a: moving.start <= a < moving.start + moving.size)
    assert 0.3 < share < 0.7
    assert all(h.share < 0.1 for h in rank(chains, modules) if h.symbol == "moving")


def test_a_short_program_is_sampled_again(program: ElfBinary, tmp_path: Path) -> None:
    """One run has too few samples; perf's, which were taken then, do not tell who called the library."""
    command = (str(program.path), "100", "1000")
    assert len(sample(command, discard=True).samples) < CHOOSE.fewest_samples
    found = profile(Settings(command, tmp_path / "run", timeout=60), program, None)
    assert len(found.run.samples) == len(found.chains) >= CHOOSE.fewest_samples
    assert found.function.name == "waves"
    assert found.share > 0.5


def test_a_damaged_table_tells_nothing(program: ElfBinary) -> None:
    """Whatever one of its bytes is: no frame, or some frame."""
    table, function = program.debug.unwinding, program.find("moving")
    assert table is not None
    record = int(table.records[table.starts.tolist().index(function.start)])
    draw = random.Random(1)
    for at in range(record, record + 40):
        for value in (0, 0xFF, draw.randrange(256)):
            frames = table.frames[:at] + bytes([value]) + table.frames[at + 1 :]
            damaged = UnwindTable(table.starts, table.records, frames, table.address)
            found = [damaged.frame_at(function.start + k) for k in range(0, function.size, 4)]
            assert all(one is None or isinstance(one, Frame) for one in found)


def test_frames_are_what_readelf_reads() -> None:
    """Of all functions of the C library, at each place where they change."""
    maps = Path("/proc/self/maps").read_text()
    found = re.search(r"(/\S+/libc\.so\.6|/\S+/libc-\S+\.so)$", maps, re.MULTILINE)
    assert found is not None
    library = ElfBinary.open_module(found.group(1))
    listing = subprocess.run(["readelf", "-wF", found.group(1)], capture_output=True, text=True, check=False).stdout
    checked, columns = 0, []
    for line in listing.partition("Contents of the .debug_frame")[0].splitlines():
        words = line.split()
        if words[:1] == ["LOC"]:
            columns = words
        elif words and len(words) == len(columns) and re.fullmatch(r"[0-9a-f]{16}", words[0]):
            row = dict(zip(columns, words, strict=True))
            frame = library.frame_at(int(words[0], 16))
            rule = re.fullmatch(r"(rsp|rbp)\+(\d+)", row["CFA"])
            if frame is None or rule is None or row.get("rbp", "u") == "exp":
                assert frame is None or rule is not None or frame.register not in (RSP, RBP), line
                continue
            saved = re.fullmatch(r"c([-+]\d+)", row.get("rbp", "u"))
            expected = ({"rsp": RSP, "rbp": RBP}[rule.group(1)], int(rule.group(2)), int(saved.group(1)) if saved else None)
            assert (frame.register, frame.offset, frame.rbp) == expected, line
            checked += 1
    assert checked > 5000
