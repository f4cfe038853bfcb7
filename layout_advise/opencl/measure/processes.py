"""Fresh processes for jobs, and ratios over them."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import MockupError
from layout_advise.opencl.measure.clock import Clock, time_by
from layout_advise.opencl.measure.jobs import KernelJob, VariantOutcome
from layout_advise.opencl.measure.record import RecordJob
from layout_advise.opencl.policy import OPENCL

_BEYOND = re.compile(
    r"Invalid (read|write) of size (\d+) at global memory.*?(?:At line (\d+)[^\n]*:\n *([^\n]+?) *\n|\Z)", re.DOTALL
)
"""What Oclgrind says of an access beyond all buffers, with its line."""


def in_fresh_process(job: KernelJob) -> list[VariantOutcome]:
    """The outcomes of a job. Raises MockupError where the process does not come to its end."""
    return list(_answer(job))


def items_of(job: RecordJob) -> list[NDArray[np.uint32]]:
    """The accesses of some work items, recorded in a fresh process; errors as above."""
    return list(_answer(job))


def _answer(job: KernelJob | RecordJob) -> Any:
    command = [sys.executable, "-P", "-m", "layout_advise.opencl.measure.worker"]
    what = f"cannot run kernels on {job.device.name}"
    try:
        done = subprocess.run(command, input=pickle.dumps(job), capture_output=True, check=False, timeout=OPENCL.timeout)
    except subprocess.TimeoutExpired as error:
        raise MockupError(what, f"nothing came back within {OPENCL.timeout:.0f} s", "give it less work") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = f"signal {-done.returncode}" if done.returncode < 0 else (said[-1] if said else f"exit {done.returncode}")
        raise MockupError(what, f"the process ended with {why}", "an index beyond a buffer does that, too")
    if found := beyond_buffers(done.stderr.decode(errors="replace")):
        raise MockupError(what, found, "mend the index first: nothing is claimed of such a kernel")
    answer = pickle.loads(done.stdout)
    if isinstance(answer, str):
        raise MockupError(what, answer)
    return answer


def beyond_buffers(said: str) -> str:
    """The first access beyond all buffers that a simulator tells of; empty where it tells of none."""
    found = _BEYOND.search(said)
    if found is None:
        return ""
    where = f" in line {found[3]}: {found[4]}" if found[3] else ""
    return f"it {found[1]}s {found[2]} bytes beyond its buffers{where}"


def outcomes_apart(job: KernelJob) -> list[VariantOutcome]:
    """As :func:`in_fresh_process`; where the process dies, each variant is tried with the original alone, so that one that
    crashes does not take the others along."""
    try:
        return in_fresh_process(job)
    except MockupError:
        if len(job.variants) <= 2:
            raise
    found: list[VariantOutcome] = []
    for number, variant in enumerate(job.variants):
        pair = job.variants[:1] if number == 0 else (job.variants[0], variant)
        try:
            found.append(in_fresh_process(replace(job, variants=pair))[-1])
        except MockupError as error:
            if number == 0:
                raise
            found.append(VariantOutcome(0.0, 0.0, problem=error.line()))
    return found


def over_processes(job: KernelJob, processes: int, before: int = 0) -> list[list[VariantOutcome]]:
    """The outcomes of a job in several processes, another variant first in each; so many were run ``before``. The first of
    all times conversions."""
    turns = range(before, before + processes)
    return [in_fresh_process(replace(job, turn=turn, conversions=job.conversions and turn == 0)) for turn in turns]


def times_of(rows: Sequence[Sequence[VariantOutcome]], number: int, clock: Clock) -> list[float]:
    """The times of one variant, by process."""
    return [time_by(row[number], clock) for row in rows]
