"""Addresses of one process translated to those of another, against a table of single bytes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import AddressSet, FoldedStream
from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.folding.relocate import NOWHERE, AddressMap, Process, move, notes_of
from layout_advise.tracer.trace.trace import Allocation, Mapping, Registers

RSP, FS = 0x7FFF_0000_8000, 0x7FFF_1000_0740
CODE = Mapping(0x40_0000, 0x40_1000, "r-xp", 0, "/bin/app")
SITE = 0x40_0123


def registers(rsp: int, fs: int) -> Registers:
    return Registers((0, 0, 0, 0, rsp, *[0] * 11), 0, 0, 0, fs)


def process(blocks: Iterable[Allocation], shift: int = 0, code: int = 0) -> Process:
    """A program, its stack and its thread's data (moved by ``shift``), a heap without limits."""
    maps = (
        Mapping(CODE.start + code, CODE.end + code, "r-xp", 0, CODE.path),
        Mapping(CODE.end + code, CODE.end + code + 0x1000, "rw-p", 0x1000, CODE.path),
        Mapping(CODE.end + code + 0x1000, CODE.end + code + 0x2000, "rw-p", 0, ""),
        Mapping(0x1000_0000, 0x9000_0000, "rw-p", 0, "[heap]"),
        Mapping(0x7FFF_0000_0000 + shift, 0x7FFF_0001_0000 + shift, "rw-p", 0, "[stack]"),
        Mapping(0x7FFF_1000_0000 + shift, 0x7FFF_1000_2000 + shift, "rw-p", 0, ""),
    )
    return Process(maps, tuple(blocks), registers(RSP + shift, FS + shift))


def block(address: int, size: int, order: int, site: int = SITE) -> Allocation:
    return Allocation(address, size, order, site)


Heaps = tuple[list[Allocation], list[Allocation]]


@st.composite
def heaps(draw: st.DrawFn) -> Heaps:
    """The same blocks at other places in another order."""
    count = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    gaps = draw(st.lists(st.sampled_from([0, 2, 0x2_0000]), min_size=2 * count, max_size=2 * count))

    def place(order: list[int], first: int, between: list[int]) -> list[Allocation]:
        at, found = first, []
        for number, gap in zip(order, between, strict=True):
            found.append(block(at + 16 * gap, 16 * sizes[number], number))
            at += 16 * (gap + sizes[number])
        return found

    one = place(list(range(count)), 0x1000_0000, gaps[:count])
    other = place(draw(st.permutations(range(count))), 0x2000_0000, gaps[count:])
    return one, other


def table(source: list[Allocation], target: list[Allocation]) -> dict[int, int]:
    there = {a.order: a.address for a in target}
    return {a.address + k: there[a.order] + k for a in source for k in range(a.bytes)}


@given(heaps(), st.data())
def test_streams_and_sets_move_address_by_address(
    heap: tuple[list[Allocation], list[Allocation]], data: st.DataObject
) -> None:
    source, target = heap
    places = table(source, target)
    to = AddressMap(process(source), process(target))
    assert (to.blocks, to.strangers) == (len(source), 0)
    addresses = data.draw(st.lists(st.sampled_from(sorted(places)), min_size=1, max_size=40))
    stream = fold(addresses)
    assert isinstance(stream, FoldedStream)
    moved = move(stream, to)
    assert isinstance(moved.stream, FoldedStream)
    assert list(moved.stream.expand()) == [places[a] for a in addresses]
    assert moved.lost == 0
    low = min(addresses)
    gcd = int(np.gcd.reduce(np.array(addresses) - low))
    bits = np.zeros((max(addresses) - low) // (gcd or 1) + 1, dtype=np.uint8)
    bits[[(a - low) // (gcd or 1) for a in addresses]] = 1
    plain = AddressSet(low, max(addresses), gcd, len(addresses), np.packbits(bits, bitorder="little").tobytes())
    found = move(plain, to).stream
    assert isinstance(found, AddressSet)
    assert found.bitmap is not None
    ones = np.flatnonzero(np.unpackbits(np.frombuffer(found.bitmap, dtype=np.uint8), bitorder="little"))
    assert {found.minimum + found.gcd * int(k) for k in ones} == {places[a] for a in addresses}
    assert (found.maximum, found.count) == (max(places[a] for a in addresses), len(addresses))


def test_code_globals_stack_and_thread_data_move_with_their_mappings() -> None:
    to = AddressMap(process([], 0, 0), process([], 0x1_2340, 0x5555_0000_0000))
    assert to.address(SITE) == SITE + 0x5555_0000_0000
    assert to.address(0x40_1008) == 0x5555_0040_1008  # .data
    assert to.address(0x40_2008) == 0x5555_0040_2008  # .bss, an anonymous mapping behind the file's
    assert to.address(RSP - 64) == RSP - 64 + 0x1_2340
    assert to.address(RSP + 64) == RSP + 64 + 0x1_2340
    assert to.address(FS + 0x28) == FS + 0x28 + 0x1_2340
    assert to.address(0x1000_0000) is None
    assert to.delta(0x40_1008, 0x1000_0000) is None


def test_blocks_of_other_sizes_or_sites_do_not_correspond() -> None:
    source = [block(0x1000_0000, 64, 0), block(0x1000_0100, 64, 1), block(0x1000_0200, 64, 2), block(0x1000_0300, 64, 3)]
    target = [block(0x2000_0000, 64, 0), block(0x2000_0100, 80, 1), block(0x2000_0200, 64, 2, SITE + 5)]
    to = AddressMap(process(source), process(target))
    assert (to.blocks, to.strangers) == (1, 3)
    assert to.address(0x1000_0008) == 0x2000_0008
    assert [to.address(a.address) for a in source[1:]] == [None, None, None]
    moved = move(fold([0x1000_0000, 0x1000_0100]), to)
    assert isinstance(moved.stream, FoldedStream)
    assert list(moved.stream.expand()) == [0x2000_0000, 0x1000_0100 + NOWHERE]
    assert moved.lost == 1
    told = " ".join(notes_of(to, [0x40_0010]))
    assert "3 of 4 heap blocks have no counterpart" in told
    assert "at 0x400010" in told
    assert notes_of(AddressMap(process(source[:1]), process(target)), ()) == ()


def test_a_long_stream_over_several_blocks_becomes_an_inexact_hull() -> None:
    source = [block(0x1000_0000, 1 << 24, 0), block(0x1200_0000, 1 << 24, 1)]
    target = [block(0x4200_0000, 1 << 24, 0), block(0x4000_0000, 1 << 24, 1)]
    to = AddressMap(process(source), process(target))
    step = 1 << 4
    every = [base + step * k for base in (0x1000_0000, 0x1200_0000) for k in range(600_000)]
    stream = fold(every)
    assert move(stream, to).lost == 0  # two runs, each in its block
    strided = fold([a for k in range(600_000) for a in (0x1000_0000 + step * k, 0x1200_0000 + step * k)])
    moved = move(strided, to)
    assert isinstance(moved.stream, FoldedStream | AddressSet)
    assert moved.stream.count == 1_200_000
    if isinstance(moved.stream, AddressSet):
        assert moved.stream.bitmap is None
        assert moved.lost is None
