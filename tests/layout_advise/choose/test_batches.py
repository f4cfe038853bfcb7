"""Short calls recorded and replayed as a batch, against what the program's own arithmetic says."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.mockup.evidence.streams import expand_array
from layout_advise.observe.case import outside_arguments, words_read
from layout_advise.observe.stage import are_mapped
from layout_advise.reports.model.contract import schema
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.process.agent import ABI_HEADER
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.stopped_program import Range, RunResult
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import probe
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.snapshot.recorded_calls import AGENT_MEMORY, RECORDED, RSP, UPPER_HALVES, Calls, record_calls
from layout_advise.tracer.trace.trace import Mapping
from layout_advise.verify.compare import differing, left_behind
from tests.support.command import advise
from tests.support.compilers import HAS_AVX

COUNT, CALLS, FIRST, SIZE = 3000, 400, 21, 60

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
struct p { double x, v, rest[6]; };
__attribute__((noipa)) double move(struct p *q, long n, double dt)
{
    double s = 0;
    for (long i = 0; i < n; i++) {
        q[i].x += q[i].v * dt;
        s += q[i].x;
    }
    return s;
}
int main(int argc, char **argv)
{
    long n = atol(argv[1]), calls = atol(argv[2]), most = argc > 3 ? atol(argv[3]) : 7;
    struct p *ps = calloc(n, sizeof *ps);
    double total = 0;
    for (long i = 0; i < n; i++)
        ps[i] = (struct p){i, 0.5 * i, {1, 2, 3, 4, 5, 6}};
    for (long c = 0; c < calls; c++) {
        total += move(ps + c * 13 % (n - most), 1 + c % most, 0.25 * (c % 3));
        if (argc > 4 && c % 10 == 9)
            ps[c].rest[0] += c;
    }
    printf("%.17g\n", total);
}
"""

MOCKUP = r"""
#include "abi.h"
#include <string.h>
struct p { double x, v, rest[6]; };
enum { N = %(count)d };
#define OLD ((struct p *)%(base)dul)
const uint32_t la_abi = LA_ABI, la_buffer_count = 2;
const struct la_buffer_spec la_buffers[2] = {{8 * N, 64, 0, 0}, {8 * N, 64, 128, 0}};
void la_copy_in(struct la_context *c) {
    for (long i = 0; i < N; i++) {
        ((double *)c->buffers[0])[i] = OLD[i].x;
        ((double *)c->buffers[1])[i] = OLD[i].v;
    }
}
void la_run(struct la_context *c) {
    long first = (struct p *)c->in.gpr[7] - OLD;
    double *x = (double *)c->buffers[0] + first, *v = (double *)c->buffers[1] + first, s = 0, dt;
    memcpy(&dt, c->in.vector[0], 8);
    for (long i = 0; i < (long)c->in.gpr[6]; i++) { x[i] += v[i] * dt; s += x[i]; }
    %(extra)s
    memcpy(c->out.vector[0], &s, 8);
}
void la_copy_out(struct la_context *c) {
    for (long i = 0; i < N; i++) OLD[i].x = ((double *)c->buffers[0])[i];
}
"""


def arguments(call: int) -> tuple[int, int, float]:
    """First particle, number of particles and dt of call ``call`` (from 1), as main computes them."""
    c = call - 1
    return c * 13 % (COUNT - 7), 1 + c % 7, 0.25 * (c % 3)


def state_before(call: int) -> np.ndarray:
    """x of all particles before ``call``."""
    x = np.arange(COUNT, dtype=float)
    for earlier in range(1, call):
        one_call(x, earlier)
    return x


def one_call(x: np.ndarray, call: int) -> float:
    first, n, dt = arguments(call)
    total = 0.0
    for i in range(first, first + n):
        x[i] += 0.5 * i * dt
        total += x[i]
    return total


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("batch")
    (folder / "move.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O2", "-o", str(folder / "move"), str(folder / "move.c")], check=True)
    return folder / "move"


def entry(program: Path) -> Entry:
    binary = ElfBinary.open_module(str(program))
    function = binary.find("move")
    return Entry(program, function.start, binary.read(function.start, function.size), "move")


def command(program: Path) -> list[str]:
    return [str(program), str(COUNT), str(CALLS)]


