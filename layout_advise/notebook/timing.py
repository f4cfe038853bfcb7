"""Times a layout's mock-up on NumPy data, in a process of its own: code of the run directory is run, and may crash there.

``python -m layout_advise.notebook.timing FOLDER NAME ROUNDS`` prints the times of the unchanged layout and of ``NAME`` (ns).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import LayoutAdviseError, RunDirError
from layout_advise.layoutalgebra.bridges.arrays import as_array
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.mockup.run.load import compile_mockup
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.rundir import TRACE
from layout_advise.tracer.trace.trace_file import read_trace

UNCHANGED = "identity"
PATIENCE = 120.0
"""Seconds that the calls of both may take."""


@dataclass(frozen=True, slots=True)
class TimedHere:
    """Median times of a call in ns, of the ``unchanged`` layout's mock-up and of that of ``layout``."""

    layout: str
    unchanged: float
    changed: float

    @property
    def speedup(self) -> float:
        """The former over the latter."""
        return self.unchanged / self.changed

    def __str__(self) -> str:
        both = f"{self.changed / 1e3:.1f} µs a call, unchanged layout {self.unchanged / 1e3:.1f} µs"
        gain = f"{self.speedup:.2f} times as fast (an indication: not the program's data)"
        return f"{self.layout} on NumPy data here: {both}: {gain}"


def time_here(run: Path, candidate: CandidateReport, rounds: int) -> TimedHere:
    """The times of a candidate of the run in a directory, measured now. Raises RunDirError where there is no mock-up or it
    cannot be called on other data."""
    if candidate.mockup is None or not (run / candidate.mockup).is_file():
        raise RunDirError(
            f"cannot time {candidate.id}", "its mock-up is not in the run directory", "trace the program again"
        )
    source = run / candidate.mockup
    words = [sys.executable, "-m", __name__, str(source.parent.parent), candidate.id, str(rounds)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired as error:
        raise RunDirError(f"cannot time {candidate.id}", f"it takes longer than {PATIENCE:.0f} s") from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it uses memory beside its structures, which is not there"])[-1]
        raise RunDirError(f"cannot time {candidate.id} on other data", said)
    unchanged, changed = (statistics.median(times) for times in json.loads(done.stdout))
    return TimedHere(candidate.id, unchanged, changed)


def filled(structure: Structure) -> NDArray[np.uint8]:
    """The memory of a structure with random numbers in its fields of floating point, and zeros elsewhere."""
    memory, random = np.zeros(structure.bytes, np.uint8), np.random.default_rng(1)
    records = as_array(structure, memory)
    for name in records.dtype.names or ():
        if records[name].dtype.kind == "f":
            records[name] = random.random(records[name].shape)
    return memory


def main(folder: Path, name: str, rounds: int) -> None:
    """Prints the times of both as JSON. Raises MockupError where one cannot be called, RunDirError for other folders."""
    found = msgspec.json.decode((folder / "candidates.json").read_bytes(), type=list[Candidate])
    candidate = next((one for one in found if one.id == name.partition("-")[0]), None)
    if candidate is None:
        raise RunDirError(f"no candidate {name} in {folder}")
    structures = [relayout.structure for relayout in candidate.relayouts]
    registers = read_trace(folder / TRACE).registers
    times = []
    with tempfile.TemporaryDirectory(prefix="layout-advise-") as work:
        for which in (UNCHANGED, name):
            text = (folder / "mockups" / f"{which}.c").read_text()
            mockup = compile_mockup(text, Path(work) / f"{which}.so", structures)
            times.append(mockup.timed({one.id: filled(one) for one in structures}, registers, rounds))
    print(json.dumps(times))


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    except (LayoutAdviseError, OSError, msgspec.MsgspecError) as error:
        sys.exit(error.line() if isinstance(error, LayoutAdviseError) else str(error))
