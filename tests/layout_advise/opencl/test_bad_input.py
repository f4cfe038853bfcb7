"""What the tool cannot lay out: one line each, the right exit code, or a note with nothing claimed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from layout_advise.cli import main
from layout_advise.errors import MockupError, UsageError
from layout_advise.opencl.groups import free_sizes
from layout_advise.opencl.host.launch import Launch
from layout_advise.opencl.host.platforms import devices, opencl
from layout_advise.opencl.host.variants import original
from layout_advise.opencl.intercept.recorded import read_recorded
from layout_advise.opencl.measure.jobs import KernelJob, name_of
from layout_advise.opencl.measure.processes import in_fresh_process
from layout_advise.opencl.objects import launch_of
from layout_advise.opencl.source.read import read_program
from tests.support.opencl.kernels import FORCES, device, forces_launch

RECORD = "typedef struct { float a; int b; int c; } S;\n"
SPEC = 'global = 16\nlocal = 8\n[[args]]\nbuffer = "p"\ncount = 16\n'


def printed(kernel: str, spec: str, folder: Path, capfd: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code and what is said of a kernel by its graph alone."""
    (folder / "k.cl").write_text(RECORD + kernel)
    (folder / "k.toml").write_text(spec)
    code = main(["opencl", "--kernel", str(folder / "k.cl"), "--spec", str(folder / "k.toml"), "--graph", *words])
    said = capfd.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(
    ("parameter", "options"),
    [("read_only image2d_t im", ""), ("sampler_t way", ""), ("read_only pipe int from", "-cl-std=CL2.0")],
)
def test_images_samplers_and_pipes(parameter: str, options: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kernel = f"__kernel void k(__global S *p, {parameter}) {{ p[get_global_id(0)].a = 1; }}"
    spec = f'options = "{options}"\n{SPEC}[[args]]\nvalue = 1\n'
    code, _, error = printed(kernel, spec, tmp_path, capfd)
    assert code == 2
    assert error.count("\n") == 1
    assert f"parameter {parameter.split()[-1]}" in error


def test_atomic_members_stay_in_one_cluster(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = "size_t i = get_global_id(0); atomic_inc(&p[0].b); atomic_inc(&p[i].c); p[i].a = 1;"
    kernel = f"__kernel void k(__global S *p) {{ {body} }}"
    code, out, _ = printed(kernel, SPEC, tmp_path, capfd, "--json", "-")
    assert code == 0
    (record,) = json.loads(out)["programs"][0]["records"]
    assert record["atomic"] == ["b", "c"]
    assert record["note"] is None


def test_groups_of_a_kernel_with_a_barrier_are_kept() -> None:
    text = FORCES.replace("REAL ax = 0;", "REAL ax = 0; barrier(CLK_GLOBAL_MEM_FENCE);")
    launch = forces_launch(256)
    with_barrier = Launch(text, "", "forces", launch.arguments, launch.buffers, launch.global_size, launch.local_size)
    assert free_sizes(read_program(FORCES), launch, 4096)
    assert free_sizes(read_program(text), with_barrier, 4096) == ()


def test_a_program_of_a_binary_is_told(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "launch").write_text("kernel k\nglobal 16\nvalue 00000000\n")
    (tmp_path / "counts").write_text("k 1 1 0.5\n")
    found = read_recorded(tmp_path, "host")
    assert found.launches == ()
    assert found.notes == ("k is left alone: its program was made of a binary, there is no source to read.",)


def test_pyopencl_objects_of_a_binary_are_refused() -> None:
    cl = opencl()
    context = cl.Context([device()])
    text = "__kernel void k(__global int *p) { p[0] = 1; }"
    made = cl.Program(context, text).build(cache_dir=False)
    binary = cl.Program(context, [device()], made.get_info(cl.program_info.BINARIES)).build()
    with pytest.raises(UsageError, match="made of a binary"):
        launch_of(cl.CommandQueue(context), cl.Kernel(binary, "k"), (1,), None, (), "", 1)


def test_accesses_beyond_buffers_are_told_by_the_simulator() -> None:
    device()
    try:
        simulator = devices("oclgrind")[0]
    except UsageError:
        pytest.skip("needs Oclgrind")
    fine = forces_launch(64)
    beyond = Launch(
        FORCES.replace("b[i].vy", "b[i + 1].vy"),
        "",
        "forces",
        fine.arguments,
        fine.buffers,
        fine.global_size,
        fine.local_size,
    )
    assert in_fresh_process(KernelJob(name_of(simulator), (original([fine]),), 0.01))[0].problem == ""
    with pytest.raises(MockupError, match=r"it reads 4 bytes beyond its buffers in line \d+: b\[i \+ 1\]\.vy -= ax;"):
        in_fresh_process(KernelJob(name_of(simulator), (original([beyond]),), 0.01))
