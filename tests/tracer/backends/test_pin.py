"""The Pin backend as far as it can be tested without Pin: the protocol by recorded accesses, the tool by compiling it.

The kit is a stand-in: declarations of the interface, a few make variables, and a ``pin`` that plays a recording.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import MachineError, ProgramError, TraceError
from layout_advise.layoutalgebra.sets.nests import AddressSet
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.pin.run import PinBackend, find_kit, run_pin, tool_path
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.tool.result import read_result
from layout_advise.tracer.backends.tool.run import ToolRun
from layout_advise.tracer.backends.valgrind.run import run_tool
from layout_advise.tracer.snapshot.park import park
from tests.support.clone_programs import build, region_of
from tests.support.paths import ROOT
from tests.support.tracing.parked_programs import entry_of
from tests.support.tracing.trace_requests import request
from tests.support.tracing.unfolding import unfolded

STUB = Path(__file__).with_name("pin_stub")
NLR, PIN = ROOT / "tracer" / "nlr", ROOT / "tracer" / "backends" / "pin"
KINDS = {"read": 0, "write": 1, "both": 2}
CONFIG = """OBJ_SUFFIX := .o
PINTOOL_SUFFIX := .so
CXX := g++
CC := gcc
LINKER := g++
LINK_EXE := -o 
COMP_OBJ := -c -o 
TOOL_CXXFLAGS := -Wall -Werror -Wno-unknown-pragmas -std=c++11 -O1 -fPIC -I$(PIN_ROOT)/source/include/pin
TOOL_LDFLAGS := -shared
TOOLS_ROOT := $(PIN_ROOT)/source/tools
"""
RULES = "$(OBJDIR)%$(OBJ_SUFFIX): %.cpp\n\t$(CXX) $(TOOL_CXXFLAGS) $(COMP_OBJ)$@ $<\n"
PLAY = """#!/bin/sh
while [ "$1" != -- ]; do case $1 in -out) out=$2;; -call) call=$2;; -cap) cap=$2;; esac; shift; done
cd "$(dirname "$0")" && cp maps blocks "$out" && ./replay "$out" {calls} {outcome} "$cap" < accesses
"""


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    for name in ("nlr", "nlr_set"):
        subprocess.run(["gcc", "-O1", "-c", "-o", str(folder / f"{name}.o"), str(NLR / f"{name}.c")], check=True)
    sources = (
        str(STUB / "replay.cpp"),
        str(PIN / "report.cpp"),
        str(PIN / "order.cpp"),
        str(folder / "nlr.o"),
        str(folder / "nlr_set.o"),
    )
    flags = ("-std=c++11", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", f"-I{PIN}", f"-I{NLR}")
    subprocess.run(["g++", *flags, "-o", str(folder / "replay"), *sources], check=True)
    return folder / "replay"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all tests have their kit and the tool that is built against it."""
    return tmp_path_factory.mktemp("pin")


