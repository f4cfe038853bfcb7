"""Whose call chain allocated a block: against glibc's own backtrace in the program, and against addr2line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.rundir import find_trace
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from layout_advise.tracer.trace.trace import Allocation
from layout_advise.tracer.trace.trace_file import read_trace, write_trace

FRAMES = 16
BIG = 65536
SMALL_FIRST = 64

SOURCE = r"""
#include <execinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <thread>
#define NOINLINE __attribute__((noipa))
struct chain { void *block, *frame[64]; long frames; };
struct chain chains[16];
long kept;
static inline __attribute__((always_inline)) void keep(void *p)
{
    struct chain *c = &chains[kept++];
    memset(p, 1, 8);
    c->block = p;
    c->frames = backtrace(c->frame, 64);
}
NOINLINE void hot(long k) { for (int i = 0; i < kept; i++) *(volatile char *)chains[i].block += (char)k; }
NOINLINE void plainly(size_t n) { keep(malloc(n)); }
NOINLINE void cleared(size_t n) { keep(calloc(n, 1)); }
NOINLINE void again(size_t n) { keep(realloc(malloc(8), n)); }
NOINLINE void aligned(size_t n) { keep(aligned_alloc(4096, n)); }
NOINLINE void mapped(size_t n) { keep(mmap(0, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }
NOINLINE void made(size_t n) { keep(new char[n]); }
static inline __attribute__((always_inline)) void wrapped(size_t n)
{
    keep(malloc(n));
}
NOINLINE void inlined(size_t n)
{
    wrapped(n);
}
NOINLINE void deep(size_t n, int k) { if (k) deep(n, k - 1); else keep(malloc(n)); __asm__ volatile(""); }
NOINLINE void all(size_t n)
{
    plainly(n); cleared(n); again(n); aligned(n); mapped(n); made(n); inlined(n); deep(n, 40);
    std::thread(plainly, n).join();
}
int main(int argc, char **argv)
{
    if (argc > 1)
        for (long k = atol(argv[1]); k > 0; k--) {
            void *volatile brief = malloc(70000);
            free(brief);
        }
    all(65536);
    plainly(65535);
    for (int k = 0; k < 3; k++)
        hot(k);
}
"""
WAYS = ("plainly", "cleared", "again", "aligned", "mapped", "made", "inlined", "deep", "plainly", "plainly")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("stacks"), "-O2", "-g")


def build(folder: Path, *flags: str) -> Path:
    (folder / "made.cpp").write_text(SOURCE)
    command = ["g++", "-w", "-fomit-frame-pointer", *flags, "-o", "made", "made.cpp", "-pthread"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "made"


def parked(program: Path, *arguments: str) -> tuple[AgentProcess, ElfBinary]:
    binary = ElfBinary.open(program)
    function = binary.find("hot")
    entry = Entry(program, function.start, binary.read(function.start, function.size), "hot")
    return park([str(program), *arguments], entry, 2, timeout=60), binary


def kept(process: AgentProcess, binary: ElfBinary) -> list[tuple[Allocation, list[int]]]:
    """The blocks that the program kept, each with the frames that glibc's backtrace gave at once after it."""
    table = next(v for v in binary.variables if v.source_name == "chains").address + process.load_base
    by_address = {block.address: block for block in process.allocations()}
    found = []
    for number in range(len(WAYS)):
        raw = process.read(table + number * 8 * 66, 8 * 66)
        words = [int.from_bytes(raw[i : i + 8], "little") for i in range(0, len(raw), 8)]
        found.append((by_address[words[0]], words[1 : 1 + words[65]]))
    return found


def test_the_stacks_are_those_of_backtrace(program: Path) -> None:
    process, binary = parked(program)
    with process:
        found = kept(process, binary)
        base = process.load_base
    for way, (block, frames), size in zip(WAYS, found, [BIG] * 9 + [BIG - 1], strict=True):
        assert block.bytes == size
        assert len(block.stack) <= FRAMES
        assert block.stack[0] == block.site
        function = binary.function_at(block.site - 1 - base)
        assert function is not None
        assert way in function.name
        # the same function called both, so all that is above it is the same
        assert block.stack[1:] == tuple(frames[1:FRAMES])
        assert len(block.stack) > 2
    assert len(found[7][0].stack) == FRAMES  # of 43


def test_without_unwind_tables_the_stack_ends(tmp_path: Path) -> None:
    program = build(tmp_path, "-O2", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions")
    process, binary = parked(program)
    with process:
        for block, _ in kept(process, binary):
            assert block.stack in ((), (block.site,))


def test_after_very_many_allocations_only_the_site_is_kept(program: Path) -> None:
    process, binary = parked(program, "70000")
    with process:
        found = kept(process, binary)
    assert all(block.stack == () and block.site for block, _ in found[:-1])
    assert len(found[-1][0].stack) > 2  # small ones are counted by themselves


MANY = """
#include <stdlib.h>
#define NOINLINE __attribute__((noipa))
struct node { struct node *next; long v; } *head;
NOINLINE void hot(long k) { for (struct node *n = head; n; n = n->next) n->v += k; }
NOINLINE static void *given(size_t n) { return malloc(n); }
NOINLINE static void push(long v) { struct node *n = given(sizeof *n); n->v = v; n->next = head; head = n; }
NOINLINE static void other(long v) { struct node *n = malloc(sizeof *n); n->v = v; n->next = head; head = n; }
NOINLINE static void first(void) { push(1); }
int main(int argc, char **argv)
{
    for (long k = 0, n = argc > 1 ? atol(argv[1]) : 0; k < n; k++) free(given(9));
    first();
    for (long k = 0; k < 199; k++) push(k);
    for (long k = 0; k < 100; k++) other(k);
    for (long k = 0; k < 4; k++) hot(k);
}
"""


@pytest.mark.parametrize("before", [0, 30, 100_000])
def test_of_small_blocks_the_first_of_each_site_have_a_stack(before: int, tmp_path: Path) -> None:
    (tmp_path / "many.c").write_text(MANY)
    subprocess.run(["gcc", "-O1", "-g", "-o", "many", "many.c"], cwd=tmp_path, check=True)
    process, binary = parked(tmp_path / "many", str(before))
    with process:
        blocks = [b for b in process.allocations() if b.bytes == 16]
        base = process.load_base
    chains = [[f.name if (f := binary.function_at(pc - 1 - base)) else None for pc in b.stack[:4]] for b in blocks]
    ours = [[name for name in chain if name] for chain in chains]
    left = max(0, SMALL_FIRST - before)
    assert len(blocks) == 300
    assert ours[:200] == [["given", "push", "first", "main"], *[["given", "push", "main"]] * 199][:left] + [[]] * (
        200 - left
    )
    assert ours[200:] == [["other", "main"]] * SMALL_FIRST + [[]] * (100 - SMALL_FIRST)
    assert len({b.site for b in blocks}) == 2


def test_the_file_keeps_them(program: Path, tmp_path: Path) -> None:
    process, binary = parked(program)
    with process:
        trace = trace_call(process, binary.region(binary.find("hot"), process.load_base), 2, folder=tmp_path)
        found = process.allocations()
    assert trace.allocations == found
    assert any(block.stack for block in found)
    write_trace(trace, tmp_path / "t")
    assert read_trace(tmp_path / "t") == trace


def test_show_prints_the_chain(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "-o", str(tmp_path / "run"), "--hotspot", "hot", "--until", "trace", "--", str(program)]) == 0
    trace = read_trace(find_trace(tmp_path / "run"))
    lines = {text: number for number, text in enumerate(SOURCE.splitlines(), 1)}
    where = lines["    keep(malloc(n));"], lines["    wrapped(n);"]
    stack = next(o.stack for o in trace.objects if o.stack and "inlined" in (o.stack[0].function or ""))
    assert [call.function.split("(")[0] for call in stack[0].inlined] == ["wrapped"]
    assert (stack[0].line, stack[0].inlined[0].line) == where
    said = subprocess.run(
        ["addr2line", "-e", str(program), *(hex(p.pc - 1 - 0x555555554000) for p in stack[:3])],
        capture_output=True,
        text=True,
    ).stdout.split()
    assert [f"made.cpp:{p.line}" for p in stack[:3]] == [Path(text).name for text in said]
    capsys.readouterr()
    assert main(["show", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    call = next(number for line, number in lines.items() if line.startswith("    plainly(n); cleared(n)"))
    chain = (
        f"wrapped (made.cpp:{where[0]}), inlined(unsigned long) (made.cpp:{where[1]}), all(unsigned long) (made.cpp:{call})"
    )
    assert f"     allocated in {chain}, main (made.cpp:{lines['    all(65536);']})\n" in text
