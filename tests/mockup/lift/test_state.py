"""Random states made of what lifted code says of its arguments."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.survey import lift_function, source_of
from layout_advise.tracer.program.binary import ElfBinary
from tests.support.lifting.callees import arguments_of
from tests.support.lifting.memories import BYTES, Kind, Memories, State
from tests.support.lifting.runner import Job, build_runner, constants_of, load_base, marks_of, results_of, run_jobs

SOURCE = Path(__file__).with_name("state_kernels.c")
KERNELS = re.findall(r"^(?:double|float) (\w+)\(", SOURCE.read_text(), re.MULTILINE)
RDI, RSI, RDX = 7, 6, 2
SEEDS = 16


@pytest.fixture(scope="module", params=["-O1", "-O2"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("state") / "libstate.so"
    subprocess.run(["gcc", request.param, "-fno-inline", "-shared", "-fPIC", "-o", str(path), str(SOURCE)], check=True)
    return path


def state(library: Path, name: str, *, by_reference: bool = False) -> State:
    binary = ElfBinary.open_module(library)
    _, lifted = lift_function(binary, binary.find(name))
    return arguments_of(lifted, (library,), 0, by_reference=by_reference)


def fields(found: State, kind: Kind | None) -> dict[int, str]:
    assert kind is not None
    assert kind.what == "pointer"
    memory = found.memories[kind.memory]
    return {(f.offset - kind.shift) % memory.stride if memory.stride else f.offset: f.kind.what for f in memory.fields}


def test_a_list_leads_to_itself(library: Path) -> None:
    found = state(library, "chain")
    start = found.registers[RDI]
    assert fields(found, start) == {0: "double", 8: "integer", 16: "pointer"}
    following = next(f.kind for f in found.memories[start.memory].fields if f.kind.what == "pointer")
    assert (following.memory, following.shift) == (start.memory, start.shift)


def test_arrays_behind_fields(library: Path) -> None:
    found = state(library, "indexed")
    assert fields(found, found.registers[RDI]) == {8: "integer", 16: "pointer", 24: "pointer"}
    kinds = {f.offset: f.kind for f in found.memories[found.registers[RDI].memory].fields}
    assert fields(found, kinds[16]) == {0: "single"}
    assert fields(found, kinds[24]) == {0: "integer"}


def test_an_array_of_structures_repeats(library: Path) -> None:
    found = state(library, "records")
    assert fields(found, found.registers[RDI]) == {0: "double", 8: "integer"}
    assert found.memories[found.registers[RDI].memory].stride == 24
    assert found.registers[RSI].what == "integer"


def test_what_is_called_is_code(library: Path) -> None:
    found = state(library, "applied")
    assert found.registers[RDI].what == "code"
    assert fields(found, found.registers[RSI]) == {0: "double"}
    assert fields(found, found.registers[RDX]) == {0: "integer"}


def test_callees_tell_what_arguments_on_the_stack_are(library: Path) -> None:
    found = state(library, "outer")
    assert [fields(found, found.slots.get(k)) for k in range(3)] == [{0: "double"}, {0: "integer"}, {0: "integer"}]


def test_numbers_that_an_argument_is_compared_with(library: Path) -> None:
    assert set(state(library, "coded").registers[RDI].choices) >= {101, 202}


def test_lifted_functions_reach_their_loops(library: Path, tmp_path: Path) -> None:
    runner = build_runner(tmp_path)
    base = load_base(runner, library)
    binary = ElfBinary.open_module(library)
    jobs = []
    for name in KERNELS:
        function = binary.find(name)
        region, lifted = lift_function(binary, function, base)
        built = build(source_of(lifted), tmp_path / f"{name}.so", "gcc", ("-O1",))
        assert built.path is not None, built.log
        takes = arguments_of(lifted, (library,), base)
        facts = (results_of(lifted), built.path, marks_of(region), constants_of(region))
        jobs.append(Job(name, function.start + base, *facts, takes))
    for name, trials in run_jobs(runner, library, jobs, tmp_path, seeds=SEEDS).items():
        assert len(trials) == SEEDS
        assert [t for t in trials if t.verdict == "differs"] == [], name
        assert sum(t.verdict == "agrees" and (t.reached > 0 or name == "outer") for t in trials) >= SEEDS // 3, name


def test_enough_is_enough(library: Path, tmp_path: Path) -> None:
    runner = build_runner(tmp_path)
    base = load_base(runner, library)
    binary = ElfBinary.open_module(library)
    region, lifted = lift_function(binary, binary.find("records"), base)
    built = build(source_of(lifted), tmp_path / "records.so", "gcc", ("-O1",))
    assert built.path is not None
    facts = (results_of(lifted), built.path, marks_of(region), constants_of(region), arguments_of(lifted, (library,), base))
    job = Job("records", lifted.entry, *facts, enough=3)
    (trials,) = run_jobs(runner, library, [job], tmp_path, seeds=64).values()
    assert sum(t.verdict == "agrees" and t.reached > 0 for t in trials) == 3
    assert len(trials) < 64


def test_two_memories_that_become_one_share_their_fields() -> None:
    memories = Memories()
    one, other, third = memories.new(), memories.new(), memories.new()
    memories.same((one, 8), (other, 0))
    assert memories.find((other, 4)) == memories.find((one, 12))
    memories.same((one, 0), (one, 24))
    assert memories.find((third, 0)) != memories.find((one, 0))
    assert memories.stride[memories.find((one, 0))[0]] == 24


def test_arguments_by_reference(library: Path) -> None:
    found = state(library, "applied", by_reference=True)
    assert {found.registers[n].what for n in (RSI, RDX)} == {"pointer"}
    assert len(found.packed()) == BYTES