@pytest.fixture
def calls(program: Path) -> Calls:
    return record_calls(command(program), entry(program), FIRST, 3 * SIZE, timeout=60)


@pytest.fixture
def parked(program: Path, calls: Calls) -> Iterator[AgentProcess]:
    with park(command(program), entry(program), FIRST, timeout=60, command_timeout=20) as stopped:
        stopped.batch(calls.part(FIRST, SIZE))
        yield stopped


def particles(stopped: AgentProcess) -> Range:
    (found,) = [a for a in stopped.allocations() if a.bytes == 64 * COUNT]
    return Range(found.address, found.address + found.bytes)


def positions(stopped: AgentProcess, place: Range) -> np.ndarray:
    return np.frombuffer(stopped.read(place.start, 64 * COUNT), dtype="<f8").reshape(COUNT, 8)[:, 0]


def sums(result: RunResult) -> list[float]:
    """What each call returned in xmm0."""
    return [struct.unpack_from("<d", each, 16)[0] for each in result.returned]


def test_the_recorded_arguments_are_the_program_s(calls: Calls, parked: AgentProcess) -> None:
    base = particles(parked).start
    assert len(calls) == 3 * SIZE
    for k in range(len(calls)):
        first, n, dt = arguments(FIRST + k)
        assert (calls.gpr(k)[7], calls.gpr(k)[6]) == (base + 64 * first, n)
        assert struct.unpack_from("<d", calls.data, RECORDED * k + 128) == (dt,)
    assert {6, 7} <= calls.varying
    assert 4 not in calls.varying  # rsp
    differing = [n for n in range(16) if calls.gpr(0)[n] != parked.registers().gpr[n]]
    assert differing == [], [(n, hex(calls.gpr(0)[n]), hex(parked.registers().gpr[n])) for n in differing]
    assert not calls.part(FIRST + 1, 5).starts_like(parked.registers(), (7,))
    assert calls.part(FIRST + 70, 2).gpr(1) == calls.gpr(71)


@pytest.mark.parametrize(
    ("now", "like"),
    [(0x5A0000E00000, True), (0x5A0011000008, True), (0x555555577730, False)],
)
def test_what_the_agent_left_in_a_register_is_no_argument(calls: Calls, parked: AgentProcess, now: int, like: bool) -> None:
    """libsvm's kernel calls functions that may read r8, in which an allocation left an address of the agent's tables."""
    at_entry = parked.registers()
    first = bytearray(calls.part(FIRST, 1).data)
    struct.pack_into("<Q", first, 8 * 8, 0x5A0011000000)
    registers = replace(at_entry, gpr=(*at_entry.gpr[:8], now, *at_entry.gpr[9:]))
    assert Calls(FIRST, bytes(first)).starts_like(registers, (4, 7, 8)) == like


def test_the_agents_memory_is_where_the_agent_has_it() -> None:
    text = (ABI_HEADER.parent / "sys.h").read_text()
    ends = dict(re.findall(r"#define LA_APART(_END)? (0x[0-9a-f]+)ull", text))
    assert range(int(ends[""], 16), int(ends["_END"], 16)) == AGENT_MEMORY


def test_a_program_with_fewer_calls(program: Path) -> None:
    found = record_calls(command(program), entry(program), CALLS - 9, 60, timeout=60)
    assert (found.first, len(found)) == (CALLS - 9, 10)


def test_the_batch_does_what_the_calls_do(parked: AgentProcess) -> None:
    place, x = particles(parked), state_before(FIRST)
    assert np.array_equal(positions(parked, place), x)
    with parked.fork() as fork:
        result = fork.run(0)
        after = positions(fork, place)
        slot = fork.read(parked.registers().gpr[4], 8)
    expected = [one_call(x, FIRST + k) for k in range(SIZE)]
    assert sums(result) == expected
    assert np.array_equal(after, x)
    assert slot == parked.read(parked.registers().gpr[4], 8)  # the program's own return address is back


