"""The Valgrind tool's records are those of single-stepping, of the clone and of lackey, access by access."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from layout_advise.errors import ProgramError
from layout_advise.layoutalgebra.sets.nests import AddressSet, FoldedStream, Stream
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.step.single_steps import trace_by_steps
from layout_advise.tracer.backends.tool.run import ToolRun
from layout_advise.tracer.backends.tool.trace import assigned
from layout_advise.tracer.backends.valgrind.record import ValgrindBackend
from layout_advise.tracer.backends.valgrind.run import run_tool
from layout_advise.tracer.code.decoder import GPR_NAMES
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.relocate import Process
from layout_advise.tracer.process.ptraced import PtracedProgram
from layout_advise.tracer.trace.trace import Mapping
from tests.support.clone_programs import PROGRAMS, build, region_of
from tests.support.tracing.parked_programs import DEAD_LOADS, HASWELL, MANY, O2, entry_of, parked
from tests.support.tracing.trace_requests import request

Place = tuple[int, int, str, int]  # instruction (relative to the program), operand, kind of memory, place in it


QUICK = ("particles", "triangle", "recursion", "strings", "flags")


def base_of(mappings: Sequence[Mapping], program: Path) -> int:
    start = min(m.start for m in mappings if m.path == str(program))
    return start if program.read_bytes()[16] == 3 else 0


class Places:
    """Addresses as places in the program, on the stack (from the entry's stack pointer), or elsewhere (from the first)."""

    def __init__(self, mappings: Sequence[Mapping], program: Path, rsp: int) -> None:
        self.base = base_of(mappings, program)
        with program.open("rb") as file:  # .bss reaches beyond the mapped file, and the heap may follow at once
            segments = list(ELFFile(file).iter_segments("PT_LOAD"))
            self.low = self.base + segments[0]["p_vaddr"]
            self.high = self.base + segments[-1]["p_vaddr"] + segments[-1]["p_memsz"]
        self.rsp = rsp
        self.first: int | None = None

    def __call__(self, address: int) -> tuple[str, int]:
        if self.low <= address < self.high:
            return "program", address - self.base
        if abs(address - self.rsp) < 1 << 20:
            return "stack", address - self.rsp
        self.first = address if self.first is None else self.first
        return "heap", address - self.first


def by_steps(program: Path, call: int) -> list[Place]:
    with PtracedProgram([str(program)]) as process:
        region = region_of(program, base_of(process.mappings(), program))
        process.run_to(region.entry, call)
        place = Places(process.mappings(), program, int(process.registers().rsp))
        return [(s.pc - place.base, s.operand, *place(s.address)) for s in trace_by_steps(process, region)]


def by_tool(program: Path, call: int) -> tuple[list[Place], ToolRun]:
    run = run_tool(Rerun([str(program)], entry_of(program), call, MANY, timeout=60), raw=True)
    base = base_of(run.process.mappings, program)
    region = region_of(program, base)
    names: dict[tuple[int, int], tuple[int, int]] = {}
    for number, seen in enumerate(run.references):  # which operand each is, by the driver's own rule
        marked = [r if r is not seen else type(r)(r.pc, r.ordinal, r.kind, r.bytes, MARK) for r in run.references]
        references, streams, _ = assigned(marked, region)
        found = [r for r, s in zip(references, streams, strict=True) if s is MARK]
        names[number, 0] = (found[0].pc - base, found[0].operand)
    place = Places(run.process.mappings, program, run.process.registers.gpr[GPR_NAMES.index("rsp")])
    assert run.records is not None
    numbers, addresses = run.records >> np.uint64(48), run.records & np.uint64((1 << 48) - 1)
    pairs = zip(numbers.tolist(), addresses.tolist(), strict=True)
    return [(*names[n, 0], *place(a)) for n, a in pairs if region_has(region, run.references[n].pc)], run


MARK: Stream = AddressSet(1, 1, 0, 1, b"\1")


def region_has(region: Region, pc: int) -> bool:
    return any(function.contains(pc) for function in (region, *region.callees))


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        *((name, O2) for name in ("particles", "switch", "recursion", "strings", "tail")),
        *(pytest.param(name, O2, marks=pytest.mark.slow) for name in ("triangle", "pointer", "frame", "x87", "atomics")),
        *((name, HASWELL) for name in ("particles", "conditional")),
        *(pytest.param(name, HASWELL, marks=pytest.mark.slow) for name in ("crowded", "tail", "x87", "atomics", "switch")),
    ],
)
def test_the_records_are_those_of_single_stepping_in_order(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, name, *flags)
    expected = by_steps(program, 2)
    found, run = by_tool(program, 2)
    assert len(expected) > 25
    if name == "strings":  # cmps: the two operands of one instruction are read in the other order
        expected, found = sorted(expected), sorted(found)
    assert found == expected
    assert (run.truncated, run.foreign) == (False, 0)


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        *((name, O2) for name in QUICK),
        ("gather", HASWELL),
        *(pytest.param(name, O2, marks=pytest.mark.slow) for name in PROGRAMS if name not in QUICK),
        *(pytest.param(name, HASWELL, marks=pytest.mark.slow) for name in PROGRAMS if name != "gather"),
    ],
)
def test_folded_and_translated_it_is_the_clones_trace(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, name, *flags)
    with parked(program, 2) as process:
        region = region_of(program, process.load_base)
        clone = trace_call(process, region, 2, folder=tmp_path)
        found = ValgrindBackend().trace(
            request(process, region, Rerun([str(program)], entry_of(program), 2, MANY, folder=tmp_path))
        )
    assert found.notes == ()
    mine, count = found.trace, len(clone.references)
    assert mine.references[:count] == clone.references
    different = [r for r, a, b in zip(clone.references, clone.streams, mine.streams, strict=False) if a != b]
    if name in DEAD_LOADS:
        assert {r.kind for r in different} == {"read"}
        assert all(mine.streams[r.id] is None for r in different)
    else:
        assert not different
        assert mine.accesses == clone.accesses
    assert sum(s is not None for s in mine.streams) > 2
    assert (mine.registers, mine.allocations) == (clone.registers, clone.allocations)


