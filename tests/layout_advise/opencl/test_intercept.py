"""An unmodified host program, recorded: sources, arguments, buffers, counts; and what is left alone."""

from __future__ import annotations

import ctypes.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from layout_advise.cli import main
from layout_advise.errors import ProgramError, UsageError
from layout_advise.opencl.host.launch import BufferArgument, LocalArgument, ValueArgument
from layout_advise.opencl.host.platforms import devices
from layout_advise.opencl.intercept.recorded import RecordedLaunches, read_recorded
from layout_advise.opencl.intercept.run import run_recorded
from tests.support.opencl.kernels import device
from tests.support.paths import ROOT

HOST = r"""
#include "host.h"

static const char program[] = "typedef struct { float a; int b; } S;"
"__kernel void one(__global S *p, __local int *t, float f, __global S *q)"
" { size_t i = get_global_id(0); t[0] = 1; p[i].a = f + K; q[i].b = p[i].b; }"
"__kernel void two(__global S *p, __global const float *part) { p[get_global_id(0)].a = part[0]; }";

int main(int argc, char **argv)
{
    FILE *file = fopen(argv[1], "w");
    fputs(program, file);
    fclose(file);
    struct host host = start(argv[1], "-DK=3");
    int data[64];
    for (int k = 0; k < 64; k++)
        data[k] = k;
    cl_mem p = buffer(host, data, sizeof data), q = buffer(host, data, sizeof data);
    cl_kernel one = kernel(host, "one"), two = kernel(host, "two");
    const float f = 2;
    clSetKernelArg(one, 0, sizeof p, &p);
    clSetKernelArg(one, 1, 16, NULL);
    clSetKernelArg(one, 2, sizeof f, &f);
    clSetKernelArg(one, 3, sizeof q, &q);
    for (int k = 0; k < 6; k++) {
        launch(host, one, 32, 8);
        if (k == 2)
            fetch(host, p, data, sizeof data);
    }
    cl_buffer_region region = {0, 64};
    cl_int code;
    cl_mem part = clCreateSubBuffer(q, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    clSetKernelArg(two, 0, sizeof p, &p);
    clSetKernelArg(two, 1, sizeof part, &part);
    launch(host, two, 32, 8);
    fetch(host, p, data, sizeof data);
    float first;
    memcpy(&first, data, sizeof first);
    printf("%g\n", first);
    return argc > 2;
}
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    device()
    if not Path("/usr/include/CL/cl.h").exists() or ctypes.util.find_library("OpenCL") is None:
        pytest.skip("needs ocl-icd-opencl-dev")
    folder = tmp_path_factory.mktemp("host")
    (folder / "host.c").write_text(HOST)
    command = ["gcc", "-O1", f"-I{ROOT / 'examples' / 'opencl'}", "-o", "host", "host.c", "-lOpenCL"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "host"


def recorded(host: Path, folder: Path, *words: str) -> tuple[RecordedLaunches, bytes]:
    with (folder / "output").open("wb") as output:
        record = run_recorded([str(host), str(folder / "k.cl"), *words], folder, output)
    return read_recorded(record, "host"), (folder / "output").read_bytes()


def test_launches_are_recorded(host: Path, tmp_path: Path) -> None:
    found, output = recorded(host, tmp_path)
    assert output == b"0\n"  # as without the recorder
    (one,) = found.launches
    assert (one.kernel, one.options, one.global_size, one.local_size, one.offset) == ("one", "-DK=3", (32,), (8,), None)
    assert one.source == (tmp_path / "k.cl").read_text()
    assert one.calls == 3  # of six launches the host looked at the data behind the third
    assert one.arguments == (BufferArgument(0), LocalArgument(16), ValueArgument(np.float32(2).tobytes()), BufferArgument(1))
    assert [bytes(data) for data in one.buffers] == [np.arange(64, dtype=np.int32).tobytes()] * 2
    assert found.notes == ("two is left alone: it is given a part of a buffer (a sub-buffer).",)
    assert sum(found.shares.values()) == pytest.approx(1.0)


PYTHON = """import sys
import numpy as np
import pyopencl as cl
(device,) = [d for p in cl.get_platforms() for d in p.get_devices() if d.name == sys.argv[1]][:1]
context = cl.Context([device])
queue = cl.CommandQueue(context)
source = "typedef struct { float a; int b; } S; __kernel void one(__global S *p, float f) { p[get_global_id(0)].a = f; }"
program = cl.Program(context, source).build()
buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=np.zeros(16, np.float32))
program.one(queue, (8,), None, buffer, np.float32(2))
queue.finish()
"""


def test_a_program_that_pyopencl_has_built_before_has_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device()
    try:  # for PoCL, which keeps what it built itself, pyopencl does not
        name = devices("oclgrind")[0].name
    except UsageError:
        pytest.skip("needs Oclgrind")
    (tmp_path / "host.py").write_text(PYTHON)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = [sys.executable, str(tmp_path / "host.py"), name]
    subprocess.run(command, check=True)
    found = read_recorded(run_recorded(command, tmp_path), "host.py")
    assert not found.notes
    (one,) = found.launches
    assert (one.kernel, one.arguments) == ("one", (BufferArgument(0), ValueArgument(np.float32(2).tobytes())))


def test_a_program_that_fails_is_told(host: Path, tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="exit status 1"):
        recorded(host, tmp_path, "fail")


def test_a_program_without_kernels_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    device()
    assert main(["opencl", "--graph", "--", "/bin/true"]) == 1
    assert "it launched no kernel through libOpenCL" in capfd.readouterr().err
    assert main(["opencl", "--graph", "--", "/nowhere/at-all"]) == 1
    assert "cannot run /nowhere/at-all" in capfd.readouterr().err


def test_the_command_on_a_host_program(host: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["opencl", "--graph", "--", str(host), str(tmp_path / "k.cl")]) == 0
    said = capfd.readouterr().out
    assert "one (kernel.cl:1), 32 work items in groups of 8, 3 calls" in said
    assert "two is left alone" in said