ON_THE_STACK = PROGRAM.replace(
    "(struct p *q, long n, double dt)", "(long a, long b, long c, long d, long e, long f, struct step w)"
)
ON_THE_STACK = ON_THE_STACK.replace(
    "double s = 0;", "struct p *q = w.q; double dt = w.dt, s = 0; long n = w.n; a += b + c + d + e + f;"
)
ON_THE_STACK = ON_THE_STACK.replace("__attr", "struct step { struct p *q; long unused[20], n; double dt; };\n__attr", 1)
ON_THE_STACK = ON_THE_STACK.replace(
    "move(ps + c * 13 % (n - most), 1 + c % most, 0.25 * (c % 3))",
    "move(c, c, c, c, c, c, (struct step){ps + c * 13 % (n - most), {c}, 1 + c % most, 0.25 * (c % 3)})",
)


def test_arguments_on_the_stack_are_each_call_s_own(tmp_path: Path) -> None:
    program = tmp_path / "stack"
    subprocess.run(["gcc", "-g", "-O2", "-x", "c", "-", "-o", program], input=ON_THE_STACK.encode(), check=True)
    calls = record_calls(command(program), entry(program), FIRST, SIZE, timeout=60)
    words = calls.varying_stack
    assert {8, 8 * 22, 8 * 23} <= set(words)  # what varies: where, how many, how far
    with park(command(program), entry(program), FIRST, timeout=60, command_timeout=20) as stopped:
        stopped.batch(calls, words)
        binary = ElfBinary.open_module(str(program))
        trace = trace_call(stopped, binary.region(binary.find("move"), stopped.load_base, callees=True), FIRST)
        used = words_read(trace, words)
        assert used == (8, 8 * 22, 8 * 23)
        stopped.batch(calls, used)
        place, x = particles(stopped), state_before(FIRST)
        with stopped.fork() as fork:
            result = fork.run(0)
            assert sums(result) == [one_call(x, FIRST + k) for k in range(SIZE)]
            assert np.array_equal(positions(fork, place), x)
        with stopped.fork() as fork:
            text = MOCKUP % {"count": COUNT, "base": place.start, "extra": ""}
            for register, word in (("c->in.gpr[7]", 8), ("c->in.gpr[6]", 8 * 22)):
                text = text.replace(register, f"*(long *)(c->in.gpr[4] + {word})")
            text = text.replace("c->in.vector[0]", f"(char *)c->in.gpr[4] + {8 * 23}")
            mockup = fork.run(fork.load(compiled(text, tmp_path / "mockup.so")), forbidden=[place])
            assert sums(mockup) == sums(result)


IN_UPPER_HALVES = "#include <immintrin.h>\n" + PROGRAM.replace(
    "__attribute__((noipa)) double move(struct p *q, long n, double dt)",
    '__attribute__((noipa, target("avx"))) double move(struct p *q, long n, __m256d step)',
)
IN_UPPER_HALVES = IN_UPPER_HALVES.replace("double s = 0;", "double s = 0, dt = step[3];").replace(
    "int main", '__attribute__((target("avx"))) int main'
)
IN_UPPER_HALVES = IN_UPPER_HALVES.replace("0.25 * (c % 3))", "_mm256_setr_pd(c, 1, 2, 0.25 * (c % 3)))")


@pytest.mark.skipif(not HAS_AVX, reason="the processor has no AVX")
def test_upper_halves_of_vector_registers_are_each_call_s_own(tmp_path: Path) -> None:
    """As of code that is handed a vector of four doubles."""
    program = tmp_path / "upper"
    subprocess.run(["gcc", "-g", "-O2", "-x", "c", "-", "-o", program], input=IN_UPPER_HALVES.encode(), check=True)
    calls = record_calls(command(program), entry(program), FIRST, SIZE, timeout=60)
    steps = [struct.unpack_from("<2d", calls.data, RECORDED * k + UPPER_HALVES) for k in range(SIZE)]
    assert steps == [(2, arguments(FIRST + k)[2]) for k in range(SIZE)]
    with park(command(program), entry(program), FIRST, timeout=60, command_timeout=20) as stopped:
        stopped.batch(calls)
        place, x = particles(stopped), state_before(FIRST)
        with stopped.fork() as fork:
            result = fork.run(0)
            assert sums(result) == [one_call(x, FIRST + k) for k in range(SIZE)]
            assert np.array_equal(positions(fork, place), x)
        with stopped.fork() as fork:
            text = MOCKUP % {"count": COUNT, "base": place.start, "extra": ""}
            text = text.replace("c->in.vector[0]", "(char *)c->in.vector[0] + 24")
            mockup = fork.run(fork.load(compiled(text, tmp_path / "mockup.so")), forbidden=[place])
            assert sums(mockup) == sums(result)


