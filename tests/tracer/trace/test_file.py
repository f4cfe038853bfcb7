"""The trace file: what was written is read, and anything else is refused by name."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Point
from layout_advise.tracer.folding.fold import fold, fold_records
from layout_advise.tracer.trace.chunks import END, ChunkWriter, pack, read_chunks
from layout_advise.tracer.trace.trace import (
    CodeLoop,
    Control,
    InlinedCall,
    LoopUse,
    SourcePlace,
    Trace,
    TracedField,
    TracedObject,
)
from layout_advise.tracer.trace.trace_file import checksum, read_trace, read_what_is_there, write_trace
from tests.support.paths import ROOT
from tests.support.tracing.endless_trace import endless, example


def full_example(found: tuple[object, ...]) -> Trace:
    """With everything that a trace can hold."""
    field = TracedField("mass", 16, 8, "double", 100, 3, (LoopUse(1, 100, 0), LoopUse(None, 0, 3)))
    heap = TracedObject(
        *("heap", "bodies", "body", 0x10000, 4800, 0x10000, 0x11000, 103, (0, 1), 7, "sph.c:9"),
        *("whole", "A_100 ⊗ S_{2;6}", 48, (field,)),
    )
    nest = (Loop(Affine(5), (Point(Affine(1)), Loop(Affine(2, (3,)), (Point(Affine(0)),)))),)
    return replace(
        example(found),
        limits=("--max-refs 77",),
        places=(SourcePlace(0x401000, "hot", "/a/b.c", 3, (InlinedCall("f", "/a/b.c", 9), InlinedCall("g", "c.h", 1)), 1),),
        loops=(CodeLoop(0x401000, None, 0, "hot", "/a/b.c", 2), CodeLoop(0x401008, 0, 1)),
        objects=(heap, TracedObject("global", "table", None, 0x500000, 64, 0x500000, 0x500007, 1, (1,))),
        control=Control(nest, ((0, 0), (1, 1))),
        team_control=(Control(nest, ((0, 0), (1, 1))), Control(None, ((2, 3),), "it does not fold")),
        calls=60,
    )


def streams() -> tuple[object, ...]:
    scattered = fold([(n * 7919) % 100_003 * 8 for n in range(60_000)])
    return (
        fold([8 * i + 1000 * j for j in range(9) for i in range(j)]),
        None,
        scattered,
        fold([]),
        fold([5]),
        *[None] * 200,
    )


def test_what_was_written_is_read(tmp_path: Path) -> None:
    trace, path = example(streams()), tmp_path / "t"
    write_trace(trace, path)
    assert read_trace(path) == trace
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


def test_a_file_that_does_not_say_how_many_calls_holds_one(tmp_path: Path) -> None:
    trace, path, older = full_example((fold([5]), None)), tmp_path / "t", tmp_path / "older"
    write_trace(trace, path)
    assert read_trace(path).calls == 60
    with ChunkWriter(older) as writer:
        for kind, content in read_chunks(path):
            if kind == END:
                writer.finish({"limits": content["limits"]})
            else:
                head = {key: value for key, value in content.items() if key != "calls"} if kind == b"HEAD" else content
                writer.add(pack(kind, head))
    assert read_trace(older) == replace(trace, calls=1)


@pytest.mark.parametrize("version", [None, 2])
def test_the_orders_of_threads_may_be_missing_or_of_a_later_version(tmp_path: Path, version: int | None) -> None:
    trace, path, other = full_example((fold([5]), None)), tmp_path / "t", tmp_path / "other"
    write_trace(trace, path)
    assert read_trace(path) == trace
    with ChunkWriter(other) as writer:
        for kind, content in read_chunks(path):
            if kind == END:
                writer.finish({"limits": content["limits"]})
            elif kind != b"TCTL":
                writer.add(pack(kind, content))
            elif version is not None:
                writer.add(pack(kind, {"version": version, "what": 1}))
    assert read_trace(other) == replace(trace, team_control=())


@given(st.lists(st.integers(0, 2**47), max_size=40))
def test_any_stream_survives(tmp_path_factory: pytest.TempPathFactory, addresses: list[int]) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    trace = example((fold(addresses),))
    write_trace(trace, path)
    assert read_trace(path) == trace


def test_a_regular_trace_is_small(tmp_path: Path) -> None:
    import numpy as np

    i = np.arange(4_000_000, dtype=np.uint64)
    records = (i // 40) * 640 + (i // 1000) * 64 + 0x7F0000000000 | (i % 40) << np.uint64(48)
    write_trace(example(tuple(fold_records(records, 40))), tmp_path / "t")
    assert (tmp_path / "t").stat().st_size < 100_000


def test_checksum_tells_traces_apart(tmp_path: Path) -> None:
    for name, value in (("a", [1]), ("b", [1]), ("c", [2])):
        write_trace(example((fold(value),)), tmp_path / name)
    a, b, c = (checksum(tmp_path / name) for name in "abc")
    assert a == b != c


def whole_prefix(found: Trace, trace: Trace) -> None:
    """``found`` holds a beginning of what ``trace`` holds, and nothing else."""
    assert (found.symbol, found.call, found.registers, found.accesses) == (
        *(trace.symbol, trace.call, trace.registers, trace.accesses),
    )
    assert found.truncated
    assert found.references == trace.references[: len(found.references)]
    assert found.streams == trace.streams[: len(found.references)]
    assert found.allocations == trace.allocations[: len(found.allocations)]
    assert found.mappings in ((), trace.mappings)
    assert found.objects in ((), trace.objects)


def check_cut(path: Path, trace: Trace, data: bytes, size: int) -> int:
    """Read the first ``size`` bytes; how many references they hold (-1: not even the head)."""
    path.write_bytes(data[:size])
    with pytest.raises(TraceError, match="is incomplete" if size > 11 else r"is incomplete|is not a trace"):
        read_trace(path)
    try:
        found = read_what_is_there(path)
    except TraceError:
        return -1
    assert found.missing is not None
    assert f"{len(found.trace.references)} of {len(trace.references)} references" in found.missing
    whole_prefix(found.trace, trace)
    return len(found.trace.references)


def test_a_small_file_cut_anywhere_is_read_up_to_the_last_whole_chunk(tmp_path: Path) -> None:
    trace = full_example((fold(list(range(0, 800, 8))), None))
    write_trace(trace, tmp_path / "t")
    data = (tmp_path / "t").read_bytes()
    held = [check_cut(tmp_path / "cut", trace, data, size) for size in range(len(data))]
    assert held == sorted(held)  # more bytes, never less of the trace
    assert set(held) == {-1, 0, 2}
    assert read_what_is_there(tmp_path / "t").missing is None
    assert read_trace(tmp_path / "t") == trace


def test_a_large_file_cut_anywhere_is_read_up_to_the_last_whole_chunk(tmp_path: Path) -> None:
    trace = full_example(tuple(fold([n * (n + k) % 10_007 * 8 for n in range(6)]) for k in range(600)))
    write_trace(trace, tmp_path / "t")
    data = (tmp_path / "t").read_bytes()
    held = [check_cut(tmp_path / "cut", trace, data, size) for size in range(0, len(data), 1 + len(data) // 80)]
    assert held == sorted(held)
    assert len(set(held)) == 2 + -(-600 // 64)  # nothing, the tables, and every group of references


def test_every_flipped_byte_is_refused(tmp_path: Path) -> None:
    path, bad = tmp_path / "t", tmp_path / "bad"
    write_trace(full_example((fold(list(range(0, 800, 8))), None)), path)
    data = path.read_bytes()
    for at in range(len(data)):
        bad.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        for read in (read_trace, read_what_is_there):
            with pytest.raises(TraceError, match=r"is damaged" if at > 11 else r"is not a trace|has version"):
                read(bad)


WRITER = """
import sys
from pathlib import Path
from layout_advise.tracer.trace.chunks import ChunkWriter, pack
from layout_advise.tracer.trace import trace_file as t
from tests.support.tracing.endless_trace import endless
trace = endless()
with ChunkWriter(Path(sys.argv[1])) as writer:
    for kind, content in t._tables(trace):
        writer.add(pack(kind, content))
    while True:
        t._write_references(writer, trace, None)
