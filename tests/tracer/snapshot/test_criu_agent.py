"""CRIU with the real agent: a parked program, restored, runs its hotspot on the same addresses with the same result."""

from __future__ import annotations

import hashlib
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.criu import find_criu
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.snapshot.snapshots import CriuSnapshots

WORDS = 25 * 1024 * 1024  # 200 MB

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) double relax(double *data, long n, double factor)
{
    double last = 0;
    for (long i = 1; i < n; i++)
        last = data[i] = factor * data[i] + 0.25 * data[i - 1];
    return last;
}

int main(int argc, char **argv)
{
    const long n = atol(argv[argc - 1]);
    double *data = malloc((size_t)n * sizeof *data);
    char line[64];
    double sum = 0;
    if (!data || !fgets(line, sizeof line, stdin))
        return 1;
    for (long i = 0; i < n; i++)
        data[i] = (double)(i % 1000) * atof(line);
    for (int step = 0; step < 4; step++)
        sum += relax(data, n, 0.5);
    printf("%a\n", sum);
}
"""


@pytest.fixture(scope="module")
def parked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """The program above, stopped at the third call."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(PROGRAM)
    (folder / "input").write_text("1.5\n")
    program = folder / "program"
    subprocess.run(["gcc", "-O2", "-g", "-o", str(program), str(folder / "program.c")], check=True)
    binary = ElfBinary.open(program)
    function = binary.find("relax")
    entry = Entry(program, function.start, binary.read(function.start, function.size), "relax")
    with park([str(program), str(WORDS)], entry, 3, stdin_path=folder / "input", timeout=60) as process:
        yield process


def digest(program: AgentProcess, data: int) -> str:
    """Of the whole array: two of them differ in a line that can be printed."""
    return hashlib.blake2b(program.read(data, 8 * WORDS)).hexdigest()


def run_once(program: AgentProcess, data: int) -> tuple[str, float]:
    """Run the original; what it left in memory and what it returned."""
    result = program.run(0)
    (returned,) = struct.unpack_from("<d", result.registers.vector[0])
    return digest(program, data), returned


@pytest.mark.criu
@pytest.mark.slow
def test_original_runs_alike_in_every_restore(parked: AgentProcess, tmp_path: Path) -> None:
    criu = find_criu()
    if criu is None:
        pytest.skip("no CRIU works on this machine (layout-advise doctor says why)")
    data = parked.registers().gpr[7]
    before = digest(parked, data)
    with parked.fork() as child:
        expected = run_once(child, data)
    assert expected[0] != before
    snapshots = CriuSnapshots(parked, criu, tmp_path)
    try:
        for _ in range(3):
            with snapshots.restore() as restored:
                assert restored.registers() == parked.registers()
                assert restored.allocations() == parked.allocations()
                assert digest(restored, data) == before
                assert run_once(restored, data) == expected
        with snapshots.restore() as restored:
            assert restored.prepare(0, [Range(data, data + 8 * WORDS)]) > 0
            samples, _ = restored.block(0, 3)
            assert len(samples) == 3
            assert all(sample.cpu_ns > 0 for sample in samples)
        parked.ping()
        assert digest(parked, data) == before
    finally:
        snapshots.close()
    assert not list(tmp_path.iterdir())