def test_arguments_are_not_held_against_a_batch() -> None:
    ranges = [Range(0, 64), Range(0x1000 - 64, 0x1000 + 64), Range(0x1100, 0x1140), Range(0x1200, 0x1240)]
    found = outside_arguments(ranges, 0x1000)
    assert found == (Range(0, 64), Range(0x1000 - 64, 0x1008), Range(0x1208, 0x1240))


def compiled(text: str, target: Path) -> Path:
    target.with_suffix(".c").write_text(text)
    flags = ["-O2", "-ffp-contract=off", "-shared", "-fPIC", f"-I{ABI_HEADER.parent}"]
    subprocess.run(["gcc", *flags, "-o", str(target), str(target.with_suffix(".c"))], check=True)
    return target


def test_a_mock_up_of_the_batch_and_a_wrong_one(parked: AgentProcess, tmp_path: Path) -> None:
    place = particles(parked)
    made = []
    for name, extra in (("right", ""), ("wrong", "if (c->in.gpr[6] == 7) s += 1;"), ("astray", "x[0] += first == 390;")):
        text = MOCKUP % {"count": COUNT, "base": place.start, "extra": extra}
        made.append(compiled(text, tmp_path / f"{name}.so"))
    assert 390 in {arguments(FIRST + k)[0] for k in range(SIZE)}
    with parked.fork() as witness:
        numbers = [witness.load(path) for path in made]
        with witness.fork() as original:
            reference = sums(original.run(0))
            results, equal = [], []
            for number in numbers:
                with witness.fork() as fork:
                    results.append(sums(fork.run(number, forbidden=[place])))
                    equal.append(compare(witness, original, fork).equal)
    assert [r == reference for r in results] == [True, False, True]
    differing = [k for k in range(SIZE) if results[1][k] != reference[k]]
    assert differing == [k for k in range(SIZE) if arguments(FIRST + k)[1] == 7]
    assert equal == [True, True, False]


BROUGHT = """
const uint32_t la_entered = 2;
void la_enter(const struct la_context *c, int64_t *entered) {
    entered[0] = (struct p *)c->in.gpr[7] - OLD;
    entered[1] = (int64_t)c->in.gpr[6];
}
void la_run_entered(struct la_context *c) {
    if (c->entered[1] != (int64_t)c->in.gpr[6]) __builtin_trap();
    run(c, c->entered[0]);
}
void la_run(struct la_context *c) { (void)c; __builtin_trap(); }
"""


@pytest.mark.parametrize("alone", [False, True], ids=["batch", "one call"])
def test_what_the_calls_bring_along_is_made_of_their_registers(alone: bool, parked: AgentProcess, tmp_path: Path) -> None:
    place, x = particles(parked), state_before(FIRST)
    text = MOCKUP % {"count": COUNT, "base": place.start, "extra": ""}
    text = text.replace("void la_run(struct la_context *c) {", "static void run(struct la_context *c, long first) {")
    text = text.replace("    long first = (struct p *)c->in.gpr[7] - OLD;\n", "") + BROUGHT
    if alone:
        parked.unbatch()
    with parked.fork() as fork:
        number = fork.load(compiled(text, tmp_path / "brought.so"))
        result = fork.run(number, forbidden=[place])
        after = positions(fork, place)
    with parked.fork() as fork:
        original = fork.run(0)
    if alone:
        assert result.registers.vector[0][:8] == original.registers.vector[0][:8]
        one_call(x, FIRST)
    else:
        assert sums(result) == [one_call(x, FIRST + k) for k in range(SIZE)]
    assert np.array_equal(after, x)


def test_the_trace_holds_all_calls_in_order(parked: AgentProcess, program: Path) -> None:
    binary = ElfBinary.open_module(str(program))
    region = binary.region(binary.find("move"), parked.load_base, callees=True)
    trace = trace_call(parked, region, FIRST)
    base = particles(parked).start
    wanted = [base + 64 * i for k in range(SIZE) for f, n, _ in [arguments(FIRST + k)] for i in range(f, f + n)]
    stores = [
        s for r, s in zip(trace.references, trace.streams, strict=True) if r.kind == "write" and isinstance(s, FoldedStream)
    ]
    assert [expand_array(s).tolist() for s in stores] == [wanted]
    assert not trace.truncated


