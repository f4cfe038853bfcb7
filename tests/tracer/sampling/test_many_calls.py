"""Very many calls of a hotspot, and a disk that is filled in the middle of the traced one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from layout_advise.choose.probed_calls import probe_calls
from layout_advise.choose.profile import Profiled
from layout_advise.config import Settings
from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.tracer.backends.clone import record
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.channel import MAX_TIMED
from layout_advise.tracer.process.patching import Entry, plan_patch
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import SampleRun, probe
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park

SOURCE = """
#include <stdlib.h>
static long data[1000];
__attribute__((noipa)) void hot(long k) { data[k % 1000] += k; data[(k + 1) % 1000] = 1; }
int main(int argc, char **argv) { for (long k = 1; k <= atol(argv[argc - 1]); k++) hot(k); return 0; }
"""


@pytest.mark.parametrize("calls", [10_000_000, pytest.param(100_000_000, marks=pytest.mark.slow)])
def test_the_last_of_many_calls_is_counted_and_traced(tmp_path: Path, calls: int) -> None:
    (tmp_path / "many.c").write_text(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-o", "many", "many.c"], cwd=tmp_path, check=True)
    binary = ElfBinary.open(tmp_path / "many")
    function = binary.find("hot")
    entry = Entry(binary.path, function.start, binary.read(function.start, function.size), "hot")
    assert not plan_patch(entry).int3  # a trap each call would take minutes
    command = [str(binary.path), str(calls)]
    seen = probe(command, entry, timeout=300)
    assert (seen.calls, seen.exit_status) == (calls, 0)
    with park(command, entry, calls, timeout=300) as parked:
        assert parked.registers().gpr[7] == calls
        region = binary.region(function, parked.load_base, callees=True)
        trace = trace_call(parked, region, calls, folder=tmp_path)
        data = next(v for v in binary.variables if v.name == "data").address + parked.load_base
    assert (trace.call, trace.truncated) == (calls, False)
    stored = [
        (address - data, reference.kind)
        for reference, stream in zip(trace.references, trace.streams, strict=True)
        if reference.kind != "read" and isinstance(stream, FoldedStream)
        for address in stream.expand()
    ]
    assert stored == [(8 * (calls % 1000), "both"), (8 * ((calls + 1) % 1000), "write")]


LONG = """
#include <stdlib.h>
static long data[200000];
__attribute__((noipa)) void hot(long k) { for (long i = 0; i < 200000; i++) data[i] += k; }
int main(void) { for (long k = 0; k < 3; k++) hot(k); return 0; }
"""


@pytest.fixture
def stopped(tmp_path: Path) -> Iterator[tuple[AgentProcess, Region]]:
    """Parked at a call that makes 200,001 accesses: its records take 1.6 MB."""
    (tmp_path / "long.c").write_text(LONG)
    subprocess.run(["gcc", "-O1", "-g", "-o", "long", "long.c"], cwd=tmp_path, check=True)
    binary = ElfBinary.open(tmp_path / "long")
    function = binary.find("hot")
    entry = Entry(binary.path, function.start, binary.read(function.start, function.size), "hot")
    with park([str(binary.path)], entry, 2, timeout=60) as parked:
        yield parked, binary.region(function, parked.load_base, callees=True)


def rooms(monkeypatch: pytest.MonkeyPatch, *records: int) -> None:
    """What the disk has room for, as it is asked for it: others fill it in between."""
    left = list(records)
    monkeypatch.setattr(record, "require", lambda *_: None)
    monkeypatch.setattr(record, "room_for_records", lambda _: left.pop(0))


def test_a_disk_that_is_full_in_the_middle_of_the_call(
    stopped: tuple[AgentProcess, Region], small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked, region = stopped
    before = parked.registers()
    rooms(monkeypatch, 1 << 24, 50_000)
    trace = trace_call(parked, region, 2, folder=small_disk)
    assert trace.truncated
    assert 50_000 - 48 <= trace.accesses <= 50_000
    assert trace.limits == (f"cut after {trace.accesses:,} accesses: no room for more in {small_disk}",)
    assert list(small_disk.iterdir()) == []
    assert parked.registers() == before


@pytest.mark.parametrize("room", [0, 1 << 24])
def test_a_disk_that_stays_full_is_told(
    stopped: tuple[AgentProcess, Region], small_disk: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    parked, region = stopped
    rooms(monkeypatch, 1 << 24, room, room)
    with pytest.raises(
        TraceError, match=f"^no trace of hot: {small_disk} was filled while its call was recorded; free some"
    ):
        trace_call(parked, region, 2, folder=small_disk)  # not "no clone": Valgrind would not help
    assert list(small_disk.iterdir()) == []
    rooms(monkeypatch, 1 << 20)
    whole = trace_call(parked, region, 2, folder=small_disk.parent)  # the parked program is as it was
    assert (whole.accesses, whole.truncated) == (200_001, False)


SLOWER = """
#include <stdlib.h>
static double data[30000];
__attribute__((noipa)) void hot(long k) { for (long i = 0; i < (k > 18000 ? 30000 : 300); i++) data[i] = data[i] * 0.5 + k; }
int main(void) { for (long k = 1; k <= 20000; k++) hot(k); return 0; }
"""


def test_a_call_beyond_those_that_are_timed_as_they_are_counted(tmp_path: Path) -> None:
    """Its time in the running program was not taken, and the verdict said that it differs from the snapshot's."""
    (tmp_path / "slower.c").write_text(SLOWER)
    subprocess.run(["gcc", "-O1", "-g", "-o", "slower", "slower.c"], cwd=tmp_path, check=True)
    binary = ElfBinary.open(tmp_path / "slower")
    run = SampleRun(0, None, 1.0, np.zeros(0, np.uint64), ())
    profiled = Profiled(run, (), (), binary, binary.find("hot"), 1.0)
    times = []
    for call in (5, 19_200):
        settings = Settings((str(binary.path),), tmp_path / "out", call=call, timeout=60)
        seen, chosen = probe_calls(settings, profiled, None)
        assert (seen.calls, len(seen.times), chosen.call) == (20_000, MAX_TIMED, call)
        assert chosen.in_situ_ns is not None
        times.append(chosen.in_situ_ns)
    assert times[1] > 2 * times[0]  # a hundred times as many iterations
