"""What tracing under Valgrind costs: ``python benchmarks/tracing_valgrind.py``.

All times are CPU times of the whole process (a shared machine disturbs them less than wall time). *inside*: the hotspot is
called once and sweeps its data; the run with many sweeps less the run with few is the cost of the sweeps alone, without
start-up and initialisation; that of our tool over that of ``--tool=none``. *over lackey*: the same, over ``lackey
--trace-mem=yes`` whose output is thrown away. *outside*: whole runs of the examples with the hotspot's entry counted but its
calls never recorded, over none; *a passed call*: what each of 1e8 calls of a hotspot of two instructions takes more.
*memory*: greatest resident size with 1e9 references over that with 1e6. *terms*: nodes of the folded trace of a call of the
kernel, the program's own code only. *random*: greatest resident size with 8-byte reads at random places in so many GB, less
that with as many reads in a page; whether their set was kept is said.
"""

from __future__ import annotations

import argparse
import atexit
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracing import HOTSPOTS, INSIDE, RESULTS, ROOT, Row, entry_of, row, table

from layout_advise.layoutalgebra.sets.nests import AddressSet
from layout_advise.observe.observe import count_nodes
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.tool.run import file_offset
from layout_advise.tracer.backends.valgrind.build import TOOL, tool_folder
from layout_advise.tracer.backends.valgrind.install import find_valgrind
from layout_advise.tracer.backends.valgrind.run import run_tool
from layout_advise.tracer.process.launch import fixed_addresses

SOURCE = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
struct particle { double x, y, z, vx, vy, vz, m, q, age, P; };
static struct particle p[400000];
static double grid[2][22][22][22][22], wide[2][12][12][12][202], matrix[300][300], board[1000][1002];
static void particles(void) { for (long i = 0; i < 400000; i++) p[i].P = 0.9 * p[i].P + p[i].m * p[i].vx * p[i].vx; }
#define AT(a, b, c, d) G[0][a][b][c][d]
#define STENCIL(END, ROW) \
    for (int a = 1; a < END; a++) for (int b = 1; b < END; b++) for (int c = 1; c < END; c++) for (int d = 1; d < ROW; d++) \
        G[1][a][b][c][d] = AT(a, b, c, d) + 0.1 * (AT(a - 1, b, c, d) + AT(a + 1, b, c, d) + AT(a, b - 1, c, d) \
            + AT(a, b + 1, c, d) + AT(a, b, c - 1, d) + AT(a, b, c + 1, d) + AT(a, b, c, d - 1) + AT(a, b, c, d + 1));
static volatile int extent = 21, outer = 11, row = 201;
#define G grid
static void stencil(void) { int end = extent; STENCIL(end, end) }
static void vectors(void) { STENCIL(21, 21) } /* a multiple of two doubles: gcc uses vectors, ten of them a row */
#undef G
#define G wide
static void rows(void) { int end = outer, last = row; STENCIL(end, last) }
static void lu(void) { for (int k = 0; k < 300; k++) for (int i = k + 1; i < 300; i++) {
    double f = matrix[i][k] /= matrix[k][k] + 2; for (int j = k + 1; j < 300; j++) matrix[i][j] -= f * matrix[k][j]; } }
static void checkerboard(void) { for (int colour = 0; colour < 2; colour++) for (int y = 1; y < 999; y++)
    for (int x = 1 + ((y + colour) & 1); x < 1001; x += 2)
        board[y][x] = 0.25 * (board[y - 1][x] + board[y + 1][x] + board[y][x - 1] + board[y][x + 1]); }
static double *place;
__attribute__((noipa)) double scattered(unsigned long places) { double sum = 0; unsigned long x = 1;
    for (long i = 0; i < 2000000; i++) {
        x = x * 6364136223846793005 + 1442695040888963407; sum += place[(x >> 20) % places]; }
    return sum; }
__attribute__((noipa)) void tiny(long n) { place = (double *)n; }
__attribute__((noipa)) void hot(const char *name, long sweeps) {
    for (long s = 0; s < sweeps; s++) {
        if (!strcmp(name, "particles")) particles(); else if (!strcmp(name, "stencil")) stencil();
        else if (!strcmp(name, "stencil-vectors")) vectors(); else if (!strcmp(name, "stencil-rows")) rows();
        else if (!strcmp(name, "lu")) lu(); else checkerboard(); } }
