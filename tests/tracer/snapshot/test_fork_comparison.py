"""Mock-ups and the original in forks of a parked program: what they leave is compared; forbidden accesses kill them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from layout_advise.errors import SnapshotError
from layout_advise.mockup.emit.frame import MOST_BUFFERS
from layout_advise.tracer.process.stopped_program import Range, Strided
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.compare import compare
from layout_advise.tracer.snapshot.pages.process_memory import ProcessMemory
from layout_advise.tracer.snapshot.park import park
from tests.support.tracing.parked_programs import entry_of
from tests.support.tracing.snapshot_programs import (
    N,
    as_double,
    build_mockup,
    build_program,
    particles_of,
)


def test_original_in_two_forks_is_equal(parked: AgentProcess) -> None:
    data = particles_of(parked)
    with parked.fork() as a, parked.fork() as b:
        first, second = a.run(0), b.run(0)
        found = compare(parked, a, b)
        particles = np.frombuffer(a.read(data.start, 64 * N), dtype="<f8").reshape(N, 8)
    index = np.arange(N)
    expected = index + 5 * 0.125 * index
    assert np.array_equal(particles[:, 0], expected)
    assert as_double(first.registers.vector[0]) == pytest.approx(expected.sum(), rel=1e-12)
    assert first.registers.vector == second.registers.vector
    assert first.registers.gpr[3] == parked.registers().gpr[3]  # rbx is the caller's
    assert first.registers.gpr[4] == parked.registers().gpr[4] + 8
    assert found.equal
    assert found.bytes_compared >= 64 * N
    assert N <= found.bytes_changed <= 8 * N
    assert np.frombuffer(parked.read(data.start, 64), dtype="<f8")[0] == 0


def test_mockup_equals_and_a_wrong_one_differs(parked: AgentProcess, folder: Path) -> None:
    right, wrong = build_mockup(folder, "right.so"), build_mockup(folder, "wrong.so", "x[17] += 1e-9;")
    data = particles_of(parked)
    with parked.fork() as witness:
        numbers = witness.load(right), witness.load(wrong)
        assert numbers == (1, 2)
        with witness.fork() as a, witness.fork() as b, witness.fork() as c:
            reference, result = a.run(0), b.run(1, forbidden=[data])
            assert as_double(result.registers.vector[0]) == as_double(reference.registers.vector[0])
            assert compare(witness, a, b).equal
            c.run(2)
            found = compare(witness, a, c)
    assert not found.equal
    assert {address // 8 * 8 for address, _, _ in found.differences} == {data.start + 17 * 64}
    assert found.max_ulp
    assert found.max_ulp > 0


def test_forbidden_read_dies(parked: AgentProcess, folder: Path) -> None:
    sneaky = build_mockup(folder, "sneaky.so", "x[0] = old(c)[N / 2].v;".replace("N", str(N)))
    with parked.fork() as fork:
        number = fork.load(sneaky)
        with pytest.raises(SnapshotError, match="SIGSEGV"):
            fork.run(number, forbidden=[particles_of(parked)])
    parked.ping()


def test_partial_pages_are_poisoned_and_put_back(parked: AgentProcess, folder: Path) -> None:
    peek = build_mockup(folder, "peek.so", "memcpy(c->out.vector[1], &old(c)[0].v, 8);")
    start = particles_of(parked).start
    with parked.fork() as fork:
        result = fork.run(fork.load(peek), forbidden=[Range(start, start + 64)])
        assert result.registers.vector[1][:8] == b"\xdb" * 8
        assert fork.read(start + 8, 8) == parked.read(start + 8, 8)


def test_fields_between_others_are_poisoned_and_put_back(parked: AgentProcess, folder: Path) -> None:
    """The members that are re-laid, of all elements; others may be used by calls that stay calls."""
    peek = build_mockup(folder, "fields.so", f"memcpy(c->out.vector[1], &old(c)[{N - 1}], 16);")
    data = particles_of(parked)
    last = data.start + 64 * (N - 1)
    with parked.fork() as fork:
        other = parked.read(last + 8, 8)
        result = fork.run(
            fork.load(peek),
            forbidden=[Strided(data.start + k, data.start + 64 * N, 64, 8) for k in (0, 24)],
        )
        assert result.registers.vector[1][:16] == b"\xdb" * 8 + other
        there, here = (np.frombuffer(p.read(data.start, 64 * N), dtype="<u8").reshape(N, 8) for p in (fork, parked))
        assert np.array_equal(there[:, 1:], here[:, 1:])  # the first one is what the mock-up writes


@pytest.mark.parametrize("strided", [False, True])
def test_constants_are_poisoned_and_stay_what_they_were(
    parked: AgentProcess, folder: Path, program: Path, strided: bool
) -> None:
    """lame: layouts of a table of constants killed the program that compared them, as it lies in read-only memory."""
    constants = next(m for m in parked.mappings() if m.permissions == "r--p" and m.path == str(program))
    start, end = constants.start + 16, constants.start + 80
    peek = build_mockup(folder, f"constants{strided}.so", f"memcpy(c->out.vector[1], (void *){start}ul, 8);")
    with parked.fork() as fork:
        result = fork.run(fork.load(peek), forbidden=[Strided(start, end, 64, 8) if strided else Range(start, end)])
        assert result.registers.vector[1][:8] == b"\xdb" * 8
        assert fork.read(constants.start, 4096) == parked.read(constants.start, 4096)
        assert [m.permissions for m in fork.mappings() if m.start == constants.start] == ["r--p"]


def test_hang_is_killed(program: Path, folder: Path) -> None:
    endless = build_mockup(folder, "endless.so", "for (volatile int go = 1; go;) {}")
    with park([str(program), str(N)], entry_of(program, "hot"), 1, command_timeout=1) as stopped:
        fork = stopped.fork()
        number = fork.load(endless)
        with pytest.raises(SnapshotError, match="hung"):
            fork.run(number)
        fork.close()
        assert not Path(f"/proc/{fork.pid}").exists()


def test_not_a_mockup(parked: AgentProcess, folder: Path) -> None:
    other = build_program(folder, "int nothing;", "nothing.so", "-shared", "-fPIC")
    with parked.fork() as fork:
        with pytest.raises(SnapshotError, match="not a mock-up"):
            fork.load(other)
        with pytest.raises(SnapshotError, match="no such variant"):
            fork.run(9)


def test_as_many_mockups_as_a_hotspot_may_have(parked: AgentProcess, folder: Path) -> None:
    """``entities``: 21 that differ, each at four places, and the unchanged layout; the last ones found no place."""
    one = build_mockup(folder, "many.so")
    with parked.fork() as fork:
        numbers = [fork.load(one) for _ in range(120)]
        assert len(set(numbers)) == 120
        fork.run(numbers[-1])


def test_a_mockup_with_an_array_for_each_of_many_fields(parked: AgentProcess, folder: Path) -> None:
    """Cells of particles have more fields than 64; their layouts were "not a mock-up of this version", and none counted."""
    many, too_many = build_mockup(folder, "m.so", arrays=MOST_BUFFERS), build_mockup(folder, "t.so", arrays=MOST_BUFFERS + 1)
    with parked.fork() as witness:
        number = witness.load(many)
        with pytest.raises(SnapshotError, match="more arrays"):
            witness.load(too_many)
        with witness.fork() as a, witness.fork() as b:
            a.run(0)
            b.run(number)
            assert compare(witness, a, b).equal


def test_pages_that_all_share_are_not_read(parked: AgentProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    data = particles_of(parked)
    read = 0
    real = ProcessMemory.read

    def counted(memory: ProcessMemory, which: int, address: int, size: int) -> NDArray[np.uint8]:
        nonlocal read
        read += size
        return real(memory, which, address, size)

    monkeypatch.setattr(ProcessMemory, "read", counted)
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


THREADED = r"""
#include <pthread.h>
__attribute__((noipa)) static void hot(long *data, long n) { for (long i = 0; i < n; i++) data[i] += i; }
static void *work(void *unused) {
    long data[64] = {0};
    for (int k = 0; k < 8; k++) hot(data, 64);
    return (void *)data[63];
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    return pthread_join(thread, 0);
}
"""


def test_the_end_of_a_threads_stack_is_the_kernels(folder: Path) -> None:
    """The processor's number stands there (rseq). It differed now and then, and minimap2, which works in a thread, was not
    verified."""
    program = build_program(folder, THREADED, "threaded", "-pthread")
    with park([str(program)], entry_of(program, "hot"), 5, command_timeout=20) as stopped:
        registers = stopped.registers()
        with stopped.fork() as a, stopped.fork() as b:
            a.run(0)
            b.run(0)
            _flip(b.pid, registers.fs_base + 0x920)
            assert compare(stopped, a, b).equal
            _flip(b.pid, registers.gpr[7] + 8)  # an array in the frame of the caller
            found = compare(stopped, a, b)
    assert [address for address, _, _ in found.differences] == [registers.gpr[7] + 8]


def _flip(pid: int, address: int) -> None:
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        (old,) = memory.read(1)
        memory.seek(address)
        memory.write(bytes([old ^ 0xFF]))
