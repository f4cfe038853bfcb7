"""The agent on real little programs: parking, forks, comparison, mock-ups, timing."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from layout_advise.errors import ProgramError, SnapshotError
from layout_advise.tracer.process.agent import ABI_HEADER
from layout_advise.tracer.process.patching import Entry, plan_patch
from layout_advise.tracer.process.stopped_program import MODES, Calm, CloneImage, Range
from layout_advise.tracer.snapshot import compare as compare_module
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.snapshot.snapshots import ForkSnapshots
from tests.support.tracing.symbol_entries import entry_of

N = 20000

PROGRAM = r"""
#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct p { double x, v, rest[6]; };
static struct p *ps;
double total, scale[4] = {1, 2, 3, 4};
__attribute__((noipa)) static double hot(struct p *q, long n, double dt) {
    double s = 0;
    for (long i = 0; i < n; i++) { q[i].x += q[i].v * dt; s += q[i].x; }
    return s;
}
__attribute__((noipa, target("avx"))) void wide(double *out, __m256d a, __m256d b) {
    _mm256_storeu_pd(out, _mm256_add_pd(a, b));
}
__attribute__((noipa)) void crash(int *where) { *where = 1; }
__attribute__((target("avx"))) static void call_wide(int k) {
    wide(scale, _mm256_set1_pd(k), _mm256_loadu_pd(scale));
}
int main(int argc, char **argv) {
    long n = atol(argv[1]);
    ps = calloc(n, sizeof *ps);
    for (long i = 0; i < n; i++) { ps[i].x = i; ps[i].v = 0.5 * i; }
    free(malloc(1000));
    for (int k = 0; k < 10; k++) { total += hot(ps, n, 0.25); call_wide(k); }
    if (argc > 2 && !strcmp(argv[2], "crash")) crash(NULL);
    if (argc > 2 && !strcmp(argv[2], "hang")) for (;;) {}
    printf("%g %g\n", total, scale[3]);
    return 7;
}
"""

MOCKUP = r"""
#include "abi.h"
#include <stddef.h>
#include <string.h>
struct p { double x, v, rest[6]; };
const uint32_t la_abi = LA_ABI, la_buffer_count = 2;
const struct la_buffer_spec la_buffers[2] = {{8 * %(n)d, 64, 0, 0}, {8 * %(n)d, 64, 128, 0}};
static struct p *old(struct la_context *c) { return (struct p *)c->in.gpr[7]; }
void la_copy_in(struct la_context *c) {
    for (long i = 0; i < %(n)d; i++) {
        ((double *)c->buffers[0])[i] = old(c)[i].x;
        ((double *)c->buffers[1])[i] = old(c)[i].v;
    }
}
void la_run(struct la_context *c) {
    double *x = (double *)c->buffers[0], *v = (double *)c->buffers[1], s = 0, dt;
    memcpy(&dt, c->in.vector[0], 8);
    for (long i = 0; i < (long)c->in.gpr[6]; i++) { x[i] += v[i] * dt; s += x[i]; }
    memcpy(c->out.vector[0], &s, 8);
    %(extra)s
}
void la_copy_out(struct la_context *c) {
    for (long i = 0; i < %(n)d; i++) old(c)[i].x = ((double *)c->buffers[0])[i];
}
"""


IDENTITY = r"""
#include "abi.h"
#include <string.h>
struct p { double x, v, rest[6]; };
const uint32_t la_abi = LA_ABI, la_buffer_count = 0;
const struct la_buffer_spec la_buffers[1] = {{0, 0, 0, 0}};
void la_copy_in(struct la_context *c) { (void)c; }
void la_copy_out(struct la_context *c) { (void)c; }
void la_run(struct la_context *c) {
    struct p *q = (struct p *)c->in.gpr[7];
    double s = 0, dt;
    memcpy(&dt, c->in.vector[0], 8);
    for (long i = 0; i < (long)c->in.gpr[6]; i++) { q[i].x += q[i].v * dt; s += q[i].x; }
    memcpy(c->out.vector[0], &s, 8);
}
"""


def build(folder: Path, text: str, name: str, *flags: str) -> Path:
    source, target = folder / f"{name}.c", folder / name
    source.write_text(text)
    subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Wextra", str(source), "-o", str(target), *flags], check=True)
    return target


def mockup(folder: Path, name: str, extra: str = "") -> Path:
    text = MOCKUP % {"n": N, "extra": extra}
    return build(folder, text, name, "-shared", "-fPIC", "-ffp-contract=off", f"-I{ABI_HEADER.parent}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agent")


@pytest.fixture(scope="module")
def program(folder: Path) -> Path:
    return build(folder, PROGRAM, "particles")


@pytest.fixture
def parked(program: Path) -> Iterator[AgentProcess]:
    with park([str(program), str(N)], entry_of(program, "hot"), 5, timeout=60, command_timeout=20) as stopped:
        yield stopped


def block(stopped: AgentProcess, lines: int = N) -> Range:
    (found,) = [a for a in stopped.allocations() if a.bytes == 64 * lines]
    return Range(found.address, found.address + found.bytes)


def double(data: bytes) -> float:
    return float(struct.unpack("<d", data[:8])[0])


def test_parked_state(parked: AgentProcess, program: Path) -> None:
    registers = parked.registers()
    data = block(parked)
    assert registers.rip == parked.load_base + entry_of(program, "hot").address
    assert registers.gpr[7] == data.start
    assert registers.gpr[6] == N
    assert double(registers.vector[0]) == 0.25
    assert registers.mxcsr & 0x1F80 == 0x1F80
    particles = np.frombuffer(parked.read(data.start, 64 * N), dtype="<f8").reshape(N, 8)
    index = np.arange(N)
    assert np.array_equal(particles[:, 0], index + 4 * 0.25 * 0.5 * index)  # four calls went through
    code = entry_of(program, "hot").code
    assert parked.read(registers.rip, len(code)) == code  # pristine
    assert all(a.bytes != 1000 for a in parked.allocations())  # freed again
    assert not [p for p in Path(f"/proc/{parked.pid}/fd").iterdir() if "layout-advise" in os.readlink(p)]


def test_original_in_two_forks_is_equal(parked: AgentProcess) -> None:
    data = block(parked)
    with parked.fork() as a, parked.fork() as b:
        first, second = a.run(0), b.run(0)
        found = compare(parked, a, b)
        particles = np.frombuffer(a.read(data.start, 64 * N), dtype="<f8").reshape(N, 8)
    index = np.arange(N)
    expected = index + 5 * 0.125 * index
    assert np.array_equal(particles[:, 0], expected)
    assert double(first.registers.vector[0]) == pytest.approx(expected.sum(), rel=1e-12)
    assert first.registers.vector == second.registers.vector
    assert first.registers.gpr[3] == parked.registers().gpr[3]  # rbx is the caller's
    assert first.registers.gpr[4] == parked.registers().gpr[4] + 8
    assert found.equal
    assert found.bytes_compared >= 64 * N
    assert N <= found.bytes_changed <= 8 * N
    assert np.frombuffer(parked.read(data.start, 64), dtype="<f8")[0] == 0


def test_mockup_equals_and_a_wrong_one_differs(parked: AgentProcess, folder: Path) -> None:
    right, wrong = mockup(folder, "right.so"), mockup(folder, "wrong.so", "x[17] += 1e-9;")
    data = block(parked)
    with parked.fork() as witness:
        numbers = witness.load(right), witness.load(wrong)
        assert numbers == (1, 2)
        with witness.fork() as a, witness.fork() as b, witness.fork() as c:
            reference, result = a.run(0), b.run(1, forbidden=[data])
            assert double(result.registers.vector[0]) == double(reference.registers.vector[0])
            assert compare(witness, a, b).equal
            c.run(2)
            found = compare(witness, a, c)
    assert not found.equal
    assert {address // 8 * 8 for address, _, _ in found.differences} == {data.start + 17 * 64}
    assert found.max_ulp
    assert found.max_ulp > 0


def test_forbidden_read_dies(parked: AgentProcess, folder: Path) -> None:
    sneaky = mockup(folder, "sneaky.so", "x[0] = old(c)[N / 2].v;".replace("N", str(N)))
    with parked.fork() as fork:
        number = fork.load(sneaky)
        with pytest.raises(SnapshotError, match="SIGSEGV"):
            fork.run(number, forbidden=[block(parked)])
    parked.ping()


def test_partial_pages_are_poisoned_and_put_back(parked: AgentProcess, folder: Path) -> None:
    peek = mockup(folder, "peek.so", "memcpy(c->out.vector[1], &old(c)[0].v, 8);")
    start = block(parked).start
    with parked.fork() as fork:
        result = fork.run(fork.load(peek), forbidden=[Range(start, start + 64)])
        assert result.registers.vector[1][:8] == b"\xdb" * 8
        assert fork.read(start + 8, 8) == parked.read(start + 8, 8)


def test_hang_is_killed(program: Path, folder: Path) -> None:
    endless = mockup(folder, "endless.so", "for (volatile int go = 1; go;) {}")
    with park([str(program), str(N)], entry_of(program, "hot"), 1, command_timeout=1) as stopped:
        fork = stopped.fork()
        number = fork.load(endless)
        with pytest.raises(SnapshotError, match="hung"):
            fork.run(number)
        fork.close()
        assert not Path(f"/proc/{fork.pid}").exists()


def test_not_a_mockup(parked: AgentProcess, folder: Path) -> None:
    other = build(folder, "int nothing;", "nothing.so", "-shared", "-fPIC")
    with parked.fork() as fork:
        with pytest.raises(SnapshotError, match="not a mock-up"):
            fork.load(other)
        with pytest.raises(SnapshotError, match="no such variant"):
            fork.run(9)


def test_as_many_mockups_as_a_hotspot_may_have(parked: AgentProcess, folder: Path) -> None:
    """``entities``: 21 that differ, each at four places, and the unchanged layout; the last ones found no place."""
    one = mockup(folder, "many.so")
    with parked.fork() as fork:
        numbers = [fork.load(one) for _ in range(120)]
        assert len(set(numbers)) == 120
        fork.run(numbers[-1])


def test_timing_restores_what_a_call_writes(parked: AgentProcess, folder: Path) -> None:
    snapshots = ForkSnapshots(parked)
    data = block(parked)
    fork = snapshots.restore()
    before = fork.read(data.start, 64 * N)
    number = fork.load(mockup(folder, "timed.so"))
    assert fork.prepare(0, [data], [data]) == N - 1  # element 0 stays 0
    assert fork.prepare(number, [data], [data]) == N // 8
    for mode in MODES:
        for variant in (0, number):
            samples, _ = fork.block(variant, 4, mode)
            assert len(samples) == 4
            assert all(s.tsc > 0 and s.wall_ns > 0 and s.faults == 0 for s in samples)
            assert fork.read(data.start, 64 * N) == before
    for mode in MODES:
        samples, _ = fork.block(number, 3, mode, converted=True)
        assert len(samples) == 3
        assert all(s.cpu_ns > 0 for s in samples)
        assert fork.read(data.start, 64 * N) == before
    never, always = Calm(1, 3_000_000), Calm(1 << 60, 3_000_000)  # a canary of one tick, or of any number
    assert all(s.canary > 1 for s in samples)
    assert fork.block(0, 3, calm=never)[1] == Calm(1, 0)
    assert fork.block(0, 3, calm=always)[1] == always
    assert {s.memory for s in samples} == {0}
    looked, _ = fork.block(number, 3, calm=Calm(look=True))
    assert all(s.memory > 1 for s in looked)
    for clock in ("thread-cpu", "wall"):
        assert 6 <= len(fork.block(number, 2, settle=(30, clock))[0]) <= 30
    assert len(fork.block(number, 8, settle=(7, "wall"))[0]) == 8
    assert [len(fork.block(number, 2, mode, settle=(30, "wall"))[0]) for mode in ("cold", "fresh")] == [2, 2]
    with pytest.raises(SnapshotError, match="too many"):
        fork.block(number, 2, settle=(5000, "wall"))
    assert fork.read(data.start, 64 * N) == before
    with pytest.raises(SnapshotError):
        fork.block(0, 3, converted=True)
    for times in (1, 4):
        runs = fork.convert(number, times)
        assert len(runs) == times
        assert all(into > 0 and out > 0 for into, out in runs)
    assert fork.read(data.start, 64 * N) == before
    for bad in ((0, 3), (number, 0), (number, 65), (9, 3)):
        with pytest.raises(SnapshotError):
            fork.convert(*bad)
    snapshots.close()
    assert not Path(f"/proc/{fork.pid}").exists()
    parked.ping()


@pytest.mark.parametrize("lines", [1000, 300_000])
def test_copies_of_any_size_are_put_back(program: Path, lines: int) -> None:
    """Those that no second-level cache holds are not flushed where the last one is large."""
    with park([str(program), str(lines)], entry_of(program, "hot"), 2) as stopped, stopped.fork() as fork:
        data = block(stopped, lines)
        before = fork.read(data.start, 64 * lines)
        assert fork.prepare(0, [data], [data]) == lines - 1
        fork.block(0, 3)
        assert fork.read(data.start, 64 * lines) == before
        fork.run(0)
        assert fork.read(data.start, 64 * lines) != before


def test_vectors_reach_the_replay(program: Path) -> None:
    if " avx " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("needs AVX")
    with park([str(program), "10"], entry_of(program, "wide"), 4) as stopped:
        assert np.frombuffer(stopped.registers().vector[0][:32], dtype="<f8").tolist() == [3.0] * 4
        with stopped.fork() as fork:
            fork.run(0)
            out = np.frombuffer(fork.read(stopped.registers().gpr[7], 32), dtype="<f8").tolist()
    assert out == [1 + 6.0, 2 + 6.0, 3 + 6.0, 4 + 6.0]  # 0+1+2 before, 3 now


def test_never_reached(program: Path) -> None:
    with pytest.raises(ProgramError, match="reached 10 times, call 11 asked; the program ended with exit status 7"):
        park([str(program), "10"], entry_of(program, "hot"), 11)
    with pytest.raises(ProgramError, match="never reached"):
        park([str(program), "10"], entry_of(program, "crash"), 1)
    with pytest.raises(ProgramError, match="1 time, call 2 asked; the program ended with killed by SIGSEGV"):
        park([str(program), "10", "crash"], entry_of(program, "crash"), 2)
    with pytest.raises(ProgramError, match="10 calls within"):
        park([str(program), "10", "hang"], entry_of(program, "hot"), 11, timeout=2)
    with pytest.raises(ProgramError, match="no such program"):
        park(["/no/such"], entry_of(program, "hot"), 1)


def test_static_program_is_told(folder: Path) -> None:
    static = build(folder, PROGRAM, "static", "-static")
    with pytest.raises(ProgramError, match="static or setuid"):
        park([str(static), "10"], entry_of(static, "hot"), 1)


def test_no_orphans_when_the_controller_is_killed(program: Path, folder: Path) -> None:
    script = folder / "controller.py"
    script.write_text(
        "import sys\nfrom pathlib import Path\nfrom layout_advise.tracer.process.patching import Entry\n"
        "from layout_advise.tracer.snapshot.park import park\n"
        f"p = park([{str(program)!r}, '10'], {entry_of(program, 'hot')!r}, 2)\n".replace("PosixPath", "Path")
        + "f = p.fork()\nprint(p.pid, f.pid, flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as controller:
        assert controller.stdout is not None
        pids = [int(word) for word in controller.stdout.readline().split()]
        assert len(pids) == 2
        os.kill(controller.pid, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(_alive(pid) for pid in pids)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_nothing_is_left_behind(program: Path) -> None:
    stopped = park([str(program), "10"], entry_of(program, "hot"), 2)
    fork = stopped.fork().fork()
    stopped.close()
    stopped.close()
    assert not _alive(stopped.pid)
    assert not _alive(fork.pid)
    assert not stopped.folder.path.exists()


def test_the_identity_puts_back_what_the_original_changes(parked: AgentProcess, folder: Path) -> None:
    data = block(parked)
    flags = ("-shared", "-fPIC", "-ffp-contract=off", f"-I{ABI_HEADER.parent}")
    identity, other = build(folder, IDENTITY, "identity.so", *flags), mockup(folder, "other.so")
    with parked.fork() as fork:
        before = fork.read(data.start, 64 * N)
        number, new = fork.load(identity), fork.load(other)
        with pytest.raises(SnapshotError, match="the original is not prepared"):
            fork.prepare(number, [data], [data], like_original=True)
    with parked.fork() as fork:
        number, new = fork.load(identity), fork.load(other)
        assert fork.prepare(0, [data], [data]) == N - 1
        assert fork.prepare(number, [data], [data], like_original=True) == N - 1
        with pytest.raises(SnapshotError, match="another layout"):
            fork.prepare(new, [data], [data], like_original=True)
        for variant in (number, 0, number):
            samples, _ = fork.block(variant, 3)
            assert len(samples) == 3
            assert fork.read(data.start, 64 * N) == before


def test_relocation_plans() -> None:
    def plan(code: bytes) -> tuple[bool, int]:
        made = plan_patch(Entry(Path("x"), 0x1000, code))
        return made.int3, made.size

    assert plan(bytes.fromhex("f30f1efa4889f8c3")) == (False, 7)  # endbr64; mov; ret
    assert plan(bytes.fromhex("488d0510000000c3")) == (False, 7)  # lea rax, [rip+16]
    assert plan(bytes.fromhex("89f8c3")) == (True, 2)  # too short for a jump
    assert plan(bytes.fromhex("31c048ffc04839f875f8c3")) == (True, 2)  # the loop's head is the second instruction
    with pytest.raises(SnapshotError, match="head of a loop"):
        plan(bytes.fromhex("48ffc04839f875f8c3"))
    moved = plan_patch(Entry(Path("x"), 0x1000, bytes.fromhex("741e4889f8c3")))  # je +0x1e
    assert moved.blob[:2] == b"\x0f\x84"
    assert moved.fixes[0].target == 0x1020


def test_trace_runs_a_clone_once(parked: AgentProcess, tmp_path: Path) -> None:
    """A clone written by hand: one record (rdi | 5 << 48), then the original."""
    address = 0x10_0000_0000
    code = bytes.fromhex("48b8") + (5 << 48).to_bytes(8, "little")  # mov rax, 5 << 48
    code += bytes.fromhex("4809f8 4c8b15e7ffffff 498902 498d4208".replace(" ", ""))  # or; mov r10, [next]; mov; lea
    code = code[:13] + bytes.fromhex("4c8b15") + (-(24 + 20)).to_bytes(4, "little", signed=True) + code[20:]
    code += bytes.fromhex("488905") + (-(24 + len(code) + 7)).to_bytes(4, "little", signed=True)  # mov [next], rax
    code += bytes.fromhex("48b8") + parked.registers().rip.to_bytes(8, "little") + bytes.fromhex("ffe0")  # jmp original
    image = CloneImage(address, bytes(24) + code, address + 24, ())
    records = parked.folder.path / "records"
    with parked.fork() as traced, parked.fork() as plain:
        assert traced.traced_ns is None
        assert traced.trace(image, records, 1000) == (1, False)
        assert traced.traced_ns is not None
        assert traced.traced_ns > 0
        plain.run(0)
        assert compare(parked, traced, plain).equal  # the program ran on to the return
    assert records.read_bytes() == (block(parked).start | 5 << 48).to_bytes(8, "little")


def test_pages_that_all_share_are_not_read(parked: AgentProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    data = block(parked)
    read = 0
    real = compare_module._Memory.read

    def counted(memory: compare_module._Memory, which: int, address: int, size: int) -> NDArray[np.uint8]:
        nonlocal read
        read += size
        return real(memory, which, address, size)

    monkeypatch.setattr(compare_module._Memory, "read", counted)
    with parked.fork() as a, parked.fork() as b:
        idle = compare(parked, a, b)
        quiet, read = read, 0
        a.run(0)
        found = compare(parked, a, b)
    assert idle.equal
    assert not found.equal
    assert found.bytes_compared == idle.bytes_compared
    assert found.bytes_changed > 0
    assert read >= 3 * (data.end - data.start - 2 * 4096)
    if frames_visible():
        assert quiet < found.bytes_compared // 2


def frames_visible() -> bool:
    """Whether /proc/PID/pagemap tells frame numbers (to root only)."""
    buffer = np.ones(1)
    with open("/proc/self/pagemap", "rb") as handle:
        handle.seek(buffer.ctypes.data // 4096 * 8)
        return bool(int.from_bytes(handle.read(8), "little") & ((1 << 55) - 1))


def test_nothing_of_a_command_is_mapped_once_it_is_answered(parked: AgentProcess) -> None:
    """What is mapped at the park is compared later: the agent's own buffers must not be among it. On one core, and ahead of
    the program where that is allowed, so that it is seen right after its answer."""
    cores = os.sched_getaffinity(0)
    seen = set()
    try:
        os.sched_setaffinity(0, {min(cores)})
        os.sched_setaffinity(parked.pid, {min(cores)})
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        for _ in range(500):
            parked.ping()
            seen.add(tuple((m.start, m.end) for m in parked.mappings()))
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, cores)
    assert len(seen) == 1


def test_several_threads_may_fork_one_program(parked: AgentProcess) -> None:
    data = block(parked)
    before = parked.read(data.start, 64 * N)

    def once(turn: int) -> bytes:
        with parked.fork() as fork:
            fork.run(0)
            return fork.read(data.start, 64 * N)

    with ThreadPoolExecutor(4) as pool:
        after = set(pool.map(once, range(12)))
    assert len(after) == 1
    assert after != {before}
    assert parked.read(data.start, 64 * N) == before


def test_forks_are_ended_whatever_they_do(program: Path) -> None:
    with park([str(program), str(N), "hang"], entry_of(program, "hot"), 5, timeout=60, command_timeout=60) as stopped:
        forks = [stopped.fork() for _ in range(2)]
        stopped.close_forks()
        for fork in forks:
            assert not _alive(fork.pid)
            with pytest.raises(SnapshotError, match="closed"):
                fork.ping()
        stopped.ping()
