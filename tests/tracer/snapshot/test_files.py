"""Calls that read on in a file: each time they are run they find it where the program stood."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.snapshot.park import park
from tests.support.tracing.parked_programs import entry_of
from tests.support.tracing.snapshot_programs import build_program

PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void take(int fd, char *line)
{
    if (read(fd, line, 16) != 16)
        _exit(1);
}
int main(int argc, char **argv)
{
    static char line[64];
    int fd = open(argv[1], O_RDONLY);
    if (argc > 2) {
        fd = dup2(fd, 117);
        unlink(argv[1]);
    }
    for (int i = 0; i < 40; i++)
        take(fd, line);
    printf("%.16s\n", line);
}
"""
TEXT = "".join(f"line {k:10}\n" for k in range(40))


@pytest.mark.parametrize("gone", [False, True], ids=["a file", "a deleted file"])
def test_every_run_reads_the_same(gone: bool, tmp_path: Path) -> None:
    program = build_program(tmp_path, PROGRAM, "reads")
    (tmp_path / "text").write_text(TEXT)
    words = [str(program), str(tmp_path / "text"), *(("gone",) if gone else ())]
    with park(words, entry_of(program, "take"), 3) as stopped:
        at = stopped.registers().gpr[6]
        expected = TEXT[32:48].encode()
        assert stopped.read(at, 16) == TEXT[16:32].encode()
        with stopped.fork() as one, stopped.fork() as two:
            for fork in (one, two):
                fork.run(0)
                assert fork.read(at, 16) == expected
        with stopped.fork() as fork:
            assert fork.prepare(0, [Range(at, at + 64)], [Range(at, at + 64)]) == 1
            fork.block(0, 5)
            fork.run(0)
            assert fork.read(at, 16) == expected
        stopped.run(0)
        assert stopped.read(at, 16) == expected
