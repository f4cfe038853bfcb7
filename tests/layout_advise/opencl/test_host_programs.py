"""The host programs of ``examples/opencl``, unmodified: they compute the same, and their kernels are studied."""

from __future__ import annotations

import ctypes.util
import subprocess
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.opencl.intercept.recorded import RecordedLaunches, read_recorded
from layout_advise.opencl.intercept.run import run_recorded
from layout_advise.reports.model.kernels import decode_opencl
from tests.support.opencl.kernels import device
from tests.support.paths import ROOT

EXAMPLES = ROOT / "examples" / "opencl"
PROGRAMS = {
    # name: elements (or rows, boxes), steps, the kernels with their launches between two accesses of the host
    "nbody": ("256", "6", {"advance": 6}),
    "bitonic": ("256", "2", {"stage": 36}),
    "boxes": ("4", "5", {"forces": 5}),
    "diffusion": ("32", "4", {"gradients": 4, "diffuse": 4}),
    "heat": ("32", "3", {"advance": 3, "settle": 3}),
    "kmeans": ("256", "4", {"assign": 1}),
    "options": ("256", "3", {"price": 1}),
    "sampo": ("256", "5", {"move": 5, "grow": 5}),
}
QUICK = ("nbody", "diffusion", "kmeans")


def built(name: str, folder: Path) -> Path:
    device()
    if not Path("/usr/include/CL/cl.h").exists() or ctypes.util.find_library("OpenCL") is None:
        pytest.skip("needs ocl-icd-opencl-dev")
    words = ["gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(folder / name)]
    subprocess.run([*words, str(EXAMPLES / f"{name}.c"), "-lOpenCL"], check=True)
    return folder / name


def command(name: str, folder: Path) -> list[str]:
    count, steps, _ = PROGRAMS[name]
    return [str(built(name, folder)), count, steps, str(EXAMPLES / f"{name}.cl")]


def recorded(name: str, folder: Path) -> tuple[RecordedLaunches, bytes, bytes]:
    """The launches, what the program says while it is watched, and what it says else."""
    words = command(name, folder)
    plain = subprocess.run(words, capture_output=True, check=True).stdout
    with (folder / "output").open("wb") as output:
        record = run_recorded(words, folder, output)
    return read_recorded(record, name), (folder / "output").read_bytes(), plain


def test_every_kernel_has_a_host_program() -> None:
    assert {file.stem for file in EXAMPLES.glob("*.c")} == PROGRAMS.keys() == {file.stem for file in EXAMPLES.glob("*.cl")}


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS]
)
def test_it_is_watched_and_computes_the_same(name: str, tmp_path: Path) -> None:
    found, said, plain = recorded(name, tmp_path)
    assert said == plain != b""
    assert {one.kernel: one.calls for one in found.launches} == PROGRAMS[name][2]
    assert not found.notes
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert all(one.source == (EXAMPLES / f"{name}.cl").read_text() for one in found.launches)


def test_two_kernels_of_a_program_share_a_record(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["opencl", "--graph", "--", *command("heat", tmp_path)]) == 0
    said = capfd.readouterr().out
    assert "advance (kernel.cl:6), 32×32 work items" in said
    assert "settle (kernel.cl:" in said
    assert "elements of 16 bytes, 4 of 4 members used" in said


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_advised(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "r.json"
    assert main(["opencl", "--processes", "2", "--json", str(data), "--", *command(name, tmp_path)]) == 0
    (program,) = decode_opencl(data.read_bytes()).programs
    assert {use.name for use in program.kernels} == PROGRAMS[name][2].keys()
    (found, *_) = program.devices
    # other bytes are none of a layout's: where a device rounds differently for another layout it is told and not advised
    timed = [one for one in found.layouts if one.speedup is not None]
    assert timed
    assert {one.evidence for one in timed} == {"verified"}
    assert all(one.marshalling is not None for one in timed)
    assert found.verdict.text in capfd.readouterr().out
