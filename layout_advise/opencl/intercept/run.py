"""A host program run with the recorder preloaded."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from layout_advise.errors import MachineError, ProgramError

SOURCE = Path(__file__).with_name("recorder.c")
FLAGS = ("-shared", "-fPIC", "-O2", "-std=c11", "-Wall", "-Wextra", "-Werror")


def build_recorder(folder: Path) -> Path:
    """The library to preload, built in ``folder``."""
    library = folder / "recorder.so"
    command = ["gcc", *FLAGS, "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
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
    environment = {**os.environ, "LD_PRELOAD": preload, "LAYOUT_ADVISE_RECORD": str(record)}
    try:
        done = subprocess.run(list(command), env=environment, check=False, stdout=output)
    except OSError as error:
        raise ProgramError(
            f"cannot run {command[0]}", error.strerror or str(error), "name a program and its arguments"
        ) from error
    if done.returncode:
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        raise ProgramError(f"{command[0]} failed", f"it ended with {ended}", "it must run through")
    return record
