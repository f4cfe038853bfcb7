"""Functions that call others: lifted with the calls kept, and run against the original on random state."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.errors import NotLiftedError
from layout_advise.mockup.emit.c_text import floating
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.survey import lift_function, source_of
from layout_advise.tracer.program.binary import ElfBinary
from tests.support.lifting.runner import Job, Trial, build_runner, constants_of, load_base, marks_of, results_of, run_jobs

SOURCE = Path(__file__).with_name("opaque_kernels.c")
KERNELS = re.findall(r"^double (\w+)\([^)]*\bn\)", SOURCE.read_text(), re.MULTILINE)
BUILDS = {
    "gcc-O1": ("gcc", "-O1"),
    "gcc-O2-protected": ("gcc", "-O2", "-fstack-protector-strong", "-fno-inline"),
    "gcc-O3-haswell": ("gcc", "-O3", "-march=haswell", "-fno-plt"),
    "clang-O2": ("clang", "-O2"),
}
SEEDS = 32
FAST = "gcc-O2-protected"


class Ran:
    """A library of the kernels, every kernel lifted, and what the runner said."""

    def __init__(self, folder: Path, compiler: str, *flags: str) -> None:
        self.library = folder / "libkernels.so"
        command = [compiler, *flags, "-ftls-model=initial-exec", "-shared", "-fPIC", "-o", str(self.library), str(SOURCE)]
        subprocess.run([*command, "-lm"], check=True)
        self.binary = ElfBinary.open_module(self.library)
        self.runner = build_runner(folder)
        self.base = load_base(self.runner, self.library)
        self.folder = folder

    def job(self, name: str, spoil: tuple[str, str] | None = None) -> Job:
        function = self.binary.find(name)
        region, lifted = lift_function(self.binary, function, self.base)
        source = source_of(lifted)
        if spoil is not None:
            assert re.search(spoil[0], source)
            source = re.sub(*spoil, source, count=1)
        built = build(source, self.folder / f"{name}{'-spoilt' if spoil else ''}.so", "gcc", ("-O1",))
        assert built.path is not None, built.log
        address = function.start + self.base
        return Job(name, address, results_of(lifted), built.path, marks_of(region), constants_of(region))

    def run(self, *jobs: Job) -> dict[str, tuple[Trial, ...]]:
        return run_jobs(self.runner, self.library, jobs, self.folder, seeds=SEEDS)


@pytest.fixture(scope="module", params=[pytest.param(b, marks=() if b == FAST else pytest.mark.slow) for b in BUILDS])
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    compiler, *flags = BUILDS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    return Ran(tmp_path_factory.mktemp(request.param), compiler, *flags)


def test_lifted_functions_call_what_the_machine_code_calls(ran: Ran) -> None:
    found = ran.run(*(ran.job(name) for name in KERNELS))
    assert set(found) == set(KERNELS)
    for name, trials in found.items():
        assert [t for t in trials if t.verdict == "differs"] == [], name
        assert sum(t.verdict == "agrees" for t in trials) >= 4, name


def test_the_runner_notices_what_is_wrong(ran: Ran) -> None:
    result = ran.job("each", (r"(context->out\.vector\[0\] \+ 0\) = \w+)", r"\1 + 1"))
    memory = ran.job("tail", (r"(\*\(la_\w+ \*\)\((?!.*context).*\) = )", r"\1 1 + "))
    for trials in ran.run(result, memory).values():
        assert any(t.verdict == "differs" for t in trials)


def test_doctor_surveys_a_library(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--lift", str(ran.library), "--json", "-q"]) == 0
    found = json.loads(capsys.readouterr().out)
    lifted = {o["function"] for o in found["outcomes"] if o["lifted"]}
    assert set(KERNELS) <= lifted
    assert found["lifted"] == len(lifted)
    assert next(o for o in found["outcomes"] if o["function"] == "each")["float_loop"]
    assert not next(o for o in found["outcomes"] if o["function"] == "plain")["float_loop"]


def test_the_largest_single_is_written_so_that_it_reads_back() -> None:
    assert float(floating(0x7F7FFFFF, "f32").rstrip("f")) == 3.4028235e38


def test_calls_stop_the_lifter_unless_they_are_allowed(ran: Ran) -> None:
    with pytest.raises(NotLiftedError, match=r"calls|indirect call"):
        lift(ran.binary.region("through_pointer", ran.base))