def test_a_full_buffer_stays_shut_for_the_calls_after(parked: AgentProcess, program: Path) -> None:
    binary = ElfBinary.open_module(str(program))
    region = binary.region(binary.find("move"), parked.load_base, callees=True)
    whole = trace_call(parked, region, FIRST)
    cut = trace_call(parked, region, FIRST, 200)
    assert cut.truncated
    assert 100 < cut.accesses <= 200
    for short, long in zip(cut.streams, whole.streams, strict=True):
        if isinstance(short, FoldedStream) and isinstance(long, FoldedStream):
            beginning = expand_array(short).tolist()
            assert beginning == expand_array(long).tolist()[: len(beginning)]


def test_timed_batches_leave_memory_as_it_was(parked: AgentProcess) -> None:
    place, x = particles(parked), state_before(FIRST)
    for k in range(SIZE):
        one_call(x, FIRST + k)
    changed = np.flatnonzero(x != state_before(FIRST))
    with parked.fork() as fork:
        lines = fork.prepare(0, [place])
        samples = fork.block(0, 5)[0] + fork.block(0, 2, "cold")[0] + fork.block(0, 3, "apart")[0]
        left = positions(fork, place)
    assert lines == len(changed)  # a particle is one line, and blocks of this size are page-aligned plus 16
    assert len(samples) == 10
    assert np.array_equal(left, state_before(FIRST))


def test_calls_one_by_one_are_the_same_calls(parked: AgentProcess, tmp_path: Path) -> None:
    """Of the original and of a mock-up; calls that do nothing, which are timed for what is around them, leave nothing."""
    place = particles(parked)
    mockup = compiled(MOCKUP % {"count": COUNT, "base": place.start, "extra": ""}, tmp_path / "mockup.so")
    with parked.fork() as fork:
        number = fork.load(mockup)
        fork.prepare(0, [place])
        fork.prepare(number, [place])
        for variant in (0, number, 0):
            assert len(fork.block(variant, 4, "apart")[0]) == 4
        assert np.array_equal(positions(fork, place), state_before(FIRST))
        x = state_before(FIRST)
        assert sums(fork.run(0)) == [one_call(x, FIRST + k) for k in range(SIZE)]
        assert np.array_equal(positions(fork, place), x)


@pytest.mark.parametrize("between", [False, True])
def test_what_the_program_writes_between_the_calls_is_found(program: Path, between: bool) -> None:
    words = [*command(program), "7", *(["between"] if between else [])]
    batch = record_calls(words, entry(program), FIRST, SIZE, timeout=60)
    with park(words, entry(program), FIRST, timeout=60, command_timeout=20) as stopped:
        stopped.batch(batch)
        place = particles(stopped)
        left = left_behind(stopped, [place])
    assert left is not None
    with park(words, entry(program), FIRST + SIZE, timeout=60, command_timeout=20) as later:
        found = differing(later, left)
    written = [c for c in range(FIRST - 1, FIRST + SIZE - 1) if c % 10 == 9]
    changed = [(struct.pack("<d", 1.0), struct.pack("<d", 1.0 + c)) for c in written]
    assert found == (sum(a != b for old, new in changed for a, b in zip(old, new, strict=True)) if between else 0)


def test_memory_that_the_program_gave_back_is_not_as_it_was(parked: AgentProcess) -> None:
    """earcut frees blocks of hundreds of KiB between the calls, and what a batch left in them could not be read."""
    place = particles(parked)
    data = parked.read(place.start, place.end - place.start)
    nowhere = Range(0x10000, 0x10000 + 4096)
    assert differing(parked, {place: data}) == 0
    assert differing(parked, {place: data, nowhere: bytes(4096)}) == 4096
    starts = {m.start for m in parked.mappings()}
    end = next(m.end for m in parked.mappings() if m.permissions.startswith("rw") and m.end not in starts)
    assert differing(parked, {Range(end - 64, end + 64): parked.read(end - 64, 64) + bytes(64)}) == 64


