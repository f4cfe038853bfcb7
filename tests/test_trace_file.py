"""The trace file: what was written is read, and anything else is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.errors import TraceError
from layout_advise.tracer.folding import fold, fold_records
from layout_advise.tracer.trace import Allocation, Mapping, Reference, Registers, Trace
from layout_advise.tracer.trace_file import checksum, read_trace, write_trace


def example(streams: tuple[object, ...]) -> Trace:
    return Trace(
        symbol="hot",
        call=3,
        backend="clone",
        references=tuple(Reference(n, 0x401000 + 4 * n, n % 2, "both", 32) for n in range(len(streams))),
        streams=streams,  # type: ignore[arg-type]
        accesses=77,
        truncated=True,
        registers=Registers(
            tuple(range((1 << 64) - 16, 1 << 64)), 0x401000, 0x246, 0x1F80, 0x7F00, (b"\0" * 63 + b"\xff",) * 32
        ),
        mappings=(Mapping(0x400000, 0x500000, "r-xp", 4096, "/tmp/äpp with blank"),),
        allocations=tuple(Allocation(0x10000 + 64 * n, 48, n, 0x401234) for n in range(500)),
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


def test_every_truncation_and_flipped_byte_is_refused(tmp_path: Path) -> None:
    path, bad = tmp_path / "t", tmp_path / "bad"
    write_trace(example((fold(list(range(0, 800, 8))), None)), path)
    data = path.read_bytes()
    for size in range(len(data)):
        bad.write_bytes(data[:size])
        with pytest.raises(TraceError):
            read_trace(bad)
    for at in range(len(data)):
        bad.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
        with pytest.raises(TraceError):
            read_trace(bad)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x7fELF\x02\x01\x01\0" + bytes(100), "is not a trace"),
        (b"", "is not a trace"),
        (b"LATRACE\n" + (7).to_bytes(4, "little"), "has version 7"),
        (b"LATRACE\n" + (1).to_bytes(4, "little"), "ends too early"),
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
