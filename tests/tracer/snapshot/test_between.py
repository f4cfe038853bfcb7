"""Calls replayed with what the program writes between them, against what the program itself prints of each."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.choose.batch_sizes import with_known_gaps
from layout_advise.errors import TooMuchWrittenError
from layout_advise.tracer.process.agent import ABI_HEADER
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.process.stopped_program import Range, RunResult
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.between import Between, Puts, Room, settle
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.snapshot.recorded_calls import Calls, record_calls

FIRST, SIZE = 61, 40
ROOM = Room(64 << 20, 60.0)
NODES = 20000

MOCKUP = r"""
#include "abi.h"
#include <string.h>
struct node { double weight, step; long seen, rest[5]; };
struct queue { long head, tail, first[32]; };
enum { N = 20000 };
#define OLD ((struct node *)%(base)dul)
#define QUEUE (*(struct queue **)%(queue)dul)
const uint32_t la_abi = LA_ABI, la_buffer_count = 3;
const struct la_buffer_spec la_buffers[3] = {{8 * N, 64, 0, 0}, {8 * N, 64, 128, 0}, {8 * N, 64, 192, 0}};
void la_copy_in(struct la_context *c) {
    for (long i = 0; i < N; i++) {
        ((double *)c->buffers[0])[i] = OLD[i].weight;
        ((double *)c->buffers[1])[i] = OLD[i].step;
        ((long *)c->buffers[2])[i] = OLD[i].seen;
    }
}
void la_run(struct la_context *c) {
    double *weight = (double *)c->buffers[0], *step = (double *)c->buffers[1], sum = 0, by;
    long *seen = (long *)c->buffers[2];
    memcpy(&by, c->in.vector[0], 8);
    while (QUEUE->head < QUEUE->tail)
        for (long i = QUEUE->first[QUEUE->head++], end = i + 40; i < end; i++)
            if (!seen[i]) {
                weight[i] += step[i] * by;
                sum += weight[i];
            }
    memcpy(c->out.vector[0], &sum, 8);
}
void la_copy_out(struct la_context *c) {
    for (long i = 0; i < N; i++) OLD[i].weight = ((double *)c->buffers[0])[i];
}
uint8_t *la_place(const struct la_context *c, int64_t old) {
    int64_t at = old - (int64_t)OLD;
    if (at < 0 || at >= 64 * N) return 0;
    return at %% 64 < 24 ? c->buffers[at %% 64 / 8] + at / 64 * 8 + at %% 8 : (uint8_t *)LA_NOWHERE;
}
"""

VALUE = """
int64_t la_value(const struct la_context *c, int64_t old, int64_t value) {
    int64_t at = old - (int64_t)OLD;
    (void)c;
    return at >= 0 && at < 64 * N && at % 64 == 16 ? ~value : value;
}
"""


def in_other_words(mockup: str) -> str:
    """The mock-up with the complement of ``seen`` in its layout."""
    other = mockup.replace("= OLD[i].seen", "= ~OLD[i].seen").replace("!seen[i]", "!~seen[i]") + VALUE
    assert other.count("~") == 3
    return other


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("between") / "trail"
    source = Path(__file__).with_name("trail.c")
    subprocess.run(["gcc", "-g", "-O1", "-no-pie", "-o", str(target), str(source)], check=True)
    return target


def entry(program: Path) -> Entry:
    function = ElfBinary.open_module(str(program)).find("propagate")
    code = ElfBinary.open_module(str(program)).read(function.start, function.size)
    return Entry(program, function.start, code, "propagate")


def printed(command: Sequence[str]) -> list[float]:
    """What each call of the program returns, as it says itself."""
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float.fromhex(line) for line in done.stdout.split()]


def returned(result: RunResult) -> list[float]:
    return [struct.unpack_from("<d", each, 16)[0] for each in result.returned]


def puts_of(stopped: AgentProcess, calls: Calls) -> Puts:
    stopped.batch(calls)
    assert calls.between is not None
    return settle(stopped, calls.between, (), 1 << 20)


@pytest.mark.parametrize("period", [(), ("7",)], ids=["queue", "queues that appear"])
@pytest.mark.parametrize("batch", [0, 2])
def test_calls_find_what_they_found_in_the_program(program: Path, period: tuple[str, ...], batch: int) -> None:
    command = [str(program), "400", *period]
    calls = record_calls(command, entry(program), FIRST, 3 * SIZE, timeout=60, room=ROOM)
    assert calls.between is not None
    assert (calls.between.gaps, calls.between.why) == (3 * SIZE, "")
    first, told = FIRST + batch * SIZE, printed(command)
    with (
        park(command, entry(program), first, timeout=60) as stopped,
        park(command, entry(program), first + SIZE, timeout=60) as later,
    ):
        puts = puts_of(stopped, calls.part(first, SIZE))
        puts.install(stopped)
        with stopped.fork() as fork:
            assert returned(fork.run(0)) == told[first - 1 : first - 1 + SIZE]
            nodes = places(fork)
            assert fork.read(nodes.start, 64 * NODES) == later.read(nodes.start, 64 * NODES)
        with stopped.fork() as fork:  # once more: nothing is used up
            assert returned(fork.run(0)) == told[first - 1 : first - 1 + SIZE]
        if not period:
            stopped.put(b"", b"")
            with stopped.fork() as fork:
                assert returned(fork.run(0))[1:] == [0.0] * (SIZE - 1)


def test_what_leads_to_a_deeper_call_after_the_last_one_is_not_put_back(program: Path) -> None:
    """cadical: that call's return address came where the mock-ups' calls have theirs, and no number counted."""
    command = [str(program), "400", str(1 - FIRST - SIZE)]
    calls = record_calls(command, entry(program), FIRST, SIZE, timeout=60, room=ROOM)
    with park(command, entry(program), FIRST, timeout=60) as stopped:
        puts = puts_of(stopped, calls)
        rsp = stopped.registers().gpr[4]
        near = [at for at in puts.words[:, 0].tolist() if abs(at - rsp) < 4096]
        assert near  # the stack is recorded
        assert min(near) > rsp


def places(stopped: AgentProcess) -> Range:
    (found,) = [a for a in stopped.allocations() if a.bytes == 64 * NODES]
    return Range(found.address, found.address + found.bytes)


def test_a_mockup_gets_it_where_its_layout_has_it(program: Path, tmp_path: Path) -> None:
    command = [str(program), "400"]
    calls = record_calls(command, entry(program), FIRST, SIZE, timeout=60, room=ROOM)
    queue = next(s for s in ElfBinary.open_module(str(program)).variables if s.name == "queue")
    with park(command, entry(program), FIRST, timeout=60) as stopped:
        nodes = places(stopped)
        puts = puts_of(stopped, calls)
        puts.install(stopped)
        text = MOCKUP % {"base": nodes.start, "queue": queue.address + stopped.load_base}
        sources = {"mockup": text, "other": in_other_words(text), "without": text.replace("la_place", "no_place")}
        for name, source in sources.items():
            (tmp_path / f"{name}.c").write_text(source)
            build = ["gcc", "-O1", "-shared", "-fPIC", f"-I{ABI_HEADER.parent}", "-o", str(tmp_path / f"{name}.so")]
            subprocess.run([*build, str(tmp_path / f"{name}.c")], check=True)
        with stopped.fork() as original, stopped.fork() as copy, stopped.fork() as coded, stopped.fork() as other:
            told = returned(original.run(0))
            for fork, name in ((copy, "mockup"), (coded, "other")):
                assert returned(fork.run(fork.load(tmp_path / f"{name}.so"), forbidden=[nodes])) == told
                assert fork.read(nodes.start, 64 * NODES) == original.read(nodes.start, 64 * NODES)
            with pytest.raises(Exception, match="does not tell where the new layout has"):
                other.run(other.load(tmp_path / "without.so"), forbidden=[nodes])
        with stopped.fork() as timed:
            before = timed.read(nodes.start, 64 * NODES)
            assert timed.put_back(0) > 0
            assert timed.read(nodes.start, 64 * NODES) != before  # it is not prepared: nothing is put back to what it was
        with stopped.fork() as timed:
            timed.prepare(0, [Range(0, 0)])  # as if a run left nothing changed
            before = timed.read(nodes.start, 64 * NODES)
            assert timed.put_back(0) > 0
            assert timed.read(nodes.start, 64 * NODES) == before


def test_what_does_not_fit_is_not_known(program: Path) -> None:
    command = [str(program), "400", "7"]
    small = record_calls(command, entry(program), FIRST, 3 * SIZE, timeout=60, room=Room(400_000, 60.0)).between
    assert small is not None
    assert 0 < small.gaps < 3 * SIZE
    assert small.why == "the program writes too much between them"
    assert small.part(small.gaps - 1, 2) is None
    short = record_calls(command, entry(program), FIRST, 3 * SIZE, timeout=60, room=Room(64 << 20, 0.0)).between
    assert short is not None
    assert (short.gaps, short.why) == (1, "to find it takes too long")


def test_too_many_words_are_not_put_back(program: Path) -> None:
    command = [str(program), "400"]
    calls = record_calls(command, entry(program), FIRST, SIZE, timeout=60, room=ROOM)
    with park(command, entry(program), FIRST, timeout=60) as stopped:
        stopped.batch(calls)
        assert calls.between is not None
        with pytest.raises(TooMuchWrittenError, match="writes too much between the calls"):
            settle(stopped, calls.between, (), 10)


def test_the_programs_last_call_is_followed_by_nothing(program: Path) -> None:
    command = [str(program), str(FIRST + SIZE - 1)]
    between = record_calls(command, entry(program), FIRST, SIZE, timeout=60, room=ROOM).between
    assert between is not None
    assert (between.gaps, int(between.records[-1])) == (SIZE, 1)


def test_memory_that_is_only_reserved_gets_no_page_tables(program: Path, tmp_path: Path) -> None:
    command = [str(program), "400", "0", str(tmp_path / "tables")]
    between = record_calls(command, entry(program), FIRST, SIZE, timeout=60, room=ROOM).between
    assert between is not None
    assert (between.gaps, between.why) == (SIZE, "")
    size, unit = (tmp_path / "tables").read_text().split()
    assert (int(size) < 8192, unit) == (True, "kB")  # 64 MiB for all of it


def between_of(gaps: int) -> Between:
    """Records of a word each."""
    return Between(np.ones(gaps, np.uint64), np.arange(1, gaps + 1, dtype=np.uint64), np.zeros(0, np.uint64), "why")


@pytest.mark.parametrize(
    ("gaps", "enough", "size", "known"), [(30, 2, 10, True), (29, 2, 9, True), (12, 5, 10, False), (0, 1, 10, False)]
)
def test_batches_are_as_long_as_what_is_known(gaps: int, enough: float, size: int, known: bool) -> None:
    data = bytes(896 * 30)
    calls, found = with_known_gaps(Calls(5, data, between_of(gaps)), 10, enough)
    assert (found, calls.between is not None) == (size, known)
    assert len(calls) == (3 * size if known else 30)
    assert with_known_gaps(replace(calls, between=None), size, enough) == (replace(calls, between=None), size)


@given(st.lists(st.lists(st.integers(0, 40), max_size=5), max_size=6), st.sets(st.integers(0, 40)))
def test_chosen_puts_stay_between_their_calls(gaps: list[list[int]], wanted: set[int]) -> None:
    rows = [[8 * word, 0, word] for gap in gaps for word in gap]
    puts = Puts(np.array([len(gap) for gap in gaps], np.uint64), np.array(rows, np.uint64).reshape(-1, 3))
    ranges = [Range(8 * word, 8 * word + 8) for word in sorted(wanted)]
    for found, keep in ((puts.within(ranges), wanted), (puts.without(ranges), set(range(41)) - wanted)):
        expected = [[word for word in gap if word in keep] for gap in gaps]
        assert found.counts.tolist() == [len(gap) for gap in expected]
        assert found.words[:, 2].tolist() == [word for gap in expected for word in gap]
    lines = {line for r in puts.lines for line in range(r.start, r.end, 64)}
    assert lines == {8 * word // 64 * 64 for gap in gaps for word in gap}
    assert all(a.end < b.start for a, b in zip(puts.lines, puts.lines[1:], strict=False))
