"""The agent in C under sanitizers: its table of blocks with threads; real runs without undefined behaviour in all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from layout_advise.tracer.process.agent import SOURCES
from tests.support.paths import ROOT

DRIVER = Path(__file__).with_name("blocks_driver.c")
RENAMED = ("malloc", "calloc", "realloc", "free", "reallocarray", "memalign", "aligned_alloc", "posix_memalign", "valloc",
           "mmap", "mmap64", "munmap", "mremap", "_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm")  # fmt: skip
TRAPPING = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
"""Without a run-time library, which would be one more in the program."""
OPENMP = """\
#include <stdio.h>
#include <stdlib.h>
struct item { double x, y, z, w; };
static struct item *items;
__attribute__((noinline)) void work(long n)
{
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        items[i].x += 0.5 * items[i].y;
}
int main(void)
{
    items = calloc(200000, sizeof *items);
    for (long i = 0; i < 200000; i++)
        items[i].y = i;
    for (int k = 0; k < 2000; k++)
        work(200000);
    printf("%g\\n", items[7].x);
    return 0;
}
"""


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_the_table_of_blocks_with_threads(sanitizer: str, tmp_path: Path) -> None:
    heap = SOURCES / "heap"
    own = [f"-D{name}=agent_{name}" for name in RENAMED]
    flags = ["-std=gnu11", "-g", "-O1", "-pthread", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", f"-I{SOURCES}"]
    for name in ("blocks", "stacks", "aside"):
        subprocess.run(["gcc", *flags, *own, "-c", heap / f"{name}.c", "-o", tmp_path / f"{name}.o"], check=True)
    objects = [tmp_path / f"{name}.o" for name in ("blocks", "stacks", "aside")]
    subprocess.run(["gcc", *flags, "-o", tmp_path / "driver", DRIVER, *objects, "-ldl"], check=True)
    done = subprocess.run([tmp_path / "driver"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    live, wrong, known, with_stack = map(int, done.stdout.split())
    assert live > 4000
    assert (wrong, known) == (0, live)
    assert with_stack > 10


@pytest.mark.slow
@pytest.mark.parametrize("program", ["plain", "short calls", "live", "OpenMP"])
def test_runs_without_undefined_behaviour_in_the_agent(program: str, tmp_path: Path) -> None:
    """Where it behaves so, the program ends by SIGILL, and the run with it."""
    compiler = tmp_path / "trapping"
    compiler.write_text(f'#!/bin/sh\nexec gcc {" ".join(TRAPPING)} "$@"\n')
    compiler.chmod(0o755)
    if program == "OpenMP":
        (tmp_path / "victim.c").write_text(OPENMP)
        subprocess.run(["gcc", "-g", "-O2", "-fopenmp", "-o", tmp_path / "victim", tmp_path / "victim.c"], check=True)
    else:
        subprocess.run(["gcc", "-g", "-O2", "-o", tmp_path / "victim", ROOT / "tests" / "road" / "victim.c"], check=True)
    words = {"plain": ("plain", "60000", "300"), "short calls": ("plain", "20000", "600"), "live": ("plain", "60000", "300")}
    options = ["--restores", "3", "--candidates", "1", "--budget", "1", "--live" if program == "live" else "--no-live"]
    command = [sys.executable, "-m", "layout_advise", "trace", "-q", *options, "--hotspot", "work", "-o", "run", "--"]
    environment = {**os.environ, "LAYOUT_ADVISE_CC": str(compiler), "LAYOUT_ADVISE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [*command, "./victim", *words.get(program, ())],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (hotspot,) = json.loads((tmp_path / "run" / "report.json").read_text())["hotspots"]
    assert hotspot["identity"]["evidence"] == "verified", hotspot["verdict"]
    (agent,) = (tmp_path / "cache" / "agent").glob("*.so")
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", agent], capture_output=True, text=True, check=True).stdout
    assert code.count("\tud2") > 300  # it is what was asked for


@pytest.mark.slow
def test_several_regions_at_once_without_undefined_behaviour_in_the_agent(tmp_path: Path) -> None:
    """Where it behaves so, a program ends by SIGILL, and not as by itself."""
    compiler = tmp_path / "trapping"
    compiler.write_text(f'#!/bin/sh\nexec gcc {" ".join(TRAPPING)} "$@"\n')
    compiler.chmod(0o755)
    environment = {**os.environ, "LAYOUT_ADVISE_CC": str(compiler), "LAYOUT_ADVISE_CACHE": str(tmp_path / "cache")}
    tests = ROOT / "tests" / "tracer" / "live" / "test_live_regions.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    (agent,) = (tmp_path / "cache" / "agent").glob("*.so")
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", agent], capture_output=True, text=True, check=True).stdout
    assert code.count("\tud2") > 300  # it is what was asked for