def test_quick_times_are_of_the_calls_asked_for(program: Path) -> None:
    found = probe(command(program), entry(program), first=FIRST, timed=SIZE, max_calls=FIRST + SIZE - 1, quick=True)
    assert (found.calls, len(found.quick_ns), found.stopped) == (FIRST + SIZE - 1, SIZE, True)
    assert all(0 <= ns < 1e7 for ns in found.quick_ns)
    assert any(ns > 0 for ns in found.quick_ns)
    assert [one.canary > 0 for one in found.times] == [True, *(False for _ in range(SIZE - 2)), True]
    assert found.canary > 1000


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30))
def test_calls_from_several_depths_are_made_from_the_lowest(depths: list[int]) -> None:
    rows = [struct.pack("<16Q", *((100 + d if n == RSP else n) for n in range(16))).ljust(RECORDED, b"\1") for d in depths]
    calls = Calls(1, b"".join(rows))
    assert calls.from_one_depth == (len(set(depths)) < 2)
    assert len(calls.varying_stack) == (0 if calls.from_one_depth else 64)
    first, count = calls.at_one_depth()
    assert len(set(depths[first : first + count])) == 1
    assert count == max(len(list(run)) for _, run in groupby(depths))
    level = calls.at_lowest()
    assert level.from_one_depth
    assert not level.varying
    assert [level.gpr(k)[RSP] for k in range(len(depths))] == [100 + min(depths)] * len(depths)
    if calls.from_one_depth:
        assert level == calls


CALL = "move(c, c, c, c, c, c, (struct step){ps + c * 13 % (n - most), {c}, 1 + c % most, 0.25 * (c % 3)})"
DEEPER = ON_THE_STACK.replace(CALL, "at(ps, n, most, c)").replace(
    "int main",
    """__attribute__((noipa)) double at(struct p *ps, long n, long most, long c)
{
    volatile char *room = __builtin_alloca(16 * (1 + c * 7 % 50));
    room[0] = 1;
    return CALL + room[0] - 1;
}
int main""".replace("CALL", CALL),
)


def test_calls_from_several_depths_of_the_stack(tmp_path: Path) -> None:
    program = tmp_path / "deeper"
    subprocess.run(["gcc", "-g", "-O2", "-x", "c", "-", "-o", program], input=DEEPER.encode(), check=True)
    calls = record_calls(command(program), entry(program), FIRST, SIZE, timeout=60)
    assert not calls.from_one_depth
    with park(command(program), entry(program), FIRST, timeout=60, command_timeout=20) as stopped:
        own = stopped.registers().gpr[RSP]
        stopped.batch(calls, calls.varying_stack)
        assert stopped.registers().gpr[RSP] < own
        binary = ElfBinary.open_module(str(program))
        trace = trace_call(stopped, binary.region(binary.find("move"), stopped.load_base, callees=True), FIRST)
        used = words_read(trace, calls.varying_stack)
        assert {8, 8 * 22, 8 * 23} <= set(used)
        stopped.batch(calls, used)
        place, x = particles(stopped), state_before(FIRST)
        with stopped.fork() as fork:
            assert sums(fork.run(0)) == [one_call(x, FIRST + k) for k in range(SIZE)]
            assert np.array_equal(positions(fork, place), x)
        stopped.unbatch()
        assert stopped.registers().gpr[RSP] == own


APPENDED = PROGRAM.replace(
    "for (long c = 0; c < calls; c++) {",
    """for (long c = 0; c < calls; c++) {
        if (c % 330 == 0) {
            ps = malloc(n * sizeof *ps);
            for (long i = 0; i < n; i++)
                ps[i] = (struct p){i, 0.5 * i, {1, 2, 3, 4, 5, 6}};
        }""",
)


