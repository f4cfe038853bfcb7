"""A host program run with the recorder preloaded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from layout_advise.errors import MachineError, ProgramError
from layout_advise.opencl.intercept.recorded import tell_of_failure
from layout_advise.tracer.process.compiler_run import run_compiler

SOURCES = Path(__file__).with_name("recorder")
LOADER_FAILED = 127
"""The exit status of a program whose libraries are not all there."""
FLAGS = ("-shared", "-fPIC", "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror")


def build_recorder(folder: Path) -> Path:
    """The library to preload, built in ``folder``."""
    library = folder / "recorder.so"
    command = ["gcc", *FLAGS, "-o", str(library), *map(str, sorted(SOURCES.glob("*.c"))), "-ldl", "-lpthread"]
    try:
        done = run_compiler(command, folder)
    except OSError as error:
        raise MachineError("cannot watch the program's OpenCL calls", "gcc is missing", "install gcc") from error
    if done.returncode:
        raise MachineError("cannot watch the program's OpenCL calls", done.stderr.strip().splitlines()[0], "report this")
    return library


def run_recorded(command: Sequence[str], folder: Path, output: IO[bytes] | None = None) -> Path:
    """Runs the program to its end, its output passed through (or into ``output``); returns the folder of its launches.
    Raises ProgramError where it does not run or fails."""
    record = folder / "launches"
    record.mkdir()
    preload = " ".join([str(build_recorder(folder)), *filter(None, [os.environ.get("LD_PRELOAD", "")])])
    # a program that pyopencl has built before it makes of a binary, which has no source
    environment = {**os.environ, "LD_PRELOAD": preload, "LAYOUT_ADVISE_RECORD": str(record), "PYOPENCL_NO_CACHE": "1"}
    try:
        done = subprocess.run(list(command), env=environment, check=False, stdout=output)
    except OSError as error:
        raise ProgramError(
            f"cannot run {command[0]}", error.strerror or str(error), "name a program and its arguments"
        ) from error
    if done.returncode:
        what = f"{command[0]} failed"
        if done.returncode == LOADER_FAILED and (library := missing_library(command[0])):
            raise MachineError(what, f"{library} is missing", "apt-get install ocl-icd-libopencl1")
        tell_of_failure(record, what)
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        raise ProgramError(what, f"it ended with {ended}", "it must run through")
    return record


def missing_library(program: str) -> str:
    """The OpenCL library that the loader does not find for a program; empty where it finds it, or cannot be asked."""
    path = shutil.which(program)
    try:
        said = subprocess.run(["ldd", path or program], capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
    found = re.search(r"(libOpenCL\S*) => not found", said)
    return found[1] if found else ""
