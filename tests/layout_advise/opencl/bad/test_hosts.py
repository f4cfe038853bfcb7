"""Host programs with kernels that cannot be studied: each is told in one line, and the others are studied."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.opencl.host.launch import Launch
from layout_advise.opencl.intercept import run
from layout_advise.opencl.intercept.chosen import chosen
from layout_advise.opencl.intercept.recorded import RecordedLaunches, read_recorded
from layout_advise.opencl.intercept.run import run_recorded
from tests.support import slower
from tests.support.opencl.pretend import built


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not Path("/usr/include/CL/cl.h").exists():
        pytest.skip("needs opencl-c-headers")
    return str(built(tmp_path_factory.mktemp("pretend")))


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("binary", "its program was made of a binary, there is no source to read"),
        *slower(("il", "its program was made of a binary, there is no source to read")),
        ("linked", "its program was linked of several, there is no one source to read"),
        ("part", "it is given a part of a buffer (a sub-buffer)"),
        ("image", "it is given an image, a pipe or a sampler"),
        *slower(("image2d", "it is given an image, a pipe or a sampler")),
        *slower(("sampler", "it is given an image, a pipe or a sampler")),
        *slower(("pipe", "it is given an image, a pipe or a sampler")),
        ("shared", "it is given shared virtual memory"),
        ("null", "the arguments of kernel odd do not fit: q is given no buffer"),
    ],
)
def test_a_kernel_is_left_alone_and_the_other_one_studied(
    host: str, how: str, why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["opencl", "--graph", "--", host, how]) == 0
    said = capfd.readouterr()
    assert "even (kernel.cl:3), 8 work items" in said.out
    assert "odd (" not in said.out
    assert f"odd is left alone: {why}." in " ".join(said.out.split())
    assert said.err == ""


def test_a_program_linked_of_one_has_its_source_and_options(host: str, tmp_path: Path) -> None:
    found = read_recorded(run_recorded([host, "one"], tmp_path), "host")
    assert not found.notes
    assert {one.kernel: one.options for one in found.launches} == {"odd": "-DK=3", "even": ""}
    assert len({one.source for one in found.launches}) == 1


def test_kernels_without_structures_do_not_take_the_place_of_others() -> None:
    source = "typedef struct { float a, b; } S; __kernel void plain(__global float *p) {} __kernel void bare(int n) {} "
    source += "__kernel void one(__global S *p) {} __kernel void two(__global S *p) {} __kernel void three(__global S *p) {}"
    shares = {"plain": 0.5, "three": 0.1, "one": 0.2, "bare": 0.1, "two": 0.1}
    found = RecordedLaunches(tuple(Launch(source, "", name, (), (), (8,)) for name in shares), shares, ("first",))

    def kept(most: int, others: bool = False) -> list[str]:
        return [launch.kernel for launch in chosen(found, most, others).launches]

    assert kept(2) == ["one", "three"]
    assert kept(2, True) == ["plain", "one", "three", "bare"]
    less = "two has less of the time and was not looked at (--most-kernels)."
    assert chosen(found, 2).notes == ("first", "plain, bare have no structure in their buffers.", less)
    alone = replace(found, launches=found.launches[:1])
    assert chosen(alone, 2).launches == alone.launches


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("build", 1, "its kernels do not build: kernel.cl:3:1: error: use of undeclared identifier 'oops'\n"),
        ("platform", 4, "it finds no OpenCL platform; apt-get install pocl-opencl-icd, or the driver of your GPU\n"),
    ],
)
def test_why_a_program_failed(host: str, how: str, code: int, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["opencl", "--graph", "--", host, how]) == code
    assert capfd.readouterr().err == f"layout-advise: {host} failed: {said}"


def test_a_loader_that_is_missing_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.c").write_text("int main(void) { return 0; }")
    library = tmp_path / "libOpenCL-none.so.1"
    subprocess.run(["gcc", "-shared", f"-Wl,-soname,{library.name}", "-o", str(library), "-x", "c", "/dev/null"], check=True)
    words = ["gcc", "-o", "host", "none.c", "-Wl,--no-as-needed", str(library)]
    subprocess.run(words, cwd=tmp_path, check=True)
    library.unlink()
    assert main(["opencl", "--graph", "--", str(tmp_path / "host")]) == 4
    error = capfd.readouterr().err.splitlines()[-1]  # behind what the loader of programs says itself
    assert error.endswith("failed: libOpenCL-none.so.1 is missing; apt-get install ocl-icd-libopencl1")
    assert run.missing_library("/bin/true") == ""
