"""What the tool cannot lay out: one line each, the right exit code, or a note with nothing claimed."""

from __future__ import annotations

import builtins
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from layout_advise.cli import main
from layout_advise.errors import MachineError, MockupError, UsageError
from layout_advise.opencl.candidates import Choice, even_choices, finer_choices, first_choices, same_tile, tiled_choices
from layout_advise.opencl.groups import free_sizes
from layout_advise.opencl.host import platforms
from layout_advise.opencl.host.launch import BufferArgument, Bytes, Launch, ValueArgument
from layout_advise.opencl.host.platforms import devices, opencl
from layout_advise.opencl.host.session import DeviceSession, complaint
from layout_advise.opencl.host.variants import KernelVariant, original, variant
from layout_advise.opencl.intercept.recorded import read_recorded
from layout_advise.opencl.measure.jobs import KernelJob, name_of
from layout_advise.opencl.measure.processes import in_fresh_process
from layout_advise.opencl.measure.verify import compared
from layout_advise.opencl.objects import launch_of
from layout_advise.opencl.records import records_of
from layout_advise.opencl.rewrite.rewrite import rewritten
from layout_advise.opencl.source.kernels import KernelProgram
from layout_advise.opencl.source.read import read_program
from tests.support.opencl.kernels import FORCES, device, forces_launch, left_by, random_bytes

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


ATOMIC = """typedef struct { float a; int b; int c; float d; uint e; } R;
__kernel void k(__global R *p, int n)
{
    const size_t i = get_global_id(0);
    __global R *own = &p[i];
    p[i].a += 2 * p[i].d;
    atomic_inc(&p[i % 7].b);
    atomic_add((volatile __global int *)&p[i % 5].c, n);
    atomic_inc(&own->e);
}
"""
ATOMIC_TYPES = """typedef struct { float a; atomic_int b; int c; float d; atomic_uint e; } R;
__kernel void k(__global R *p, int n)
{
    const size_t i = get_global_id(0);
    p[i].a += 2 * p[i].d;
    atomic_fetch_add_explicit(&p[i % 7].b, 1, memory_order_relaxed, memory_scope_device);
    atomic_fetch_add((volatile __global atomic_int *)&p[i % 5].c, n);
    atomic_store(&p[i].e, 3u);
}
"""


def all_choices(launch: Launch) -> tuple[KernelProgram, list[Choice]]:
    """Layouts of all kinds for the one record of a launch."""
    program = read_program(launch.source, launch.options)
    (found,) = records_of(program, [launch])
    assert found.note is None
    assert found.graph.together == {"b", "c", "e"}
    first = first_choices([found.graph], 6)
    further = [*tiled_choices(first, [found.graph], first, same_tile(16)), *even_choices([found.graph], first)]
    return program, [*first, *further, *finer_choices(first[0], [found.graph], first)]


@pytest.mark.parametrize(("source", "options"), [(ATOMIC, ""), (ATOMIC_TYPES, "-cl-std=CL2.0")])
def test_atomic_members_are_laid_out_together(source: str, options: str) -> None:
    program, choices = all_choices(_atomic_launch(source, options))
    for choice in choices:
        home = next(group for group in choice[0].partition if 1 in group)
        assert {1, 2, 4} <= set(home)
        assert "atomic" in rewritten(program, choice).text  # and it parses


def test_atomic_members_count_the_same_in_each_layout() -> None:
    launch = _atomic_launch(ATOMIC, "")
    program, choices = all_choices(launch)
    session, same = DeviceSession(device()), original([launch])
    truth = left_by(session, same, launch)
    for number, choice in enumerate(choices):
        new = variant(f"c{number}", program, [launch], choice)
        assert compared(new, [_left(session, new)], same, [truth]).problem == ""


def _atomic_launch(source: str, options: str) -> Launch:
    given = (BufferArgument(0), ValueArgument(np.int32(3).tobytes()))
    return Launch(source, options, "k", given, (random_bytes(20 * 64),), (64,), (16,))


def _left(session: DeviceSession, one: KernelVariant) -> tuple[Bytes, ...]:
    """The buffers of a variant behind its launch, in its own layout."""
    (launch,) = one.launches
    buffers = [session.buffer(data) for data in launch.buffers]
    kernel = session.prepared(session.build(one.source, launch.options), "k", launch.arguments, buffers)
    session.launch(kernel, launch.global_size, launch.local_size)
    return tuple(session.read(buffer, len(data)) for buffer, data in zip(buffers, launch.buffers, strict=True))