def test_memory_that_comes_between_the_calls_is_not_the_program_s_yet(tmp_path: Path) -> None:
    """Every 330 calls the program goes on with a new block, which is not there when the calls before are repeated."""
    program = tmp_path / "appended"
    subprocess.run(["gcc", "-g", "-O2", "-x", "c", "-", "-o", program], input=APPENDED.encode(), check=True)
    words, first = [str(program), "20000", "1000", "12"], 300
    calls = record_calls(words, entry(program), first, 60, timeout=60)
    places = [Range(calls.gpr(k)[7], calls.gpr(k)[7] + 64) for k in range(len(calls))]
    with park(words, entry(program), first, timeout=60, command_timeout=20) as stopped:
        maps, own = stopped.mappings_at_park(), stopped.own_ranges()
        assert are_mapped(places[:31], maps, own)
        assert not any(are_mapped([place], maps, own) for place in places[31:])


def test_memory_that_is_not_the_program_s() -> None:
    ends = ((0x1000, 0x3000), (0x3000, 0x5000), (0x8000, 0x9000))
    maps = [Mapping(start, end, "rw-p", 0, "") for start, end in ends]
    assert are_mapped([Range(0x2FC0, 0x3040), Range(0x8000, 0x9000)], maps, ())
    assert not are_mapped([Range(0x4FC0, 0x5040)], maps, ())
    assert not are_mapped([Range(0x1000, 0x2000), Range(0x6000, 0x6040)], maps, ())
    assert not are_mapped([Range(0x1000, 0x2000)], maps, [Range(0x1FC0, 0x4000)])


def test_a_batch_can_be_taken_back(parked: AgentProcess) -> None:
    place, x = particles(parked), state_before(FIRST)
    parked.unbatch()
    with parked.fork() as fork:
        assert fork.run(0).returned == ()
        one_call(x, FIRST)
        assert np.array_equal(positions(fork, place), x)


ROWS = PROGRAM.replace("total += move(", "total += row(ps, n, c, most)").replace(
    "row(ps, n, c, most)ps + c * 13 % (n - most), 1 + c % most, 0.25 * (c % 3));", "row(ps, n, c, most);"
).replace("int main", """
__attribute__((noipa)) double row(struct p *ps, long n, long c, long most)
{
    char depth[16 * (1 + c % 5)];
    double total = 0;
    __asm__ volatile("" : : "r"(depth) : "memory");
    for (long k = 0; k < 1200; k++)
        total += move(ps + (c + k) * 13 % (n - most), 1 + k % most, 0.25 * (k % 3));
    return total;
}
int main""")  # fmt: skip


@pytest.mark.slow
def test_rows_of_calls_from_different_depths_are_batched_row_by_row(tmp_path: Path) -> None:
    """As libsvm calls its kernel: 2,400 times in a row from one frame, then from another one."""
    (tmp_path / "rows.c").write_text(ROWS)
    subprocess.run(["gcc", "-g", "-O2", "-o", str(tmp_path / "rows"), str(tmp_path / "rows.c")], check=True)
    words = (tmp_path / "rows", "20000", "2000", "700")
    (hotspot,) = advise(words, "--restores", "3", "--hotspot", "move", folder=tmp_path).hotspots
    assert hotspot.batch is not None
    assert hotspot.batch.calls == 1200 // 3
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"


@pytest.mark.slow
@pytest.mark.parametrize(("calls", "longest", "together"), [("40000", "100", range(1000, 4097)), ("3000", "4000", [750])])
def test_the_whole_road_with_calls_of_different_sizes(
    program: Path, tmp_path: Path, calls: str, longest: str, together: Sequence[int]
) -> None:
    """Registers as they are: bases, trip counts and a factor differ from call to call."""
    words = (program, "20000", calls, longest)
    report = advise(words, "--restores", "5", "--hotspot", "move", folder=tmp_path)
    jsonschema.validate(json.loads((tmp_path / "run" / "report.json").read_text()), schema())
    (hotspot,) = report.hotspots
    batch = hotspot.batch
    assert batch is not None
    assert batch.calls in together
    assert hotspot.call > batch.calls  # the batch ends before it, where the time is (decision 63)
    assert batch.ns_low <= batch.ns_median <= batch.ns_high
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"
    compact = [c for c in hotspot.candidates if "compact" in c.families and c.evidence == "verified"]
    assert compact
    assert all(c.verification is not None and c.verification.calls == 3 * batch.calls for c in compact)
    checks = {c.id: c.ok for c in report.quality.checks}
    assert checks["wrong-map"]
    assert checks["calls-verified"]
    assert checks["replayed-batch"]
    assert hotspot.verdict.reason != "short-calls"