def lackey(program: Path, region: Region) -> list[tuple[str, int, int]]:
    """(kind, address, bytes) of what lackey sees in the region's instructions, halves of one vector access merged."""
    command = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=/dev/stdout", str(program)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found: list[tuple[str, int, int]] = []
    inside = fresh = False
    for line in lines:
        if line[:2] not in ("I ", " L", " S", " M"):
            continue
        kind, place = line.split()
        address, size = int(place.split(",")[0], 16), int(place.split(",")[1])
        if kind == "I":
            inside, fresh = region_has(region, address), True
        elif inside:
            last = found[-1] if found and not fresh else None
            if last is not None and size == 16 and last == (kind, address - 16, 16):
                found[-1] = (kind, address - 16, 32)
            else:
                found.append((kind, address, size))
            fresh = False
    return found


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        pytest.param("triangle", O2, marks=pytest.mark.slow),
        ("particles", HASWELL),
        pytest.param("switch", O2, marks=pytest.mark.slow),
        pytest.param("conditional", HASWELL, marks=pytest.mark.slow),
        *(pytest.param(name, f, marks=pytest.mark.slow) for name in ("tail", "strings", "pointer") for f in (O2, HASWELL)),
    ],
)
def test_lackey_sees_the_same(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, name, *flags, "-fno-pic", "-no-pie")
    region = region_of(program, 0)
    letters = {"read": "L", "write": "S", "both": "M"}
    run = run_tool(Rerun([str(program)], entry_of(program), 1, MANY, timeout=60), raw=True)
    assert run.records is not None
    mine = []
    for word in run.records.tolist():
        seen = run.references[word >> 48]
        if region_has(region, seen.pc):
            mine.append((letters[seen.kind], word & (1 << 48) - 1, seen.bytes))
    rsp = run.process.registers.gpr[4]
    ours = [access for access in mine if abs(access[1] - rsp) > 1 << 20]
    # lackey's other calls follow the first; its heap lies elsewhere, so the blocks are compared from their first access
    theirs = [access for access in lackey(program, region) if access[1] < 1 << 36][: len(ours)]
    assert len(ours) > 350
    if ours[0][1] > 1 << 24:
        ours, theirs = ([(k, a - every[0][1], b) for k, a, b in every] for every in (ours, theirs))
    assert ours == theirs


def test_what_other_code_does_within_the_call_is_in_the_trace(tmp_path: Path) -> None:
    program = build(tmp_path, "frame", *O2, "-fno-builtin")  # memset is a call into libc
    with parked(program, 2) as process:
        region = region_of(program, process.load_base)
        trace = ValgrindBackend().trace(request(process, region, Rerun([str(program)], entry_of(program), 2, MANY))).trace
        libc = [m for m in process.mappings() if "/libc" in m.path]
    outside = [r for r in trace.references if libc[0].start <= r.pc < libc[-1].end]
    assert any(r.kind == "write" and trace.streams[r.id] is not None for r in outside)


