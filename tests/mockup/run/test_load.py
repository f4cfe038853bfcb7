"""Mock-ups called on arrays anywhere in memory: converted, run, converted back; what does not fit is refused by name."""

from __future__ import annotations

import doctest
import mmap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from layout_advise.errors import MockupError
from layout_advise.layoutalgebra.bridges.arrays import element_dtype
from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Structure
from layout_advise.mockup.run import load
from layout_advise.mockup.run.fixed_addresses import at_addresses, bytes_at
from layout_advise.mockup.run.load import LoadedMockup, arguments, compile_mockup
from tests.support.mockups.case import PARTICLES, f64_fields
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import Native, candidate, relayout, traced

N = 37
DT = 0.5
BYTES = N * 80
FREE = 0x2000_0000_0000
"""No kernel places memory here by itself; what one frees may be another's at the next moment, and so may the page before."""
FIELDS = f64_fields(*((name, 8 * k) for k, name in enumerate(("x", "y", "z", "vx", "vy", "vz"))))


class Hotspot:
    """``move`` of PARTICLES, lifted and traced on memory that is free again, as that of a snapshot is here."""

    def __init__(self, where: Path) -> None:
        self.where = where
        self.lifted = Native(PARTICLES, "move", where).lifted()
        self.base = FREE
        with at_addresses([(self.base, np.zeros(BYTES, np.uint8))]):
            self.trace = traced(self.lifted, where, (self.base, N), (DT,))
        self.structure = Structure("s0", "particles", self.base, BYTES, (Dim(N, 80),), FIELDS, (), self.base)
        self.registers = arguments((self.base, N), (DT,))

    def layout(self, kind: str) -> Candidate | None:
        return None if kind == "identity" else candidate(relayout(self.structure, kind))

    def mockup(self, kind: str, **options: Any) -> LoadedMockup:
        text = emit_mockup(self.lifted, self.layout(kind), self.trace, (self.structure,), **options)
        return compile_mockup(text, self.where / "mockup.so", (self.structure,), fill=0xAB)


@pytest.fixture
def hotspot(tmp_path: Path) -> Hotspot:
    return Hotspot(tmp_path)