@pytest.fixture
def kit(shared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kit as it is unpacked; nothing has been recorded."""
    folder = shared / "kit"
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in (
        ("source/tools/Config/makefile.config", CONFIG),
        ("source/tools/Config/makefile.default.rules", RULES),
        ("source/include/pin/pin.H", (STUB / "pin.H").read_text()),
        ("pin", "#!/bin/sh\nexit 7\n"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "pin").chmod(0o755)
    monkeypatch.setenv("PIN_ROOT", str(folder))
    monkeypatch.setenv("LAYOUT_ADVISE_CACHE", str(shared / "cache"))
    return folder


def record(kit: Path, replay: Path, run: ToolRun, calls: int = 2, outcome: int = 1) -> None:
    """Make the kit's ``pin`` play what the Valgrind tool recorded."""
    assert run.records is not None
    words = [*run.process.registers.gpr, run.process.registers.rip, 0, run.process.registers.fs_base, 0]
    for word in run.records.tolist():
        seen = run.references[word >> 48]
        words += [seen.pc, seen.ordinal, KINDS[seen.kind], seen.bytes, word & (1 << 48) - 1]
    np.array(words, dtype="<u8").tofile(kit / "accesses")
    blocks = [(a.address, a.bytes, a.order, a.site) for a in run.process.allocations]
    np.array(blocks, dtype="<u8").tofile(kit / "blocks")
    maps = (f"{m.start:x}-{m.end:x} {m.permissions} {m.offset:x} 0:0 1 {m.path}\n" for m in run.process.mappings)
    (kit / "maps").write_text("".join(maps))
    (kit / "replay").unlink(missing_ok=True)
    (kit / "replay").symlink_to(replay)
    (kit / "pin").write_text(PLAY.format(calls=calls, outcome=outcome))


def test_a_recording_becomes_the_clones_trace(tmp_path: Path, kit: Path, replay: Path) -> None:
    program = build(tmp_path, "recursion", "-O2")
    record(kit, replay, run_tool(Rerun([str(program)], entry_of(program), 2, 1 << 40), raw=True))
    with park([str(program)], entry_of(program), 2, timeout=60) as process:
        region = region_of(program, process.load_base)
        clone = trace_call(process, region, 2, folder=tmp_path)
        found = PinBackend().trace(request(process, region, Rerun([str(program)], entry_of(program), 2, 1 << 40)))
    assert found.notes == ()
    assert found.trace.backend == "pin"
    assert found.trace.accesses == clone.accesses > 500
    assert (found.trace.references, found.trace.streams) == (clone.references, clone.streams)
    assert found.trace.control is not None
    assert clone.control is not None
    assert found.trace.control.pieces == clone.control.pieces
    assert unfolded(found.trace.control) == unfolded(clone.control)
    assert not found.trace.watched


def test_an_irregular_order_is_given_up(tmp_path: Path, replay: Path) -> None:
    generator = np.random.default_rng(7)
    sites = generator.integers(0, 3000, 60_000)
    rows = np.column_stack([0x40_0000 + 4 * sites, np.zeros((60_000, 2)), np.full(60_000, 8), np.full(60_000, 64)])
    data = np.zeros(20, dtype="<u8").tobytes() + rows.astype("<u8").tobytes()
    subprocess.run([replay, tmp_path, "1", "1", str(1 << 40)], input=data, check=True)
    order = read_result(tmp_path / "result").order
    assert order is not None
    assert order.nodes is None
    assert "irregular" in (order.reason or "")


def test_sets_caps_and_missing_calls(tmp_path: Path, kit: Path, replay: Path) -> None:
    program = build(tmp_path, "switch", "-O2")
    whole = run_tool(Rerun([str(program)], entry_of(program), 2, 1 << 40), raw=True)
    record(kit, replay, whole)
    played = run_pin(Rerun([str(program)], entry_of(program), 2, 1 << 40))
    executed = [r for r in whole.references if r.stream is not None]
    order = [r for r in played.references if r.stream is not None]
    assert sorted(order, key=lambda r: (r.pc, r.ordinal)) == sorted(executed, key=lambda r: (r.pc, r.ordinal))
    part = run_pin(Rerun([str(program)], entry_of(program), 2, 100))
    assert (part.truncated, part.accesses) == (True, 100)
    assert sum(r.stream.count for r in part.references if r.stream) == 100
    record(kit, replay, whole, calls=1, outcome=0)
    with pytest.raises(ProgramError, match=r"no call 2 under Pin: hot was entered once; .* exit status 0"):
        run_pin(Rerun([str(program)], entry_of(program), 2, 1 << 40))


@pytest.mark.parametrize(
    ("name", "bytes_left", "why"),
    [
        ("blocks", 5, "the tracing tool's blocks are damaged: they end within a block; free some space"),
        ("blocks", None, "left no blocks: No such file or directory; free some space"),
        ("maps", 60, "the tracing tool's maps are damaged: they end within a line; free some space"),
        ("maps", None, "left no maps: No such file or directory; free some space"),
    ],
)
def test_files_that_did_not_fit_on_the_disk(
    tmp_path: Path, kit: Path, replay: Path, name: str, bytes_left: int | None, why: str
) -> None:
    program = build(tmp_path, "recursion", "-O2")
    record(kit, replay, run_tool(Rerun([str(program)], entry_of(program), 2, 1 << 40), raw=True))
    data = (kit / name).read_bytes()
    (kit / name).write_bytes(data[:bytes_left])
    if bytes_left is None:
        left = "maps" if name == "blocks" else "blocks"
        (kit / "pin").write_text((kit / "pin").read_text().replace("cp maps blocks", f"cp {left}"))
    with pytest.raises(TraceError, match=why):
        run_pin(Rerun([str(program)], entry_of(program), 2, 1 << 40))


def test_a_result_that_does_not_fit_is_removed(tmp_path: Path, replay: Path, small_disk: Path) -> None:
    accesses = np.column_stack([np.arange(9000), *np.zeros((2, 9000)), np.full(9000, 8), np.arange(9000)]).astype("<u8")
    data = np.zeros(20, dtype="<u8").tobytes() + accesses.tobytes()
    (small_disk / "filler").write_bytes(bytes(700 << 10))
    assert subprocess.run([replay, small_disk, "1", "1", "100000"], input=data).returncode == 1
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
    (small_disk / "filler").unlink()
    subprocess.run([replay, tmp_path, "1", "1", "100000"], input=data, check=True)
    assert (tmp_path / "result").stat().st_size > 400 << 10


def test_a_set_is_read_as_it_was_written(tmp_path: Path, replay: Path) -> None:
    generator = np.random.default_rng(3)
    addresses = 0x1000_0000 + 8 * generator.integers(0, 100_000, 60_000)
    rows = np.column_stack([np.full(60_000, 0x40_0000), np.zeros(60_000), np.zeros(60_000), np.full(60_000, 8), addresses])
    data = np.zeros(20, dtype="<u8").tobytes() + rows.astype("<u8").tobytes()
    subprocess.run([replay, tmp_path, "1", "1", str(1 << 40)], input=data, check=True)
    (seen,) = read_result(tmp_path / "result").references
    assert isinstance(seen.stream, AddressSet)
    assert seen.stream.bitmap is not None
    bits = np.unpackbits(np.frombuffer(seen.stream.bitmap, dtype=np.uint8), bitorder="little")
    assert (seen.stream.count, seen.stream.gcd) == (60_000, 8)
    assert (seen.stream.minimum + 8 * np.flatnonzero(bits)).tolist() == sorted(set(addresses.tolist()))


def test_a_damaged_result_is_noticed(tmp_path: Path, replay: Path) -> None:
    data = np.zeros(20, dtype="<u8").tobytes() + b"".join(
        np.array([pc, 0, 1, 8, 8 * pc], dtype="<u8").tobytes() for pc in range(50)
    )
    subprocess.run([replay, tmp_path, "1", "1", "1000"], input=data, check=True)
    whole = (tmp_path / "result").read_bytes()
    assert len(read_result(tmp_path / "result").references) > 1
    for text, why in (
        (whole[:-8], "too early"),
        (whole[:-3], "within a word"),
        (b"x" * 80, "does not begin"),
        (b"", "early"),
    ):
        (tmp_path / "result").write_bytes(text)
        with pytest.raises(TraceError, match=why):
            read_result(tmp_path / "result")


def test_the_tool_compiles_against_the_documented_interface(kit: Path) -> None:
    tool = tool_path(find_kit())
    symbols = subprocess.run(["nm", "-C", "-u", str(tool)], capture_output=True, text=True, check=True).stdout
    assert "PIN_StartProgram()" in symbols
    assert "PIN_AddForkFunction(FPOINT, " in symbols
    assert "nlr_" not in symbols  # the folding code is in it
    assert tool_path(find_kit()) == tool


def test_a_kit_that_does_not_work(tmp_path: Path, kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = build(tmp_path, "triangle", "-O2")
    with pytest.raises(TraceError, match="the tool left no result; pin ended with exit status 7"):
        run_pin(Rerun([str(program)], entry_of(program), 1, 100))
    (kit / "source/include/pin/pin.H").write_text("#error broken\n")
    with pytest.raises(MachineError, match=r"cannot build the Pin tool.*broken"):
        run_pin(Rerun([str(program)], entry_of(program), 1, 100))
    (kit / "pin").unlink()
    with pytest.raises(MachineError, match="is no Pin kit: it has no pin"):
        find_kit()
    monkeypatch.delenv("PIN_ROOT")
    with pytest.raises(MachineError, match="PIN_ROOT names no kit"):
        find_kit()
