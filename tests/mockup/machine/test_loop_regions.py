"""Loop nests of a function that is entered once: stopped at, replayed and lifted, against what the program itself does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from layout_advise.choose.profile import Profiled
from layout_advise.errors import NotLiftedError
from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.mockup.evidence.streams import expand_array
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.mockup.machine.liveness import CARRY, FLAGS, REST, Liveness, places
from layout_advise.mockup.machine.loop_regions import LoopNest, hottest_nests
from layout_advise.reports.model.contract import read_report
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.code.region import CodeRange, Region
from layout_advise.tracer.process.patching import plan_patch
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import SampleRun, probe
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park

COUNT, STEPS = 3000, 40

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { double x, y, z, vx, vy, vz; long kind, cell; } particle;
static inline void push(particle *p, long n, double dt)
{
    for (long i = 0; i < n; i++) {
        p[i].x += p[i].vx * dt;
        p[i].vx -= p[i].x * dt;
    }
}
static inline long leave(const particle *p, long n, double limit)
{
    long i = 0;
    for (; i < n; i++)
        if (p[i].x > limit)
            break;
    return i;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]), steps = atol(argv[2]), seen = 0;
    int search = argc > 3 && !strcmp(argv[3], "search");
    particle *p = calloc(n, sizeof *p);
    for (long i = 0; i < n; i++) {
        p[i].x = i;
        p[i].vx = 0.5 * i;
    }
    for (long s = 0; s < steps; s++) {
        if (search) {
            seen += leave(p, n, n - s % 3 * 2.0);
            p[s % n].kind += seen;
        } else {
            push(p, n, 1e-3);
        }
    }
    printf("%.17g %ld\n", p[n - 1].x, seen);
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loops")
    (folder / "inlined.c").write_text(PROGRAM)
    for name, flags in (("O2", ["-O2"]), ("O3", ["-O3", "-fno-loop-unroll-and-jam", "-fno-loop-interchange"])):
        command = ["gcc", "-g", *flags, "-o", str(folder / name), str(folder / "inlined.c")]
        subprocess.run(command, check=True)
    return folder


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(PROGRAM.splitlines(), 1) if text in line)


def nest_at(binary: ElfBinary, line: int) -> LoopNest:
    """The innermost nest of main on the way to where the source line's code is."""
    function = binary.find("main")
    addresses = range(function.start, function.start + function.size)
    samples = {a: 1 for a in addresses if (found := binary.line(a)) is not None and found.line == line}
    nests = list(hottest_nests(binary.region(function, 0), samples))
    assert nests
    assert isinstance(nests[-1], LoopNest), nests[-1]
    return nests[-1]


def profiled(program: Path, line: int) -> Profiled:
    binary = ElfBinary.open_module(str(program))
    run = SampleRun(0, None, 1.0, np.empty(0, np.uint64), ())
    return Profiled(run, (), (), binary, binary.find("main"), 1.0, nest_at(binary, line))


PUSH, LEAVE = line_of("p[i].x += p[i].vx * dt"), line_of("if (p[i].x > limit)")
CASES = [("O2", PUSH, ()), ("O3", PUSH, ()), ("O2", LEAVE, ("search",)), ("O3", LEAVE, ("search",))]


def words(program: Path, extra: tuple[str, ...]) -> list[str]:
    return [str(program), str(COUNT), str(STEPS), *extra]


def particles(stopped: AgentProcess) -> bytes:
    (block,) = [a for a in stopped.allocations() if a.bytes == 64 * COUNT]
    return stopped.read(block.address, block.bytes)


@pytest.mark.parametrize(("name", "line", "extra"), CASES)
def test_entries_are_counted_and_timed(folder: Path, name: str, line: int, extra: tuple[str, ...]) -> None:
    hotspot = profiled(folder / name, line)
    seen = probe(words(folder / name, extra), hotspot.entry, timeout=60)
    assert (seen.calls, len(seen.times), seen.recursive, seen.exit_status) == (STEPS, STEPS, False, 0)
    first = probe(words(folder / name, extra), hotspot.entry, first=3, timed=2, max_calls=4, timeout=60)
    assert (first.calls, len(first.times), first.stopped) == (4, 2, True)


def test_a_watched_program_computes_what_it_computes(folder: Path) -> None:
    """Its output with stubs at the loop's entry and exits is that of an undisturbed run."""
    hotspot = profiled(folder / "O2", PUSH)
    plain = subprocess.run(words(folder / "O2", ()), check=True, capture_output=True).stdout
    with park(words(folder / "O2", ()), hotspot.entry, STEPS, timeout=60) as stopped, stopped.fork() as fork:
        fork.run(0)
        last = np.frombuffer(particles(fork), "<f8").reshape(COUNT, 8)[-1, 0]
    assert plain.split()[0] == f"{last:.17g}".encode()


