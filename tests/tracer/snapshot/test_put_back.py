"""What the agent puts back before a timed call: exactly the bytes that the call changes, however they lie."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import SnapshotError
from layout_advise.tracer.process.agent import ABI_HEADER
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.stopped_program import Range
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.changed_lines import changed_lines
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.snapshot.snapshots import ForkSnapshots
from tests.support.tracing.parked_programs import entry_of
from tests.support.tracing.snapshot_programs import build_program

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


ALLOCATES = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { SLOTS = 64 };
static void *slot[SLOTS];
/* Frees and allocates blocks of the sizes that a loader asks for, too, and lets some grow. */
__attribute__((noipa)) long hot(long from)
{
    long sum = 0;
    for (long i = from % 3; i < SLOTS; i += 3) {
        free(slot[i]);
        slot[i] = calloc(1, 24 + 16 * (size_t)(i * 29 % 90));
        slot[(i + 7) % SLOTS] = realloc(slot[(i + 7) % SLOTS], 24 + 16 * (size_t)(i * 17 % 70));
        memset(slot[i], (int)i, 24);
        sum += ((unsigned char *)slot[i])[i % 24];
    }
    return sum;
}
int main(void)
{
    long sum = 0;
    for (long i = 0; i < SLOTS; i++)
        slot[i] = malloc(24 + 16 * (size_t)(i * 31 % 80));
    for (long k = 0; k < 12; k++)
        sum += hot(k);
    printf("%ld\n", sum);
}
"""

CALLS = r"""
#include "abi.h"
const uint32_t la_abi = LA_ABI, la_buffer_count = 0;
const struct la_buffer_spec la_buffers[1] = {{0, 0, 0, 0, 0}};
void la_copy_in(struct la_context *c) { (void)c; }
void la_copy_out(struct la_context *c) { (void)c; }
void la_run(struct la_context *c) { c->out.gpr[0] = (uint64_t)((long (*)(long))c->in.rip)((long)c->in.gpr[7]); }
"""


def test_a_call_that_allocates_is_timed_with_mockups_loaded(tmp_path: Path) -> None:
    """A loader allocates: in the program's heap its lists would be others than those that are put back."""
    program = build_program(tmp_path, ALLOCATES, "allocates")
    flags = ("-shared", "-fPIC", f"-I{ABI_HEADER.parent}")
    mockups = [build_program(tmp_path, CALLS, f"mockup{k}.so", *flags) for k in range(3)]
    with park([str(program)], entry_of(program), 4, timeout=60) as parked:
        with parked.fork() as after:
            after.run(0)
            changed = changed_lines(parked, after)
        (heap,) = [m for m in parked.mappings_at_park() if m.path == "[heap]"]
        snapshots = ForkSnapshots(parked)
        with snapshots.restore() as fork:
            before = fork.read(heap.start, heap.end - heap.start)
            fork.prepare(0, changed, changed)
            numbers = [fork.load(mockup) for mockup in mockups]
            for number in numbers:
                fork.prepare(number, changed, changed, like_original=True)
            with pytest.raises(SnapshotError, match="no-such"):
                fork.load(tmp_path / "no-such.so")
            assert fork.read(heap.start, heap.end - heap.start) == before
            for number in (0, *numbers, 0):
                for mode in ("steady", "cold"):
                    assert len(fork.block(number, 30, mode)[0]) == 30
                    assert fork.read(heap.start, heap.end - heap.start) == before
        snapshots.close()


GIVES_BACK = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { PIECES = 40, BYTES = 100000 };
static char *piece[PIECES];
/* The heap ends further on after the second call, and far before after the third one. */
__attribute__((noipa)) long hot(long call)
{
    long sum = 0;
    for (int i = 0; i < PIECES; i++) {
        if (call == 1) {
            piece[i] = malloc(BYTES);
            memset(piece[i], i, BYTES);
        }
        sum += piece[i] != NULL ? piece[i][i] : 1;
    }
    for (int i = PIECES - 1; call == 2 && i >= 0; i--) {
        memset(piece[i], 7, BYTES);
        free(piece[i]);
    }
    return sum;
}
int main(void)
{
    long sum = 0;
    void *below = malloc(1000);
    for (long call = 0; call < 3; call++)
        sum += hot(call);
    printf("%ld %d\n", sum, below != NULL);
}
"""


@pytest.mark.parametrize("call", [2, 3])
def test_a_call_that_moves_the_end_of_the_heap_is_timed(tmp_path: Path, call: int) -> None:
    program = build_program(tmp_path, GIVES_BACK, "gives")
    with park([str(program)], entry_of(program), call, timeout=60) as parked:
        with parked.fork() as after:
            after.run(0)
            changed = changed_lines(parked, after)
        (heap,) = [m for m in parked.mappings_at_park() if m.path == "[heap]"]
        beyond = Range(heap.end - 64, heap.end + (1 << 20))  # in the trace, but there in the call only
        snapshots = ForkSnapshots(parked)
        with snapshots.restore() as fork:
            before = fork.read(heap.start, heap.end - heap.start)
            fork.prepare(0, [*changed, beyond], [*changed, beyond])
            for mode in ("steady", "cold", "steady"):
                assert len(fork.block(0, 12, mode)[0]) == 12
                assert fork.read(heap.start, heap.end - heap.start) == before
                assert max(m.end for m in fork.mappings() if m.path == "[heap]") == heap.end
        snapshots.close()


UNMAPS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noipa)) long hot(char **data, long n)
{
    long sum = 0;
    for (long i = 0; i < n; i += 64)
        sum += (*data)[i];
    free(*data);
    *data = NULL;
    return sum;
}
int main(void)
{
    long sum = 0;
    for (int call = 0; call < 3; call++) {
        char *data = malloc(1 << 20);
        memset(data, call, 1 << 20);
        sum += hot(&data, 1 << 20);
    }
    printf("%ld\n", sum);
}
"""


def test_a_call_that_unmaps_memory_cannot_be_repeated(tmp_path: Path) -> None:
    """metis: reading what was no longer there was told as an input or output error."""
    program = build_program(tmp_path, UNMAPS, "unmaps")
    with park([str(program)], entry_of(program), 1, timeout=60) as parked, parked.fork() as after:
        after.run(0)
        with pytest.raises(SnapshotError, match="gives memory back to the kernel"):
            changed_lines(parked, after)
