"""Chunks of a loop's iterations: counted, timed, stopped at, traced, replayed and lifted, against what the program does."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.choose.profile import Profiled
from layout_advise.errors import NotLiftedError, SnapshotError
from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.mockup.evidence.streams import expand_array
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.ir.lifted import LiftedLoop, everything
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.loop_regions import LoopNest, hottest_nests
from layout_advise.reports.model.contract import read_report
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.process.patching import Entry, plan_patch
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.entry_order import why_not_logged
from layout_advise.tracer.sampling.probe import SampleRun, probe
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park

NODES, ROUNDS, CHUNK = 3001, 7, 1000
"""The loop makes 21,007 iterations in seven entries, each of 3,001 but for the last one."""

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
typedef struct { double value, sum; int first, degree; long pad[3]; } node;
static node *nodes;
static int *edges;
__attribute__((noinline)) long sweep(long from, long to, double stop)
{
    long i = from;
    for (; i < to; i++) {
        double sum = 0;
        for (int k = 0; k < nodes[i].degree; k++)
            sum += nodes[edges[nodes[i].first + k]].value;
        nodes[i].sum += 0.5 * sum;
        nodes[i].value += 1e-3 * nodes[i].sum;
        if (nodes[i].sum > stop)
            break;
    }
    return i;
}
__attribute__((noipa)) long behind(long x) /* with padding before it: its function's last block has four bytes */
{
    return x + 1;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]), rounds = atol(argv[2]), seen = behind(-1);
    nodes = calloc(n, sizeof *nodes);
    edges = calloc(8 * n, sizeof *edges);
    for (long i = 0; i < n; i++) {
        nodes[i].value = i % 7;
        nodes[i].first = 8 * i;
        nodes[i].degree = 2 + i % 5;
        for (int k = 0; k < 8; k++)
            edges[8 * i + k] = (i * 7919 + k * 104729) % n;
    }
    for (long r = 0; r < rounds; r++)
        seen += sweep(0, n, 1e300);
    printf("%.17g %ld\n", nodes[n - 1].sum, seen);
    return argc > 3 ? (int)sweep(0, n, 0) : 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chunks")
    (folder / "sweep.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O2", "-o", str(folder / "sweep"), str(folder / "sweep.c")], check=True)
    return folder / "sweep"


def in_chunks(program: Path, chunk: int = CHUNK) -> Profiled:
    """The outer loop of sweep, in chunks."""
    binary = ElfBinary.open_module(str(program))
    function = binary.find("sweep")
    samples = dict.fromkeys(range(function.start, function.start + function.size), 1)
    outer = next(iter(hottest_nests(binary.region(function, 0), samples, chunk)))
    assert isinstance(outer, LoopNest), outer
    run = SampleRun(0, None, 1.0, np.empty(0, np.uint64), ())
    return Profiled(run, (), (), binary, function, 1.0, outer)


def words(program: Path, nodes: int = NODES, rounds: int = ROUNDS) -> list[str]:
    return [str(program), str(nodes), str(rounds)]


def memory(stopped: AgentProcess) -> bytes:
    (block,) = [a for a in stopped.allocations() if a.bytes == 48 * NODES]
    return stopped.read(block.address, block.bytes)


def first_of(chunk: int) -> int:
    """The node of the first iteration of a chunk."""
    return (chunk - 1) * CHUNK % NODES


def test_whole_chunks_are_counted_and_timed(program: Path) -> None:
    hotspot = in_chunks(program)
    plain = subprocess.run(words(program), check=True, capture_output=True).stdout
    assert plain.split()[1] == str(NODES * ROUNDS).encode()
    seen = probe(words(program), hotspot.entry, timeout=60)
    # the head is passed once more where the loop ends at its bottom only if it is tested there
    assert NODES * ROUNDS <= seen.passages <= (NODES + 1) * ROUNDS
    assert seen.calls == seen.passages // CHUNK
    assert len(seen.times) == -(-seen.passages // CHUNK)  # the last one, in which the loop ends, too
    assert not seen.recursive
    assert 0 < seen.counting_ns < 100 * CHUNK
    some = probe(words(program), hotspot.entry, first=2, timed=2, max_calls=3, timeout=60)
    assert (some.calls, len(some.times), some.stopped) == (3, 2, True)


def test_a_replayed_chunk_does_what_the_program_does_until_the_next(program: Path) -> None:
    hotspot = in_chunks(program)
    with park(words(program), hotspot.entry, 3, timeout=60, command_timeout=20) as stopped:
        before, head = memory(stopped), stopped.registers().rip
        assert head == stopped.load_base + hotspot.entry.address
        results = []
        for _ in range(2):
            with stopped.fork() as fork:
                result = fork.run(0)
                results.append((result.registers.rip, result.registers.gpr, memory(fork)))
        assert results[0] == results[1]
        with stopped.fork() as fork:
            fork.run(0)
            again = fork.run(0).registers.rip  # the same iterations once more
    assert results[0][0] == again == head
    with park(words(program), hotspot.entry, 4, timeout=60) as later:
        assert results[0][2] == memory(later) != before
        nest = hotspot.nest
        assert nest is not None
        kept = {number for kind, number in nest.kept[-1] if kind == "g"} - {4}
        assert kept
        assert all(results[0][1][number] == later.registers().gpr[number] for number in kept - {3, 5, 12, 13, 14, 15})


def test_a_chunk_in_which_the_loop_ends_leaves_it(program: Path) -> None:
    hotspot = in_chunks(program)
    with park(words(program), hotspot.entry, 4, timeout=60, command_timeout=20) as stopped:  # nodes 3,000 to 3,000
        with stopped.fork() as fork:
            left = fork.run(0).registers.rip
        assert left - stopped.load_base in {e.address for e in hotspot.entry.exits}
        trace = trace_call(stopped, hotspot.region(stopped.load_base), 4)
    assert not trace.truncated
    assert trace.accesses < 100


def test_the_trace_is_of_its_iterations(program: Path) -> None:
    """Brute force: which sums are stored, and how often."""
    hotspot = in_chunks(program)
    with park(words(program), hotspot.entry, 2, timeout=60, command_timeout=20) as stopped:
        (block,) = [a for a in stopped.allocations() if a.bytes == 48 * NODES]
        trace = trace_call(stopped, hotspot.region(stopped.load_base), 2)
        cut = trace_call(stopped, hotspot.region(stopped.load_base), 2, 900)
    stored = [
        expand_array(stream)
        for reference, stream in zip(trace.references, trace.streams, strict=True)
        if isinstance(stream, FoldedStream) and reference.kind != "read"
    ]
    first = first_of(2)
    nodes = [block.address + 48 * i for i in range(first, first + CHUNK)]  # both doubles in one store
    assert sorted(a for one in stored for a in one.tolist()) == nodes
    assert cut.truncated
    assert cut.accesses <= 900


def test_a_watched_program_computes_what_it_computes(program: Path) -> None:
    hotspot = in_chunks(program)
    plain = subprocess.run(words(program), check=True, capture_output=True).stdout
    last = NODES * ROUNDS // CHUNK
    with park(words(program), hotspot.entry, last, timeout=60, command_timeout=20) as stopped, stopped.fork() as fork:
        fork.run(0)
        at = first_of(last) + CHUNK - 1
        found = np.frombuffer(memory(fork), "<f8").reshape(NODES, 6)[at, 1]
    assert np.isfinite(found)
    assert plain


def test_what_is_lifted_counts_and_is_left_at_the_head(program: Path) -> None:
    hotspot = in_chunks(program)
    region = hotspot.region(0)
    assert region.ends[-1] == region.entry
    assert hotspot.nest is not None
    lifted = lift(region, outs=hotspot.nest.outs)
    (left,) = [out for out in lifted.live_outs if out.location == Gpr(16)]
    assert left.read_at is None
    assert any(out.read_at is not None and region.entry in out.read_at for out in lifted.live_outs)
    assert any(True for _ in everything(lifted.body))
    whole = lift(replace(region, chunk=0, kept=region.kept[:-1]), outs=hotspot.nest.outs)
    assert len(list(everything(lifted.body))) >= len(list(everything(whole.body)))


def test_its_entries_are_not_logged_beside_others(program: Path) -> None:
    entry = in_chunks(program).entry
    assert "chunks" in why_not_logged(entry, replace(entry, chunk=0))
    assert "chunks" in why_not_logged(replace(entry, chunk=0), entry)


# ---- what cannot be counted ---------------------------------------------------------------------------------------------


def assembled(tmp_path: Path, text: str) -> Profiled | NotLiftedError:
    (tmp_path / "code.s").write_text(f".intel_syntax noprefix\n.globl f\n.type f, @function\nf:\n{text}\n.size f, .-f\n")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-o", tmp_path / "code.so", tmp_path / "code.s"], check=True)
    binary = ElfBinary.open_module(str(tmp_path / "code.so"))
    region = binary.region("f", 0)
    (found,) = hottest_nests(region, dict.fromkeys(range(region.entry, region.ranges[0].end), 1), CHUNK)
    run = SampleRun(0, None, 1.0, np.empty(0, np.uint64), ())
    return found if isinstance(found, NotLiftedError) else Profiled(run, (), (), binary, binary.find("f"), 1.0, found)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("xor eax, eax; 1: adc rax, 1000; cmp rax, rdi; jne 1b; mov eax, 1; ret", "reads the flags"),
        ("2: xor ecx, ecx; 1: inc rcx; jnz 3f; 3: add rax, rcx; cmp rax, rdi; jne 1b; mov eax, 7; ret", ""),
        ("1: inc eax; jz 3f; add rax, rcx; cmp rax, rdi; jne 1b; 3: mov eax, 7; ret", "no room for a jump at its head"),
    ],
)
def test_heads_at_which_nothing_counts(tmp_path: Path, code: str, reason: str) -> None:
    found = assembled(tmp_path, code)
    if reason:
        assert isinstance(found, NotLiftedError)
        assert reason in found.reason
    else:
        assert isinstance(found, Profiled), found


def test_a_breakpoint_counts_no_iterations(program: Path) -> None:
    loop = b"\xe3\x05" + b"\x90" * 8  # jrcxz has no form for another place
    assert plan_patch(Entry(program, 0x1000, loop[2:], chunk=CHUNK)).int3 is False
    with pytest.raises(SnapshotError, match="cannot"):
        plan_patch(Entry(program, 0x1000, loop, chunk=CHUNK))


# ---- the whole road -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_whole_road(program: Path, tmp_path: Path) -> None:
    """Seven calls of more accesses than may be recorded, with no loop in them that is long enough."""
    command = [
        sys.executable,
        "-m",
        "layout_advise",
        "trace",
        "--max-refs",
        "3000000",
        "--restores",
        "3",
        "--hotspot",
        "sweep",
    ]
    command += ["-o", str(tmp_path / "run"), "--", *words(program, 400_000, 12)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=tmp_path)
    (hotspot,) = read_report(tmp_path / "run").hotspots
    assert (hotspot.symbol, hotspot.region) == ("sweep", "loop")
    assert hotspot.chunk is not None
    assert hotspot.calls >= 8
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified", hotspot.identity.reason
    good = [c for c in hotspot.candidates if c.evidence == "verified"]
    assert good
    assert all(c.verification is not None and c.verification.calls == 3 for c in good)
    assert any(term.term == "counting" for c in hotspot.candidates for term in c.error_budget)


TWO_WAYS = r"""
#include <stdio.h>
#include <stdlib.h>
typedef struct { double value, sum; long pad[4]; } node;
__attribute__((noipa)) void windows(node *nodes, long n)
{
    long i = 0, from;
    if (n > 900)
        goto far;
near:
    from = 0;
    asm volatile("" : "+r"(from));
    goto both;
far:
    from = i > 16 ? i - 16 : 0;
    asm volatile("" : "+r"(from));
both:
    for (long k = from; k < i; k++)
        nodes[i].sum += nodes[k].value;
    if (++i < n) {
        if (nodes[i].pad[0])
            goto far;
        goto near;
    }
    nodes[0].sum = nodes[n - 1].value * 0.5;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]);
    node *nodes = calloc(n, sizeof *nodes);
    for (long i = 0; i < n; i++)
        nodes[i] = (node){i % 7, 0, {i % 3}};
    windows(nodes, n);
    printf("%.17g %d\n", nodes[n - 1].sum, argc);
}
"""


def test_a_loop_that_is_entered_in_two_ways_is_taken_where_these_meet(tmp_path: Path) -> None:
    """prodigal's ``dprog``: no chunk was found but of its inner loop, an iteration of which takes 4 ns."""
    (tmp_path / "windows.c").write_text(TWO_WAYS)
    subprocess.run(["gcc", "-g", "-O2", "-o", str(tmp_path / "windows"), str(tmp_path / "windows.c")], check=True)
    binary = ElfBinary.open_module(str(tmp_path / "windows"))
    function = binary.find("windows")
    samples = dict.fromkeys(range(function.start, function.start + function.size), 1)
    entered = list(hottest_nests(binary.region(function, 0), samples))
    assert len([nest for nest in entered if isinstance(nest, LoopNest)]) == 1  # the inner one
    run = SampleRun(0, None, 1.0, np.empty(0, np.uint64), ())
    passed = []
    for outer in hottest_nests(binary.region(function, 0), samples, 50):
        assert isinstance(outer, LoopNest), outer
        hotspot = Profiled(run, (), (), binary, function, 1.0, outer)
        passed.append(probe([str(tmp_path / "windows"), "1001"], hotspot.entry, timeout=60).passages)
        lifted = lift(outer.region(binary.region(function, 0)), outs=outer.outs)
        assert len(passed) > 2 or sum(isinstance(item, LiftedLoop) for item in everything(lifted.body)) > 1
    # gcc 12 makes one loop of the far ones, in another of both, which is passed each third time
    assert {1001, 333} <= set(passed)
