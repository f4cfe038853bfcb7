"""Addresses of heap blocks that are there before a traced call, and of those that it allocates between them."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.cli import main
from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.tracer.objects.attribution import Attribution, attribute
from layout_advise.tracer.objects.heap_blocks import HeapBlocks
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Allocation, Mapping, Trace
from layout_advise.tracer.trace.trace_file import write_trace
from tests.support.run_folders import HEAP, at, loop, sample_trace

Sizes = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 60)), max_size=6)


def blocks(sizes: list[tuple[int, int]], first: int) -> tuple[Allocation, ...]:
    """Blocks one behind the other: after each gap so many bytes."""
    found, address = [], 100
    for order, (gap, size) in enumerate(sizes, first):
        found.append(Allocation(address + gap, size, order, 0))
        address += gap + size
    return tuple(found)


@given(Sizes, Sizes, st.sets(st.integers(0, 5)))
def test_the_blocks_at_the_entry_come_first(old: list[tuple[int, int]], new: list[tuple[int, int]], freed: set[int]) -> None:
    before, born = blocks(old, 0), blocks(new, 100)
    trace = replace(sample_trace(), allocations=before, born=born, freed=tuple(sorted(freed)), watched=True)
    places = HeapBlocks(trace)
    for address in range(90, 700):
        inside = [a for a in (*before, *born) if a.address <= address < a.address + a.bytes]
        piece = places.at(address)
        if not inside:
            assert piece is None
            continue
        assert piece is not None
        assert piece.block == inside[0]
        assert piece.start <= address < piece.end
        assert piece.life == ("born" if inside[0] in born else "freed" if inside[0].order in freed else "whole")
        neighbours = {places.at(a) for a in range(piece.start, piece.end)}
        assert neighbours == {piece}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ElfBinary:
    folder = tmp_path_factory.mktemp("empty")
    (folder / "p.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-o", "p", "p.c"], cwd=folder, check=True)
    return ElfBinary.open(folder / "p")


def touched(trace: Trace, program: ElfBinary) -> tuple[Attribution, list[tuple[str, int, int, list[int | None]]]]:
    """The objects as name, distance from ``HEAP``, bytes and accesses of each reference."""
    found = attribute(trace, program, lambda address, size: bytes(size))
    counts = [[t.accesses for ts in found.touches for t in ts if t.object == n] for n in range(len(found.objects))]
    return found, [(o.name, o.base - HEAP, o.bytes, c) for o, c in zip(found.objects, counts, strict=True)]


def one_sweep(count: int, *mappings: Mapping) -> Trace:
    plain = sample_trace()
    stream = FoldedStream((loop(count, at(HEAP, 8)),), count)
    return replace(plain, references=plain.references[:1], streams=(stream,), accesses=count, mappings=mappings)


def test_a_block_that_grows_in_its_place(program: ElfBinary) -> None:
    old, new = Allocation(HEAP, 400, 7, 0), Allocation(HEAP, 800, 8, 0)
    trace = replace(one_sweep(100), allocations=(old,), born=(new,), freed=(7,), watched=True)
    found, objects = touched(trace, program)
    assert objects == [("heap block 7", 0, 400, [None]), ("heap block 8", 400, 400, [50])]
    assert found.inexact == ("it touches a block that the call frees, and what else the call then puts there",)


def test_a_block_at_the_start_of_its_mapping_is_not_the_mapping(program: ElfBinary) -> None:
    trace = replace(one_sweep(100, Mapping(HEAP, HEAP + 4096, "rw-p", 0, "")), allocations=(Allocation(HEAP, 400, 7, 0),))
    _, objects = touched(trace, program)
    assert objects == [("heap block 7", 0, 400, [50]), ("anonymous mapping", 400, 3696, [50])]


def test_a_block_behind_memory_of_no_block_is_told_from_it(program: ElfBinary) -> None:
    """All that lies in the mapping was taken for the mapping's, from its first address in no block on. What lies before the
    block and what lies behind it are two, as nothing says that they are one."""
    trace = replace(
        one_sweep(100, Mapping(HEAP, HEAP + 4096, "rw-p", 0, "")), allocations=(Allocation(HEAP + 400, 200, 7, 0),)
    )
    _, objects = touched(trace, program)
    apart = [("anonymous mapping", 0, 400, [50]), ("anonymous mapping", 600, 3496, [25])]
    assert sorted(objects) == [*apart, ("heap block 7", 400, 200, [25])]


@pytest.mark.parametrize(
    ("path", "place", "watched", "life"),
    [
        ("[heap]", 400, True, "born"),
        ("[heap]", 400, False, None),  # what the call frees is not known
        ("[heap]", 8192, True, None),  # the program's own allocator has that memory
        ("", 400, True, None),
    ],
)
def test_memory_between_blocks_is_of_what_the_call_allocates_and_frees(
    program: ElfBinary, path: str, place: int, watched: bool, life: str | None
) -> None:
    """edlib's mock-ups put it into other layouts, with what the allocator keeps there, and died."""
    mapped, block = Mapping(HEAP, HEAP + 4096, "rw-p", 0, path), Allocation(HEAP + place, 200, 7, 0)
    trace = replace(one_sweep(50, mapped), allocations=(block,), watched=watched)
    found, _ = touched(trace, program)
    assert [(o.kind, o.life) for o in found.objects if o.kind == "mapped"] == [("mapped", life)]


def test_show_names_blocks_of_the_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = replace(one_sweep(100), allocations=(), born=(Allocation(HEAP, 800, 8, 0),), watched=True)
    write_trace(trace, tmp_path / "trace.lat")
    assert main(["show", str(tmp_path)]) == 0
    assert f"{HEAP:#x} .. {HEAP + 799:#x}  heap block 8 of 800 bytes, allocated in the call\n" in capsys.readouterr().out