@pytest.mark.parametrize(("name", "line", "extra"), CASES)
def test_a_replayed_entry_does_what_the_program_does_until_the_next(
    folder: Path, name: str, line: int, extra: tuple[str, ...]
) -> None:
    program = folder / name
    hotspot = profiled(program, line)
    nest = hotspot.nest
    assert nest is not None
    with park(words(program, extra), hotspot.entry, 7, timeout=60, command_timeout=20) as stopped:
        before = particles(stopped)
        assert stopped.registers().rip == stopped.load_base + nest.entry
        with stopped.fork() as fork:
            result = fork.run(0)
            after = particles(fork)
        assert result.registers.rip - stopped.load_base in nest.exits
        assert result.registers.gpr[4] == stopped.registers().gpr[4]
    with park(words(program, extra), hotspot.entry, 8, timeout=60) as later:
        expected = particles(later)
    if extra:  # the search writes nothing
        assert after == before
    else:
        assert after == expected
        assert after != before


@pytest.mark.parametrize(("name", "line", "extra"), CASES)
def test_the_trace_is_of_one_entry(folder: Path, name: str, line: int, extra: tuple[str, ...]) -> None:
    """Brute force: the push loads and stores two fields of all particles; the search reads x until it is over the limit."""
    program = folder / name
    hotspot = profiled(program, line)
    with park(words(program, extra), hotspot.entry, 6, timeout=60, command_timeout=20) as stopped:
        (block,) = [a for a in stopped.allocations() if a.bytes == 64 * COUNT]
        region = hotspot.region(stopped.load_base)
        trace = trace_call(stopped, region, 6)
    assert region.kind == "loop"
    wanted = {block.address + 64 * i + field for i in range(COUNT) for field in (0, 24)}
    if extra:  # x is its index: searched is up to the first that is greater than the limit
        limit = COUNT - 5 % 3 * 2.0
        wanted = {block.address + 64 * i for i in range(min(int(limit) + 2, COUNT))}
    touched = set()
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        addresses = expand_array(stream).tolist() if isinstance(stream, FoldedStream) else []
        touched |= {a + 8 * k for a in addresses for k in range(max(reference.bytes // 8, 1))}
    inside = {a for a in touched if block.address <= a < block.address + block.bytes}
    assert wanted <= inside
    if name == "O2":
        assert inside == wanted
    assert not trace.truncated


def test_the_lifted_search_leaves_the_index_and_says_where_it_left(folder: Path) -> None:
    hotspot = profiled(folder / "O2", LEAVE)
    assert hotspot.nest is not None
    lifted = lift(hotspot.region(0), outs=hotspot.nest.outs)
    locations = [out.location for out in lifted.live_outs]
    assert Gpr(16) in locations
    assert any(isinstance(place, Gpr) and place.number < 16 for place in locations)


ASSEMBLY = r"""
#include <stdio.h>
long sums[200];
int main(void)
{
    __asm__ volatile("mov $60, %%ecx\n"
                     "2: xor %%eax, %%eax\n" /* two bytes between two loop heads: no room for a jump */
                     "1: add %%rcx, (%0, %%rax, 8)\n"
                     "inc %%rax\n"
                     "cmp $200, %%rax\n"
                     "jne 1b\n"
                     "dec %%ecx\n"
                     "test %%ecx, %%ecx\n"
                     "jne 2b\n"
                     :
                     : "r"(sums)
                     : "rax", "rcx", "cc", "memory");
    printf("%ld\n", sums[7]);
    return 0;
}
"""


def test_where_no_jump_fits_before_a_loop_a_trap_does(tmp_path: Path) -> None:
    (tmp_path / "trap.c").write_text(ASSEMBLY)
    subprocess.run(["gcc", "-g", "-O2", "-o", tmp_path / "trap", tmp_path / "trap.c"], check=True)
    binary = ElfBinary.open_module(str(tmp_path / "trap"))
    function = binary.find("main")
    inner = next(
        i.address for b in build_cfg(binary.region(function, 0)).blocks.values() for i in b.insns if i.mnemonic == "inc"
    )
    nests = list(hottest_nests(binary.region(function, 0), {inner: 1}))
    assert isinstance(nests[-1], LoopNest), nests
    hotspot = Profiled(SampleRun(0, None, 1.0, np.empty(0, np.uint64), ()), (), (), binary, function, 1.0, nests[-1])
    assert plan_patch(hotspot.entry).int3
    seen = probe([str(tmp_path / "trap")], hotspot.entry, timeout=60)
    assert (seen.calls, len(seen.times), seen.exit_status) == (60, 60, 0)
    address = next(v.address for v in binary.variables if v.name == "sums")
    with (
        park([str(tmp_path / "trap")], hotspot.entry, 11, timeout=60, command_timeout=20) as stopped,
        stopped.fork() as fork,
    ):
        fork.run(0)
        after = np.frombuffer(fork.read(stopped.load_base + address, 1600), "<i8")
    assert after.tolist() == [sum(range(50, 61))] * 200


# ---- liveness, of code whose answer is plain ----------------------------------------------------------------------------


def assembled(tmp_path: Path, text: str) -> Region:
    (tmp_path / "code.s").write_text(f".intel_syntax noprefix\n.globl f\n.type f, @function\nf:\n{text}\n.size f, .-f\n")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", tmp_path / "code.so", tmp_path / "code.s"], check=True)
    binary = ElfBinary.open_module(str(tmp_path / "code.so"))
    return binary.region("f", 0)


@pytest.mark.parametrize(
    ("code", "live", "dead"),
    [
        ("mov rax, rdi; add rax, rsi; ret", {7, 6}, {0, 1, 8}),
        ("xor eax, eax; xor edx, edx; ret", set(), {0, 2, 7}),
        ("mov al, 1; ret", {0}, {7}),  # a part of a register does not end its life
        ("cmove rax, rdi; ret", {0, 7}, {6}),
        ("mov eax, [rdi + 8*rcx]; ret", {7, 1}, {0, 6}),
        ("inc rdi; mov eax, 1; cmovb rax, rcx; ret", {7, 1}, {6}),
        ("jmp 2f; 1: mov rax, r9; ret; 2: test rdi, rdi; jne 1b; mov rax, r8; ret", {7, 8, 9}, {0, 6}),
    ],
)
def test_live_registers(tmp_path: Path, code: str, live: set[int], dead: set[int]) -> None:
    region = assembled(tmp_path, code)
    found = Liveness(build_cfg(region)).at_start[region.entry]
    numbers = {number for kind, number in found if kind == "g"}
    assert live <= numbers
    assert not dead & numbers
    assert {3, 5, 12, 13, 14, 15} <= numbers  # the caller's
    assert found & FLAGS == ({REST} if "cmove" in code else {CARRY} if "cmovb" in code else set())


@pytest.mark.parametrize(
    ("code", "live", "dead"),
    [
        ("addsd xmm0, xmm3; ret", {0, 3}, {2}),
        ("movsd xmm0, [rdi]; ret", {1}, {0, 2}),
        ("movsd xmm0, xmm2; ret", {0, 2}, {3}),  # the upper half stays
        ("vaddpd ymm0, ymm4, ymm5; ret", {4, 5}, {0, 2}),
        ("pxor xmm0, xmm0; ret", {1}, {0, 2}),
    ],
)
def test_live_vectors(tmp_path: Path, code: str, live: set[int], dead: set[int]) -> None:
    region = assembled(tmp_path, code)
    found = Liveness(build_cfg(region)).at_start[region.entry]
    numbers = {number for kind, number in found if kind == "v"}
    assert live <= numbers
    assert not dead & numbers
    assert {Lane(number, k) for number in live for k in (0, 1)} <= set(places(found, 2))


# ---- what is no region with one entry -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        # entered from two sides
        ("test rdi, rdi; je 1f; mov rax, 5; jmp 1f; nop; 1: add rax, 1; cmp rax, 100; jne 1b; mov eax, 1; ret", "2 ways"),
        # flags set before the loop are read in it at once, and nothing before them has room; and behind a call
        ("mov eax, 7; call 2f; 1: add rax, 1; cmp rax, 100; jne 1b; mov eax, 1; 2: ret", "no place before it"),
        # the code after the loop reads its last comparison
        ("mov eax, 5; nop; 1: add rax, 1; cmp rax, 100; jne 1b; sete al; movzx eax, al; ret", "reads its flags"),
        # nothing but a return after the loop: one byte, and no room for a jump
        ("mov eax, 5; nop; 1: add rax, 1; cmp rax, 100; jne 1b; ret", "no room"),
    ],
)
def test_refusals(tmp_path: Path, code: str, reason: str) -> None:
    region = assembled(tmp_path, code)
    (found,) = hottest_nests(region, dict.fromkeys(range(region.entry, region.ranges[0].end), 1))
    assert isinstance(found, NotLiftedError)
    assert reason in found.reason


def test_a_loop_with_two_entries_elsewhere_is_no_obstacle(tmp_path: Path) -> None:
    two = "test rdi, rdi; je 3f; 2: dec rdi; 3: dec rdi; jne 2b"
    region = assembled(tmp_path, f"{two}; mov eax, 5; nop; 1: add rax, 1; cmp rax, 100; jne 1b; mov eax, 1; ret")
    nests = list(hottest_nests(region, dict.fromkeys(range(region.entry, region.ranges[0].end), 1)))
    assert [type(n) for n in nests] == [LoopNest]
    with pytest.raises(NotLiftedError, match="two entries"):
        build_cfg(region)


def test_short_code_after_a_loop_is_taken_in(tmp_path: Path) -> None:
    inner = "xor eax, eax; nop; nop; nop; 1: add rax, 1; cmp rax, 100; jne 1b"
    region = assembled(tmp_path, f"mov ecx, 9; nop; 2: {inner}; jmp 3f; 3: dec ecx; jne 2b; mov eax, 3; ret")
    found = list(hottest_nests(region, dict.fromkeys(range(region.entry, region.ranges[0].end), 1)))
    nests = [n for n in found if isinstance(n, LoopNest)]
    assert len(nests) == len(found) == 2, found
    assert len(build_cfg(region).blocks[nests[0].head].insns) > 0
    jump = next(b for b in build_cfg(region).blocks.values() if b.insns[0].mnemonic == "jmp")
    assert nests[1].contains(jump.start)  # two bytes: no room for a jump there


def test_a_region_is_the_code_at_its_run_time_addresses(folder: Path) -> None:
    binary = ElfBinary.open_module(str(folder / "O2"))
    nest = nest_at(binary, PUSH)
    base = 0x7000000
    region = nest.region(binary.region("main", base))
    assert region.entry == nest.entry + base
    assert region.exits == tuple(e + base for e in nest.exits)
    for piece in region.ranges:
        assert isinstance(piece, CodeRange)
        assert piece.code == binary.read(piece.start - base, len(piece.code))
    assert region.contains(nest.head + base)
    assert not any(region.contains(e) for e in region.exits)


# ---- the whole road -----------------------------------------------------------------------------------------------------


def run_report(program: Path, folder: Path, *arguments: str) -> Path:
    command = [sys.executable, "-m", "layout_advise", "trace", "-q", "--call", "5", "--restores", "5"]
    command += ["-o", str(folder / "run"), "--"]
    environment = {**os.environ, "TERM": "dumb"}
    subprocess.run([*command, str(program), *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL, env=environment)
    return folder / "run"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "line", "extra"), CASES)
