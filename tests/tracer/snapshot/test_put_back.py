"""What the agent puts back before a timed call: exactly the bytes that the call changes, however they lie."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.snapshot.snapshots import ForkSnapshots

BYTES = 1 << 20

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
/* Bytes drawn with likelihood 1 in `rare`, in each of them another value than before; some are written with the old one. */
__attribute__((noipa)) void scatter(unsigned char *data, long n, unsigned rare, unsigned seed)
{
    for (long i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345u;
        if ((seed >> 8) % rare == 0)
            data[i] = (unsigned char)(data[i] + (seed >> 24) % 3);
    }
}
int main(int argc, char **argv)
{
    unsigned char *data = aligned_alloc(64, 1 << 20);
    for (long i = 0; i < 1 << 20; i++)
        data[i] = (unsigned char)(i * 7);
    for (unsigned call = 0; call < 3; call++)
        scatter(data, 1 << 20, (unsigned)atoi(argv[argc - 1]), call);
    printf("%d\n", data[17]);
}
"""


@pytest.mark.parametrize("rare", [1, 5, 60, 5000, 1 << 30])
def test_memory_is_as_before_after_every_block(tmp_path: Path, rare: int) -> None:
    (tmp_path / "scatter.c").write_text(PROGRAM)
    program = tmp_path / "scatter"
    subprocess.run(["gcc", "-O2", "-g", "-Wall", "-Werror", "-o", str(program), str(tmp_path / "scatter.c")], check=True)
    function = ElfBinary.open(program).find("scatter")
    code = ElfBinary.open(program).read(function.start, function.size)
    with park([str(program), str(rare)], Entry(program, function.start, code, "scatter"), 2, timeout=60) as parked:
        data = parked.registers().gpr[7]
        # pieces of memory, out of order, touching and overlapping, whose ends are no ends of lines; a hole is never restored
        pieces = [(700_001, BYTES), (0, 300_000), (299_990, 500_003), (600_007, 700_001)]
        ranges = [Range(data + start, data + end) for start, end in pieces]
        kept = np.ones(BYTES // 64, dtype=bool)
        kept[500_003 // 64 + 1 : 600_007 // 64] = False
        with parked.fork() as child:
            before = np.frombuffer(child.read(data, BYTES), np.uint8)
            child.run(0)
            after = np.frombuffer(child.read(data, BYTES), np.uint8)
        changed = (before != after).reshape(-1, 64).any(axis=1)
        snapshots = ForkSnapshots(parked)
        with snapshots.restore() as fork:
            assert fork.prepare(0, ranges, ranges) == int((changed & kept).sum())
            for mode in ("steady", "cold", "steady"):
                fork.block(0, 3, mode)
                now = np.frombuffer(fork.read(data, BYTES), np.uint8).reshape(-1, 64)
                assert np.array_equal(now[kept], before.reshape(-1, 64)[kept])
        snapshots.close()
