"""Calls timed in forks of a parked program: each begins with the bytes and registers of the first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.agent import ABI_HEADER
from layout_advise.tracer.process.stopped_program import MODES, Calm
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.snapshot.snapshots import ForkSnapshots
from tests.support.tracing.parked_programs import entry_of
from tests.support.tracing.snapshot_programs import (
    IDENTITY,
    N,
    build_mockup,
    build_program,
    particles_of,
)


def test_timing_restores_what_a_call_writes(parked: AgentProcess, folder: Path) -> None:
    snapshots = ForkSnapshots(parked)
    data = particles_of(parked)
    fork = snapshots.restore()
    before = fork.read(data.start, 64 * N)
    number = fork.load(build_mockup(folder, "timed.so"))
    assert fork.prepare(0, [data], [data]) == N - 1  # element 0 stays 0
    assert fork.prepare(number, [data], [data]) == N // 8
    for mode in MODES:
        for variant in (0, number):
            samples, _ = fork.block(variant, 4, mode)
            assert len(samples) == 4
            assert all(s.tsc > 0 and s.wall_ns > 0 for s in samples)
            assert all(s.faults == 0 for s in samples[1:])
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
        data = particles_of(stopped, lines)
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


def test_the_identity_puts_back_what_the_original_changes(parked: AgentProcess, folder: Path) -> None:
    data = particles_of(parked)
    flags = ("-shared", "-fPIC", "-ffp-contract=off", f"-I{ABI_HEADER.parent}")
    identity, other = build_program(folder, IDENTITY, "identity.so", *flags), build_mockup(folder, "other.so")
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