def test_the_whole_road(folder: Path, tmp_path: Path, name: str, line: int, extra: tuple[str, ...]) -> None:
    # 20,000 are searched in 20 µs, below which a loop is not timed
    report = read_report(run_report(folder / name, tmp_path, "50000", "3000", *extra))
    (hotspot,) = report.hotspots
    assert (hotspot.symbol, hotspot.region) == ("main", "loop")
    assert hotspot.file is not None
    assert hotspot.file.endswith("inlined.c")
    assert hotspot.calls >= 1000
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified", hotspot.identity.reason
    (structure,) = hotspot.structures
    assert (structure.name, structure.count * structure.element_bytes) == ("p", 64 * 50000)
    good = [c for c in hotspot.candidates if c.evidence == "verified"]
    assert good
    assert all(c.verification is not None and c.verification.calls == 3 for c in good)
    checks = {c.id: c.ok for c in report.quality.checks}
    assert checks["wrong-map"]


SIBLINGS = """
double twice(double *a, double *b, long n, long rows) {
    double sum = 0;
    for (long i = 0; i < rows; i++) for (long k = 0; k < n; k++) a[k] = 0.5 * a[k] + i;
    for (long i = 0; i < rows; i++) { sum += a[i]; for (long k = 0; k < n; k++) sum += b[k] * a[i]; b[i] = sum; }
    return sum;
}
int main(void) { double a[9] = {0}, b[9] = {0}; return (int)twice(a, b, 9, 9); }"""


def test_beside_a_loop_are_those_that_share_no_code_with_it(tmp_path: Path) -> None:
    (tmp_path / "two.c").write_text(SIBLINGS)
    subprocess.run(["gcc", "-g", "-O2", "-fno-inline", "-o", tmp_path / "two", tmp_path / "two.c"], check=True)
    binary = ElfBinary.open(tmp_path / "two")
    function = binary.region("twice", 0)
    samples = dict.fromkeys(range(function.entry, function.ranges[0].end), 1)
    found: list[LoopNest] = []
    while nests := [n for n in hottest_nests(function, samples, beside=[k.head for k in found]) if isinstance(n, LoopNest)]:
        assert not any(nest.contains(at) for nest in nests for known in found for at in range(*known.ranges[0]))
        found.append(nests[0])
    assert len(found) == 2
    assert list(hottest_nests(function, samples, beside=[loop.head for loop in build_cfg(function).loops])) == []