def some(seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng(seed).random((N, 10))


def moved(data: NDArray[np.float64], dt: float = DT) -> NDArray[np.float64]:
    found = data.copy()
    found[:, :3] += found[:, 3:6] * dt
    return found


@pytest.mark.parametrize("kind", ["identity", "soa", "aosoa", "compact", "split"])
def test_an_array_anywhere_is_converted_run_and_converted_back(hotspot: Hotspot, kind: str) -> None:
    mockup = hotspot.mockup(kind)
    for seed in (1, 2):
        data = some(seed)
        expected = moved(data)
        mockup({"particles": data}, hotspot.registers)
        assert data.tobytes() == expected.tobytes()
    if kind == "soa":
        assert [b.view(np.float64).tolist() for b in mockup.buffers] == expected.T[:6].tolist()


def test_arguments_may_differ_from_call_to_call(hotspot: Hotspot) -> None:
    data = some()
    expected = data.copy()
    expected[3:10] = moved(data, 2.0)[3:10]
    hotspot.mockup("soa")({"s0": data}, arguments((hotspot.base + 3 * 80, 7), (2.0,)))
    assert data.tobytes() == expected.tobytes()


def test_records_of_the_fields_types_and_plain_bytes_are_taken_too(hotspot: Hotspot) -> None:
    mockup, expected = hotspot.mockup("compact"), moved(some())
    records = some().view(element_dtype(hotspot.structure))[:, 0]
    mockup({"particles": records}, hotspot.registers)
    raw = some().view(np.uint8).ravel()
    mockup({"particles": raw}, hotspot.registers)
    assert records.tobytes() == raw.tobytes() == expected.tobytes()


def test_a_check_build_gives_its_counts_and_records(hotspot: Hotspot) -> None:
    mockup = hotspot.mockup("soa", check=True)
    done = mockup({"particles": some()}, hotspot.registers, records=100)
    assert (done.count, done.mismatches, done.remapped, len(done.records)) == (
        6 * N,
        0,
        6 * N,
        100,
    )  # x and y are accessed together
    addresses = done.records & np.uint64((1 << 48) - 1)
    assert hotspot.base <= addresses.min() <= addresses.max() < hotspot.base + BYTES


def test_one_path_may_be_built_and_loaded_again(hotspot: Hotspot) -> None:
    first, data = hotspot.mockup("soa"), some()
    second = hotspot.mockup("aosoa")
    assert len(first.buffers[0]) != len(second.buffers[0])
    first({"particles": data}, hotspot.registers)
    second({"particles": data}, hotspot.registers)
    assert data.tobytes() == moved(moved(some())).tobytes()


def read_only() -> NDArray[Any]:
    data = some()
    data.flags.writeable = False
    return data


MIXED = np.dtype({"names": ["x", "y", "z", "vx", "vy", "vz"], "formats": ["f8"] * 6, "offsets": [8, 0, 16, 24, 32, 40], "itemsize": 80})  # fmt: skip  # noqa: E501


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        (lambda: {}, "it has no array"),
        (lambda: {"particles": some()[:5]}, "its array has 400 bytes, the structure 2,960"),
        (lambda: {"particles": some().astype(np.float32).repeat(2)}, "its field x is float64 at 0, .* float32 at 0"),
        (lambda: {"particles": some().view(np.int64)}, "its field x is float64 at 0, that of the array int64 at 0"),
        (lambda: {"particles": np.zeros(N, MIXED)}, "its field x is float64 at 0, that of the array float64 at 8"),
        (lambda: {"particles": np.zeros(2 * N, "f8,f8,f8,f8,f8")}, "a record of its array has 40 bytes, an element 80"),
        (lambda: {"particles": np.zeros(N, ",".join(["f8"] * 10))}, "its array has no field x"),
        (lambda: {"particles": np.zeros((10, N)).T}, "its array is not contiguous"),
        (lambda: {"particles": read_only()}, "its array is read-only"),
        (lambda: {"particles": some(), "table": some()}, "table: its structures are particles"),
        (lambda: {"particles": some(), 4096: some()[:, 1]}, "the memory at 0x1000: its array is not contiguous"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    hotspot: Hotspot, arrays: Callable[[], dict[str | int, NDArray[Any]]], why: str
) -> None:
    with pytest.raises(MockupError, match=f"^no call of the mock-up on .*{why}"):
        hotspot.mockup("soa")(arrays(), hotspot.registers)


def test_a_block_that_begins_before_its_elements_is_passed_as_bytes(hotspot: Hotspot) -> None:
    hotspot.structure = replace(hotspot.structure, block_base=hotspot.base - 16, bytes=BYTES + 16)
    mockup, block = hotspot.mockup("soa"), np.zeros(BYTES + 16, np.uint8)
    with pytest.raises(MockupError, match=r"elements begin 16 bytes into the block; pass the block's bytes \(uint8\)$"):
        mockup({"particles": block.view(np.float64)}, hotspot.registers)
    block[16:] = some().view(np.uint8).ravel()
    mockup({"particles": block}, hotspot.registers)
    assert block[16:].tobytes() == moved(some()).tobytes()
    assert not block[:16].any()


def test_what_is_not_a_mock_up_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MockupError, match=r"^m\.so cannot be built: gcc: .*error"):
        compile_mockup("int main(", tmp_path / "m.so")
    with pytest.raises(MockupError, match=r"^m\.so cannot be loaded: .*la_abi"):
        compile_mockup("int x;", tmp_path / "m.so")
    exported = '__attribute__((visibility("default")))'
    old = f"{exported} const unsigned la_abi = 1; {exported} void la_run(void) {{}}"
    with pytest.raises(MockupError, match=r"^m\.so cannot be loaded: its interface is 1, not 4; build it anew$"):
        compile_mockup(old, tmp_path / "m.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(MockupError, match=r"^text\.so cannot be loaded: "):
        LoadedMockup(tmp_path / "text.so")


def test_more_arguments_than_registers_are_refused() -> None:
    with pytest.raises(MockupError, match="six integers and eight floats are passed in registers"):
        arguments(range(7))
    assert arguments((-1,), (np.float32(1.0), 1.0)).vector == (b"\0\0\x80\x3f", b"\0\0\0\0\0\0\xf0\x3f")


def test_memory_at_addresses_comes_and_goes() -> None:
    """Blocks on one page, one at its own address, one that is only read; pages of others are left alone."""
    start = FREE
    first, second, third = np.arange(16), np.arange(16) * 2, np.arange(1000)
    third.flags.writeable = False
    own = np.arange(4)
    blocks = [(start + 256, second), (start + 8, first), (own.ctypes.data, own), (start + 4000, third)]
    with at_addresses(blocks):
        assert [bytes_at(at, array.nbytes).tobytes() for at, array in blocks] == [array.tobytes() for _, array in blocks]
        for at, array in blocks:
            bytes_at(at, array.nbytes)[0] += 1
    assert (first[0], second[0], third[0], own[0]) == (1, 1, 0, 1)
    assert not mapped(start)
    with (
        pytest.raises(MockupError, match=r"two arrays cannot be placed: the blocks at .* overlap$"),
        at_addresses([(start, first), (start + 64, second)]),
    ):
        pass
    taken = own.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
    with (
        pytest.raises(MockupError, match="this process has other memory there; call the mock-up in a new process"),
        at_addresses([(start, first), (taken, third)]),
    ):
        pass
    assert not mapped(start)  # the first one was, for a moment


def mapped(address: int) -> bool:
    ranges = (line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines())
    return any(int(low, 16) <= address < int(high, 16) for low, high in ranges)


def test_the_example_of_the_module(hotspot: Hotspot) -> None:
    names = {
        "lifted": hotspot.lifted,
        "candidate": hotspot.layout("soa"),
        "trace": hotspot.trace,
        "structure": hotspot.structure,
        "folder": hotspot.where,
    }
    assert doctest.testmod(load, extraglobs=names).attempted > 5
    assert doctest.testmod(load, extraglobs=names).failed == 0