"""


def test_what_a_killed_writer_left_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "t"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not path.exists() or path.stat().st_size < 100_000:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.002)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGKILL
    found, trace = read_what_is_there(path), endless()
    assert found.missing
    assert len(found.trace.references) >= 64
    assert len(found.trace.references) % 64 == 0
    assert found.trace.streams == trace.streams * (len(found.trace.references) // 64)


@pytest.fixture(scope="module")
def mixed() -> Trace:
    scattered = fold([8 * place for place in random.Random(1).choices(range(3000), k=35_000)])
    assert isinstance(scattered, AddressSet)
    nests = tuple(fold([n * (n + k) % 509 for n in range(60)]) for k in range(90))
    return replace(
        example((scattered, fold([8 * i + 1000 * j for j in range(9) for i in range(j)]), None, *nests)), truncated=False
    )


@given(st.integers(900, 40_000))
@settings(max_examples=8)
def test_no_file_passes_its_limit(mixed: Trace, tmp_path_factory: pytest.TempPathFactory, limit: int) -> None:
    path, trace = tmp_path_factory.getbasetemp() / "limited", mixed
    try:
        held = write_trace(trace, path, limit)
    except TraceError as refused:
        assume("--max-bytes" not in refused.why)
        raise
    assert path.stat().st_size <= limit
    found = read_trace(path)
    assert found == held
    cut = [(a, b) for a, b in zip(trace.streams, found.streams, strict=True) if a != b]
    assert found.truncated == bool(found.limits)
    assert bool(found.limits) == (bool(cut) or len(found.allocations) < 500)
    for was, now in cut:
        assert isinstance(now, AddressSet)
        assert not now.exact
        assert was is not None
        assert now.count == was.count
        for address in was.expand() if isinstance(was, FoldedStream) else members(was):
            assert now.minimum <= address <= now.maximum
            assert now.gcd == 0 or (address - now.minimum) % now.gcd == 0


def members(found: AddressSet) -> list[int]:
    bits = found.bitmap or b""
    return [found.minimum + found.gcd * k for k in range(8 * len(bits)) if bits[k // 8] >> k % 8 & 1]


def test_what_finds_no_room_is_the_largest(mixed: Trace, tmp_path: Path) -> None:
    mixed = replace(mixed, allocations=())
    assert write_trace(mixed, tmp_path / "t", 10 << 20) is mixed
    whole = (tmp_path / "t").stat().st_size
    limited = write_trace(mixed, tmp_path / "t", whole + 500)  # the last chunk's room is kept
    cut = [a for a, b in zip(mixed.streams, limited.streams, strict=True) if a != b]
    assert limited.limits == (
        f"--max-bytes {whole + 500}: of {len(cut)} of 93 references the file keeps bounds and count only",
    )
    assert 1 <= len(cut) < 20
    assert all(b == a or isinstance(b, AddressSet) for a, b in zip(mixed.streams, limited.streams, strict=True))


def test_a_full_disk_leaves_what_was_whole(small_disk: Path) -> None:
    def noise(k: int) -> AddressSet:
        return AddressSet(0, 8 * 8 * 4096 - 8, 8, 9, random.Random(k).randbytes(4096))

    trace = example(tuple(noise(k) for k in range(640)))
    with pytest.raises(TraceError, match=r"No space left on device; its first [0-9,]+ bytes are whole"):
        write_trace(trace, small_disk / "t")
    found = read_what_is_there(small_disk / "t")
    assert found.missing
    assert 64 <= len(found.trace.references) < 640
    whole_prefix(found.trace, trace)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x7fELF\x02\x01\x01\0" + bytes(100), "is not a trace"),
        (b"", "is not a trace"),
        (b"LATRACE\n" + (7).to_bytes(4, "little"), "has version 7"),
        (b"LATRACE\n" + (1).to_bytes(4, "little"), "version 1: an older layout-advise wrote it; this one reads 2"),
        (b"LATRACE\n" + (2).to_bytes(4, "little"), "ends too early"),
        (b"LATRACE\n" + (2).to_bytes(2, "little"), "ends too early"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, data: bytes, words: str) -> None:
    (tmp_path / "t").write_bytes(data)
    with pytest.raises(TraceError, match=words):
        read_trace(tmp_path / "t")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(tmp_path / "none")
    with pytest.raises(TraceError, match="not written"):
        write_trace(example(()), tmp_path / "no" / "folder")