int main(int argc, char **argv) { (void)argc; memset(p, 0, sizeof p);
    if (!strcmp(argv[1], "random")) {
        place = mmap(0, 16ul << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return scattered(atol(argv[2])) != 0; }
    if (!strcmp(argv[1], "calls")) { for (long n = atol(argv[2]); n > 0; n--) tiny(n); return 0; }
    hot(argv[1], atol(argv[2])); return 0; }
"""
STARTER = r"""
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) { int status; struct rusage u; pid_t pid = fork();
    (void)argc;
    if (!pid) { execvp(argv[1], argv + 1); _exit(127); }
    if (wait4(pid, &status, 0, &u) != pid) return 1;
    fprintf(stderr, "%ld %ld\n", (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec,
            u.ru_maxrss);
    return status != 0; }
"""
KERNELS = {
    "particles": (2, 100),
    "stencil": (2, 200),
    "stencil-rows": (2, 200),
    "stencil-vectors": (2, 400),
    "lu": (1, 9),
    "checkerboard": (2, 60),
}
"""Few and many sweeps."""

SYMBOLS = {"stencil-rows": "rows", "stencil-vectors": "vectors"}
"""Where the function is not called as the kernel."""

NEVER = 1_000_000_000
LACKEY_SWEEPS = {"particles": (1, 8), "stencil": (1, 2)}
PASSED = (1_000_000, 101_000_000)
"""Few and many calls."""
MEMORY_SWEEPS = (1, 625)
"""Of the particles: 1.6 million references each."""


@dataclass(frozen=True, slots=True)
class Used:
    """CPU seconds and greatest resident size in MB."""

    seconds: float
    megabytes: float


@functools.cache
def starter() -> str:
    """A small program that runs its arguments as a command and says what that used: the greatest resident size of a process
    is never below that of the one it was started from, and this one is large."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    program = Path(folder) / "starter"
    subprocess.run(["gcc", "-O1", "-xc", "-o", str(program), "-"], input=STARTER, text=True, check=True)
    return str(program)


def used(command: Sequence[str], environment: dict[str, str] | None = None) -> Used:
    """Run ``command``; what it used."""
    full = dict(os.environ) | (environment or {})
    done = subprocess.run([starter(), *command], env=full, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed")
    microseconds, kilobytes = map(int, done.stderr.split()[-2:])
    return Used(microseconds / 1e6, kilobytes / 1024)


def other_tool(tool: str, program: Sequence[str], *options: str) -> Used:
    """A run under one of Valgrind's own tools."""
    launcher = str(find_valgrind().launcher)
    return used([*fixed_addresses(), launcher, f"--tool={tool}", "-q", "--log-file=/dev/null", *options, *program])


def ours(program: Sequence[str], symbol: str, call: int) -> Used:
    """A run under our tool, as the driver starts it but for the table of heap blocks."""
    valgrind = find_valgrind()
    entry = entry_of(Path(program[0]), symbol)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as out:
        place = [f"--out={out}", f"--entry-file={entry.path}", f"--entry-offset={file_offset(entry)}", f"--call={call}"]
        command = [*fixed_addresses(), str(valgrind.launcher), f"--tool={TOOL}", "-q", "--log-file=/dev/null", *place]
        return used([*command, *program], {"VALGRIND_LIB": str(tool_folder(valgrind))})


def inside(program: Path, kernel: str, rounds: int) -> list[Row]:
    """Slowdown over --tool=none, and the rate."""
    few, many = KERNELS[kernel]
    ratios, costs = [], []
    for _ in range(rounds):
        plain = [other_tool("none", [str(program), kernel, str(n)]).seconds for n in (few, many)]
        traced = [ours([str(program), kernel, str(n)], "hot", 1).seconds for n in (few, many)]
        ratios.append((traced[1] - traced[0]) / (plain[1] - plain[0]))
        costs.append((traced[1] - traced[0]) / (many - few))
    one = run_tool(Rerun([str(program), kernel, "1"], entry_of(program, SYMBOLS.get(kernel, kernel)), 1, 1 << 60))
    rate = one.accesses / statistics.median(costs) / 1e6
    note = f"{rate:.0f} M references/s; {min(ratios):.2f} to {max(ratios):.2f} in {rounds} rounds"
    own = [m for m in one.process.mappings if m.path == str(program)]
    terms = sum(count_nodes(r.stream) for r in one.references if own[0].start <= r.pc < own[-1].end)
    return [
        row(f"inside, over none: {kernel}", statistics.median(ratios), "x", 2.0, note),
        row(f"terms: {kernel}", terms, "", 100, f"{one.accesses} references"),
    ]


def over_lackey(program: Path, kernel: str, rounds: int) -> Row:
    """Our cost of a sweep over lackey's; one sweep more is seconds there and milliseconds here, so several rounds count."""
    (few, many), (few_ours, many_ours) = LACKEY_SWEEPS[kernel], KERNELS[kernel]
    ratios = []
    for _ in range(rounds):
        theirs = [other_tool("lackey", [str(program), kernel, str(n)], "--trace-mem=yes").seconds for n in (few, many)]
        mine = [ours([str(program), kernel, str(n)], "hot", 1).seconds for n in (few_ours, many_ours)]
        ratios.append((mine[1] - mine[0]) / (many_ours - few_ours) / ((theirs[1] - theirs[0]) / (many - few)))
    ratio = statistics.median(ratios)
    times = " to ".join(f"{1 / r:.0f}" for r in sorted(ratios, reverse=True)[:: max(1, rounds - 1)])
    note = f"{1 / ratio:.0f} times faster; {times} in {rounds} rounds"
    return row(f"inside, over lackey: {kernel}", ratio, "x", 0.01, note)


def outside(example: str, flags: str, rounds: int) -> Row:
    """Whole runs with every call passed."""
    path = ROOT / "examples" / example / "bin" / flags / example
    ratios = []
    for _ in range(rounds):
        before = other_tool("none", [str(path)]).seconds
        mine = ours([str(path)], HOTSPOTS[example], NEVER).seconds
        after = other_tool("none", [str(path)]).seconds
        ratios.append(2 * mine / (before + after))
    note = f"{min(ratios):.3f} to {max(ratios):.3f} in {rounds} rounds"
    return row(f"outside, over none: {example} {flags}", statistics.median(ratios), "x", 1.1, note)


def passed(program: Path, rounds: int) -> Row:
    """What a call of a tiny hotspot takes that is counted and passed."""
    few, many = PASSED
    costs, ratios = [], []
    for _ in range(rounds):
        plain = [other_tool("none", [str(program), "calls", str(n)]).seconds for n in (few, many)]
        counted = [ours([str(program), "calls", str(n)], "tiny", NEVER).seconds for n in (few, many)]
        costs.append((counted[1] - counted[0] - plain[1] + plain[0]) / (many - few) * 1e9)
        ratios.append((counted[1] - counted[0]) / (plain[1] - plain[0]))
    note = f"{many - few} calls of two instructions: {statistics.median(ratios):.2f} times none; {rounds} rounds"
    return row("outside: a passed call over none", statistics.median(costs), "ns", None, note)


def memory(program: Path) -> Row:
    """Resident size with a thousand times the references."""
    small, large = (ours([str(program), "particles", str(n)], "hot", 1).megabytes for n in MEMORY_SWEEPS)
    return row(
        "memory: 1e9 over 1.6e6 references", large / small, "x", 1.1, f"{small:.0f} and {large:.0f} MB, the program included"
    )


def random(program: Path, gigabytes: int) -> Row:
    """What sets of random addresses take, and what of them is known."""
    places = gigabytes * (1 << 27)
    wide, narrow = (ours([str(program), "random", str(n)], "scattered", 1).megabytes for n in (places, 512))
    run = run_tool(Rerun([str(program), "random", str(places)], entry_of(program, "scattered"), 1, 1 << 60))
    found = max((r.stream for r in run.references if r.stream), key=lambda stream: stream.count)
    if not isinstance(found, AddressSet):
        raise SystemExit("random reads folded")
    note = f"{found.count} reads counted, their set {'exact' if found.exact else 'marked inexact'}"
    return row(f"random: {gigabytes} GB", wide - narrow, "MB", 64, note)


def main() -> int:
    """Measure everything, write the rows, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each measurement (default: 3)")
    rounds = parser.parse_args().rounds
    subprocess.run(["make", "-s", "-C", str(ROOT / "examples")], check=True)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "kernels.c", Path(folder) / "kernels"
        source.write_text(SOURCE)
        subprocess.run(["gcc", "-O2", "-fno-inline", "-o", str(program), str(source)], check=True)
        for kernel in KERNELS:
            print(f"{kernel} …", file=sys.stderr)
            rows += inside(program, kernel, rounds)
        rows += [over_lackey(program, kernel, rounds) for kernel in LACKEY_SWEEPS]
        rows += [memory(program), passed(program, rounds)]
        rows += [random(program, gigabytes) for gigabytes in (1, 2, 4, 8)]
    for example in INSIDE:
        print(f"{example} …", file=sys.stderr)
        rows.append(outside(example, "O2", rounds))
    rows.append(
        row("load average of the machine", os.getloadavg()[0], "", None, "other people's work; CPU times were taken")
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "tracing-valgrind.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