def test_a_member_without_a_size_keeps_its_record(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = "typedef struct { int a; struct {} none; int b; } E; __kernel void k(__global E *p) { p[0].a = p[0].b; }"
    code, out, _ = printed(source, SPEC, tmp_path, capfd, "--json", "-")
    assert code == 0
    assert json.loads(out)["programs"][0]["records"][0]["note"] == "its member none has no size"


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


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("part", "one is a part of a buffer"),
        ("none", "one is no buffer, but None"),
        ("sampler", "one is an image, a pipe or a sampler"),
        ("image", "one is an image, a pipe or a sampler"),
    ],
)
def test_pyopencl_objects_that_are_left_alone(what: str, why: str) -> None:
    cl = opencl()
    context = cl.Context([device()])
    queue = cl.CommandQueue(context)
    whole = cl.Buffer(context, cl.mem_flags.READ_WRITE, 8192)
    kernel = cl.Kernel(cl.Program(context, "__kernel void k(__global int *p) { p[0] = W; }").build(options=["-DW=2"]), "k")
    made: dict[str, Callable[[], object]] = {
        "part": lambda: whole.get_sub_region(0, 4096),
        "none": lambda: None,
        "sampler": lambda: cl.Sampler(context, False, cl.addressing_mode.NONE, cl.filter_mode.NEAREST),
        "image": lambda: cl.image_from_array(context, np.zeros((4, 4, 4), np.float32), 4),
    }
    given = made[what]()
    with pytest.raises(UsageError, match=why):
        launch_of(queue, kernel, (1,), None, (given,), "", 1)
    launch = launch_of(queue, kernel, (1,), None, (whole,), "", 1)
    assert "-DW=2" in launch.options  # those that it was built with
    assert read_program(launch.source, launch.options).kernel("k") is not None


def test_arrays_of_pyopencl_are_their_buffers() -> None:
    cl = opencl()
    array = pytest.importorskip("pyopencl.array")
    context = cl.Context([device()])
    queue = cl.CommandQueue(context)
    kernel = cl.Kernel(cl.Program(context, "__kernel void k(__global int *p) { p[0] = 1; }").build(), "k")
    whole = array.to_device(queue, np.arange(8, dtype=np.int32))
    launch = launch_of(queue, kernel, (1,), None, (whole,), "", 1)
    assert bytes(launch.buffers[0]) == np.arange(8, dtype=np.int32).tobytes()
    with pytest.raises(UsageError, match="one is a part of a buffer"):
        launch_of(queue, kernel, (1,), None, (whole[2:],), "", 1)


def test_what_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    unkept: Callable[[], object] = vars(opencl)["__wrapped__"]

    def without(error: ImportError) -> str:
        def imported(name: str, *rest: object) -> object:
            if name == "pyopencl":
                raise error
            return real(name, *rest)

        real: Any = builtins.__import__
        with monkeypatch.context() as patch:
            patch.delitem(sys.modules, "pyopencl", raising=False)
            patch.setattr(builtins, "__import__", imported)
            with pytest.raises(MachineError) as told:
                unkept()
        return told.value.line()

    assert "the Python package pyopencl is missing" in without(ModuleNotFoundError("no"))
    assert "apt-get install ocl-icd-libopencl1" in without(ImportError("libOpenCL.so.1: cannot open shared object file"))
    monkeypatch.setattr(platforms, "opencl", lambda: SimpleNamespace(get_platforms=list, Error=ValueError))
    with pytest.raises(UsageError, match="no OpenCL device oclgrind: there are: none; pip install oclgrind"):
        devices("oclgrind")
    with pytest.raises(MachineError, match="no device for it; apt-get install pocl-opencl-icd"):
        devices()


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("note\nk.cl:2:1: error: no such thing\nk.cl:3:1: error: more", "k.cl:2:1: error: no such thing"),
        ("clBuildProgram failed: X\n\nBuild on <d>:\n\nInvalid build option: -x\n(options: -x)", "Invalid build option: -x"),
        ("Error(s) while linking:\nCannot find symbol f\nDevice d failed to build the program", "Cannot find symbol f"),
        ("\n", "no log"),
    ],
)
def test_the_compilers_own_words(log: str, said: str) -> None:
    assert complaint(log) == said


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