def test_a_cap_ends_the_trace_exactly(tmp_path: Path) -> None:
    program = build(tmp_path, "particles", *O2)
    whole = run_tool(Rerun([str(program)], entry_of(program), 1, MANY), raw=True)
    for cap in (1, 7, 500):
        part = run_tool(Rerun([str(program)], entry_of(program), 1, cap), raw=True)
        assert part.truncated
        assert part.records is not None
        assert whole.records is not None
        assert len(part.records) == part.accesses == cap
        # references are numbered as code is translated, which is the same in both runs
        assert part.records.tolist() == whole.records[:cap].tolist()
        assert sum(r.stream.count for r in part.references if r.stream) == cap


def test_a_call_that_never_comes(tmp_path: Path) -> None:
    program = build(tmp_path, "particles", *O2)
    with pytest.raises(ProgramError, match=r"no call 4 under Valgrind: hot was entered 3 times; .* exit status 0"):
        run_tool(Rerun([str(program)], entry_of(program), 4, MANY))


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    program = build(tmp_path, "particles", *O2)
    work = tmp_path / "work"
    work.mkdir()
    run_tool(Rerun([str(program)], entry_of(program), 1, MANY, folder=work))
    with pytest.raises(ProgramError, match="not done after 0"):
        run_tool(Rerun([str(program)], entry_of(program), 1, MANY, folder=work, timeout=0.01))
    assert not list(work.iterdir())


def test_heap_blocks_are_those_of_the_parked_program(tmp_path: Path) -> None:
    program = build(tmp_path, "recursion", *O2)
    run = run_tool(Rerun([str(program)], entry_of(program), 2, MANY))
    with parked(program, 2) as process:
        theirs = process.allocations()
    assert isinstance(run.process, Process)
    assert len(theirs) > 50
    mine = {a.order: a.bytes for a in run.process.allocations}
    assert mine == {a.order: a.bytes for a in theirs}


HEAPS = r"""
#include <stdlib.h>
struct node { struct node *next; long v; } *head; long *wide; int *at;
__attribute__((noipa)) long hot(long n) { long s = 0; for (struct node *k = head; k; k = k->next) s += k->v++;
    for (int i = 0; i < 40000; i++) wide[at[i]] += n; return s; }
int main(void) { void *gone[200]; wide = calloc(1 << 19, 8); at = malloc(40000 * sizeof *at); unsigned long x = 1;
    for (int i = 0; i < 40000; i++) { x = x * 6364136223846793005 + 1442695040888963407; at[i] = x >> 45; }
    for (int i = 0; i < 200; i++) gone[i] = malloc(16 + 24 * (i % 9));
    for (int i = 0; i < 200; i += 1 + i % 3) { free(gone[i]); gone[i] = 0; }
    for (int i = 0; i < 300; i++) { struct node *k = malloc(sizeof *k + 8 * (i % 5)); k->next = head; k->v = i; head = k; }
    long total = 0; for (int call = 0; call < 3; call++) total += hot(call); return total == 7; }
"""


def test_heaps_at_other_addresses_are_those_of_the_parked_program(tmp_path: Path) -> None:
    source, program = tmp_path / "p.c", tmp_path / "p"
    source.write_text(HEAPS)
    subprocess.run(["gcc", "-O1", "-o", str(program), str(source)], check=True)
    there = {a.order: a.address for a in run_tool(Rerun([str(program)], entry_of(program), 2, MANY)).process.allocations}
    with parked(program, 2) as process:
        region = region_of(program, process.load_base)
        clone = trace_call(process, region, 2, folder=tmp_path)
        found = ValgrindBackend().trace(
            request(process, region, Rerun([str(program)], entry_of(program), 2, MANY, folder=tmp_path))
        )
    here = {a.order: a.address for a in clone.allocations}
    assert here.keys() == there.keys()
    assert len(here) > 350
    assert len({here[n] - there[n] for n in here}) > 1  # not even all moved alike
    assert all(here[n] != there[n] for n in here)
    assert found.notes == ()
    assert found.trace.references[: len(clone.references)] == clone.references
    kinds = set()
    for mine, other in zip(found.trace.streams, clone.streams, strict=False):
        assert (mine is None) == (other is None)
        if mine is None or other is None:
            continue
        kinds.add(type(other))
        if isinstance(mine, AddressSet):
            assert mine == other
        else:
            assert isinstance(other, FoldedStream)
            assert list(mine.expand()) == list(other.expand())
    assert kinds == {AddressSet, FoldedStream}
