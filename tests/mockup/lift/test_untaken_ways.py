"""Ways that no compared call took: what cannot be lifted on them ends them, and a mock-up that comes there ends too."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path

import pytest

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.lifted import ANOTHER_CALLEE, Lifted, LiftedLoop, OpaqueCall, WayEnd, everything
from layout_advise.mockup.ir.verify import verify_form
from layout_advise.mockup.lift.inline_calls import Untaken
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.survey import source_of
from layout_advise.tracer.code.instructions import decode
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.program.binary import ElfBinary
from tests.support import slower

SOURCE = Path(__file__).with_name("untaken_kernels.c")
RUN = """
import sys
from pathlib import Path
import numpy as np
from layout_advise.mockup.run.load import LoadedMockup, arguments
mockup = LoadedMockup(Path(sys.argv[1]))
data = np.array([float(word) for word in sys.argv[3:]])
at = 0x10000000
done = mockup({at: data}, arguments((at, int(sys.argv[2]), 0)))
print(np.frombuffer(done.registers.vector[0][:8], np.float64)[0])
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ElfBinary:
    target = tmp_path_factory.mktemp("untaken") / "libkernels.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(target), str(SOURCE)], check=True)
    return ElfBinary.open_module(target)


def untaken_of(region: Region, instruction: str) -> frozenset[int]:
    """The starts of the blocks that hold such an instruction: the ways on which it stands were not taken."""
    cfg = build_cfg(region, indirect_calls=True, loops=False)
    found = {b.start for b in cfg.blocks.values() if any(i.text.startswith(instruction) for i in b.insns)}
    assert found
    return frozenset(found)


def lifted(library: ElfBinary, name: str, instruction: str, *, all_stop: bool) -> Lifted:
    region = library.region(library.find(name), 0)
    ways = Untaken(untaken_of(region, instruction), all_stop)
    return lift(region, result="float", opaque=True, untaken=ways)


def through(library: ElfBinary, *callees: str) -> Lifted:
    """``through`` with the functions that it calls, of which ``callees`` were seen to be called."""
    known = {name: library.find(name).start for name in ("twice", "half")}
    region = library.region(library.find("through"), 0, callees=True, called=sorted(known.values()))
    (site,) = (at for at, insn in decode(region).items() if insn.flow == "call-indirect")
    return lift(region, result="float", opaque=True, untaken=Untaken(called={site: [known[name] for name in callees]}))


def calls(made: Lifted) -> list[OpaqueCall]:
    return [item for item in everything(made.body) if isinstance(item, OpaqueCall)]


def test_a_call_through_a_pointer_is_what_it_was_seen_to_call(library: ElfBinary, tmp_path: Path) -> None:
    assert calls(through(library))
    twice, half = (struct.unpack("<d", struct.pack("<q", library.find(name).start))[0] for name in ("twice", "half"))
    for callees in (("twice",), ("twice", "half")):
        made = through(library, *callees)
        verify_form(made, "the lifter")
        assert not calls(made)
        assert any(isinstance(item, WayEnd) and item.reason == ANOTHER_CALLEE for item in everything(made.body))
        alone = run(made, tmp_path, 3, twice, 5, twice, words=2)
        assert float(alone.stdout) == 16, alone.stderr
        both = run(made, tmp_path, 3, twice, 5, half, words=2)
        assert both.returncode == (-4 if len(callees) == 1 else 0)
        assert len(callees) == 1 or float(both.stdout) == 8.5


def run(made: Lifted, folder: Path, *numbers: float, words: int = 1) -> subprocess.CompletedProcess[str]:
    built = build(source_of(made), folder / f"{made.symbol}.so", "gcc", ("-O1",))
    assert built.path is not None, built.log
    command = [sys.executable, "-c", RUN, str(built.path), str(len(numbers) // words), *map(repr, numbers)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("name", "instruction", "all_stop"),
    [*slower(("rare", "call", False)), ("rare", "call", True), ("odd", "cpuid", False), *slower(("odd", "cpuid", True))],
)
def test_a_way_that_was_not_taken_ends(
    library: ElfBinary, tmp_path: Path, name: str, instruction: str, all_stop: bool
) -> None:
    made = lifted(library, name, instruction, all_stop=all_stop)
    verify_form(made, "the lifter")
    assert any(isinstance(item, WayEnd) and item.reason for item in everything(made.body))
    (loop,) = (item for item in everything(made.body) if isinstance(item, LiftedLoop))
    assert loop.trip is not None  # counted by its own test, not by the way that ends
    whole = run(made, tmp_path, 1, 2, 3.5)
    assert float(whole.stdout) == 6.5, whole.stderr
    ended = run(made, tmp_path, 1, 2e9, 3)
    assert ended.returncode == -4  # SIGILL: nothing takes it for a result


def test_it_stops_the_lifter_where_it_was_taken(library: ElfBinary) -> None:
    region = library.region(library.find("odd"), 0)
    with pytest.raises(NotLiftedError, match="cpuid"):
        lift(region, result="float", opaque=True)
