"""Arrays of pointers to scattered objects: which are found, which are refused and why, and mock-ups of what is gathered."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.accesses import Access, MemoryObjectShape
from layout_advise.layoutalgebra.derive.derive import derive_records
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.layoutalgebra.sets.nests import AddressSet, FoldedStream, Stream
from layout_advise.mockup.evidence.binding import accesses, key_of
from layout_advise.mockup.evidence.gather_objects import base_of, element_bytes, gathered
from layout_advise.mockup.evidence.pointer_tables import PointerTable, RefusedTable, find_tables
from layout_advise.mockup.evidence.pools import pieces_of
from layout_advise.mockup.evidence.streams import expand_array
from layout_advise.mockup.ir.lifted import Lifted, Store
from layout_advise.mockup.run.load import MockupCall, arguments, compile_mockup
from layout_advise.tracer.folding.fold import fold
from layout_advise.tracer.trace.trace import Allocation, Trace
from tests.support import slower
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import Native, references_of, run_mockup, trace_of

SOURCE = """
struct p { double x, v, rest[2]; int n; };
void move(struct p **ps, long n, double dt) {
    for (long i = 0; i < n; i++) if (ps[i]) { ps[i]->x += ps[i]->v * dt; ps[i]->n++; }
}
void chosen(struct p **ps, long n, double dt, const int *index) {
    for (long k = 0; k < n; k++) { struct p *p = ps[index[k]]; for (int j = 0; j < 2; j++) p->rest[j] += p->x * dt; }
}
void reset(struct p **ps, long n, double dt) {
    for (long i = 0; i < n; i++) { struct p *p = ps[i]; p->x = dt; *(struct p *volatile *)&ps[n - 1 - i] = p; }
}
struct list { struct list *next; double x, v, rest[2]; };
void walk(struct list **first, long n, double dt) {
    for (struct list *p = *first; p; p = p->next) p->x += p->v * dt;
}
struct holder { long id; struct p *p; long other; };
void held(struct holder *hs, long n, double dt) {
    for (long i = 0; i < n; i++) hs[i].p->x += hs[i].p->v * dt;
}"""
BYTES, GAP = 40, 48
"""An object, and the distance of two neighbours in the heap below."""
FLAGS = {"O2": ("-O2",), "O3-avx2": ("-O3", "-march=haswell")}


class Heap:
    """Objects with bytes between them, a table of pointers to them, and a function that runs over these."""

    def __init__(self, source: str, symbol: str, where: Path, flags: tuple[str, ...] = ("-O2",), stride: int = 8) -> None:
        self.native, self.where, self.stride = Native(source, symbol, where, flags), where, stride
        self.lifted, self.flags = self.native.lifted(), flags
        self.references = references_of(self.lifted)
        untraced = trace_of(self.lifted, None, self.references, symbol)
        self.tracer = compile_mockup(emit_mockup(self.lifted, None, untraced, (), check=True), where / f"{symbol}-trace.so")

    def fill(self, order: list[int | None], more: tuple[int, ...] = ()) -> None:
        """``order[k]`` is the number of the object that slot k leads to."""
        count = 1 + max((k for k in order if k is not None), default=0)
        self.data = np.random.default_rng(5).random(count * GAP // 8)
        at = self.data.ctypes.data
        self.objects = [0 if k is None else at + GAP * k for k in order]
        self.table = np.zeros(len(order) * self.stride // 8, np.int64)
        self.first = self.table.ctypes.data + (8 if self.stride > 8 else 0)
        self.table[(self.first - self.table.ctypes.data) // 8 :: self.stride // 8] = self.objects
        self.index = np.array(more or (0,), np.int32)
        self.integers = [self.table.ctypes.data, len(more) or len(order), self.index.ctypes.data]
        blocks = [Allocation(at + GAP * k, BYTES, k, 0) for k in range(count)]
        self.blocks = (*blocks, Allocation(self.table.ctypes.data, self.table.nbytes, count, 0))
        self.before = self.data.copy(), self.table.copy()

    def restore(self) -> bytes:
        """What is in memory; puts it back to the start."""
        found = self.data.tobytes() + self.table.tobytes()
        self.data[:], self.table[:] = self.before
        return found

    def expected(self) -> bytes:
        """What the compiled function leaves."""
        table, n, index = self.integers
        self.native.function(*map(ctypes.c_int64, (table, n)), ctypes.c_double(0.5), ctypes.c_int64(index))
        return self.restore()

    def trace(self) -> Trace:
        """The function's accesses, folded as the program's would be; kinds as the code has them."""
        self.restore()
        made = self.tracer({}, arguments(self.integers, [0.5]), records=1 << 16).records
        self.restore()
        streams = [made[made >> np.uint64(48) == r.id] & np.uint64((1 << 48) - 1) for r in self.references]
        text = {(r.pc, r.operand): "read" for r in self.references}
        text |= dict.fromkeys(_stored(self.lifted), "both")
        references = tuple(replace(r, kind=text[r.pc, r.operand]) for r in self.references)  # type: ignore[arg-type]
        folded = tuple(fold(s) if len(s) else None for s in streams)
        plain = trace_of(self.lifted, made, references, self.lifted.symbol)
        return replace(plain, streams=folded, allocations=self.blocks)

    def run(self, source: str, name: str, check: bool = False) -> tuple[bytes, MockupCall]:
        """What a mock-up leaves."""
        flags = ("-O1",) if check else self.flags
        done = run_mockup(source, self.where / f"{name}.so", self.integers, [0.5], flags=flags, records=1 << 16)
        return self.restore(), done


def _stored(lifted: Lifted) -> set[tuple[int, int]]:
    return {key_of(a) for a in accesses(lifted.body) if isinstance(a, Store)}


def read(address: int, size: int) -> bytes:
    return ctypes.string_at(address, size)


def tables(heap: Heap, trace: Trace | None = None) -> tuple[tuple[PointerTable, ...], tuple[RefusedTable, ...]]:
    return find_tables(heap.lifted, trace or heap.trace(), read)


def structure_of(heap: Heap, trace: Trace, table: PointerTable) -> tuple[Lifted, Trace, Structure]:
    lifted, moved = gathered(heap.lifted, trace, table, base_of(0))
    pairs = zip(moved.references, moved.streams, strict=True)
    uses = [Access(s, r.bytes, r.kind) for r, s in pairs if s is not None and (r.pc, r.operand) in table.reached]
    shape = MemoryObjectShape("s1", "*ps", base_of(0), table.count * element_bytes(table))
    return lifted, moved, derive_records(shape, uses, None, element_bytes(table), table.slots).structure


def every(stream: Stream) -> list[int]:
    if isinstance(stream, FoldedStream):
        addresses: list[int] = expand_array(stream).astype(int).tolist()
        return addresses
    assert isinstance(stream, AddressSet)
    assert stream.bitmap is not None
    bits = np.flatnonzero(np.unpackbits(np.frombuffer(stream.bitmap, np.uint8), bitorder="little"))
    return [stream.minimum + stream.gcd * int(k) for k in bits]


@pytest.fixture(scope="module")
def mover(tmp_path_factory: pytest.TempPathFactory) -> Heap:
    return Heap(SOURCE, "move", tmp_path_factory.mktemp("move"))


slots = st.lists(st.one_of(st.none(), st.integers(0, 60)), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.one_of(slots, st.permutations(range(40)).map(list)))
def test_tables_are_those_whose_elements_have_one_place_each(mover: Heap, order: list[int | None]) -> None:
    """Against what a look at the pointers says; the places are those of the slots, by brute force."""
    mover.fill(order)
    trace = mover.trace()
    found, refused = tables(mover, trace)
    present = [o for o in mover.objects if o]
    if len(order) < 16:  # few pointers are few objects
        assert not found
        assert not refused
    elif len(present) < 16:
        assert [r.reason for r in refused] == ["most of them are null"]
    elif len(set(present)) < len(present):
        assert [r.reason for r in refused] == ["two of them are equal: the object would be stored twice"]
    else:
        (table,) = found
        assert not refused
        assert table.objects.tolist() == mover.objects
        assert table.slots.bytes == BYTES
        assert table.slots.table == mover.first
        _, moved = gathered(mover.lifted, trace, table, base_of(0))
        slot = {address: k for k, address in enumerate(mover.objects) if address}
        for reference, old, new in zip(trace.references, trace.streams, moved.streams, strict=True):
            if (reference.pc, reference.operand) not in table.reached:
                assert new == old
                continue
            assert old is not None
            assert new is not None
            assert old.count == new.count
            starts = [max(o for o in present if o <= a) for a in every(old)]
            places = [base_of(0) + BYTES * slot[s] + a - s for a, s in zip(every(old), starts, strict=True)]
            assert sorted(every(new)) == sorted(places)
            if isinstance(old, FoldedStream):
                assert every(new) == places


@pytest.mark.parametrize("flags", [FLAGS["O3-avx2"], *slower((FLAGS["O2"],))], ids=["O3-avx2", "O2"])
@pytest.mark.parametrize("symbol", ["move", "chosen", "held"])
def test_mockups_of_gathered_objects_leave_the_same_bytes(symbol: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    heap = Heap(SOURCE, symbol, tmp_path, flags, stride=24 if symbol == "held" else 8)
    order: list[int | None] = list(np.random.default_rng(7).permutation(50).tolist())
    if symbol == "move":
        order[3] = order[20] = None
    chosen = tuple(np.random.default_rng(8).integers(0, 50, 60).tolist()) if symbol == "chosen" else ()
    heap.fill(order, chosen)
    expected, trace = heap.expected(), heap.trace()
    ((table,), refused) = tables(heap, trace)
    assert not refused
    lifted, moved, structure = structure_of(heap, trace, table)
    candidates = explore([structure], lanes=(32,))
    (objects,) = (c for c in candidates if c.families == ("gather",))
    candidates = (*candidates[:3], objects)
    for number, candidate in enumerate(candidates):
        source = emit_mockup(lifted, candidate, moved, (structure,))
        assert heap.run(source, f"c{number}")[0] == expected
        found, done = heap.run(emit_mockup(lifted, candidate, moved, (structure,), check=True), f"k{number}", True)
        made = sum(s.count for r, s in zip(moved.references, moved.streams, strict=True)
                   if s is not None and (r.pc, r.operand) in table.reached)  # fmt: skip
        assert found == expected
        assert (done.mismatches, done.remapped) == (0, made)
        assert heap.run(emit_mockup(lifted, candidate, moved, (structure,), wrong=True), f"w{number}")[0] != expected


def test_pointers_that_the_call_changes_are_refused(tmp_path: Path) -> None:
    heap = Heap(SOURCE, "reset", tmp_path)
    heap.fill(list(range(30)))
    found, refused = tables(heap)
    assert not found
    assert "the call changes them" in refused[0].reason


def test_a_linked_list_has_no_table(tmp_path: Path) -> None:
    heap = Heap(SOURCE, "walk", tmp_path)
    heap.fill(list(range(30)))
    nodes = heap.data.view(np.int64)
    nodes[0 :: GAP // 8] = [*heap.objects[1:], 0]
    heap.before = heap.data.copy(), heap.table.copy()
    assert tables(heap) == ((), ())


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, 29), shift=st.sampled_from([-8, 8, 1 << 40]))
def test_pointers_to_elsewhere_are_refused(mover: Heap, which: int, shift: int) -> None:
    """A pointer into another object, or to no block at all."""
    mover.fill(list(range(30)))
    trace = mover.trace()
    mover.table[which] += shift
    found, refused = tables(mover, trace)
    mover.restore()
    assert not found
    assert len(refused) == 1


def test_objects_reached_in_another_way_are_refused(mover: Heap) -> None:
    mover.fill(list(range(30)))
    trace = mover.trace()
    stranger = replace(trace.references[0], id=len(trace.references), pc=1, bytes=1)
    for place, taken in ((mover.objects[7] + BYTES - 1, False), (mover.objects[7] + BYTES, True)):
        more = replace(trace, references=(*trace.references, stranger), streams=(*trace.streams, fold([place])))
        found, refused = tables(mover, more)
        assert bool(found) == taken
        assert taken or "reaches the objects in another way" in refused[0].reason


def test_slots_of_another_call_are_found_again(mover: Heap) -> None:
    mover.fill(list(range(40)))
    ((first,), _) = tables(mover)
    mover.integers[1] = 25  # a later call that uses a part
    ((part,), _) = tables(mover)
    assert part.count == 25
    ((again,), _) = find_tables(mover.lifted, mover.trace(), read, within=(first.slots,))
    assert again.slots == first.slots
    assert again.objects.tolist() == first.objects.tolist()


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40), st.integers(1, 30))
def test_the_memory_of_objects_is_covered_without_what_is_between(steps: list[int], most: int) -> None:
    at = np.cumsum([1000, *(BYTES + 8 * s for s in steps)])
    pieces = pieces_of(at, at + BYTES, most=most)
    inside = {b for low, high in pieces for b in range(low, high)}
    own = {b for a in at.tolist() for b in range(a, a + BYTES)}
    gaps = [(a + BYTES, b) for a, b in pairwise(at.tolist()) if b - a - BYTES > 16]
    between = {k for low, high in gaps for k in range(low, high)}
    assert len(pieces) <= most
    assert not inside & between
    assert len(pieces) == most or own <= inside
