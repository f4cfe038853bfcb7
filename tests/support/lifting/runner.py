"""Drives ``lift_runner.c``: lifted functions of a shared library against the original machine code on random state."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.mockup.emit import include_directories
from layout_advise.mockup.ir.effects import BITS, Gpr
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.machine.disassembly import Immediate, decode
from layout_advise.mockup.run.survey import float_loop_insns
from layout_advise.tracer.code.region import Region
from tests.support.lifting.memories import BYTES, State

SOURCE = Path(__file__).with_name("lift_runner.c")
VERDICTS = ("agrees", "discarded", "same but for NaN", "differs")
OUTCOMES = ("", "returned", "fault", "too long", "too much memory")
_MARKS = 48
_CONSTANTS = 24
_JOB = struct.Struct(f"<QIIII8s16sII{_CONSTANTS}I{_MARKS}Q256s{BYTES}s")
_RESULT = struct.Struct("<6I2Q")


@dataclass(frozen=True, slots=True)
class Job:
    """A lifted function and its compiled mock-up; addresses are those at run time. ``results`` marks the bytes of rax and of
    xmm0 that it returns, ``marks`` are instructions of loops that compute with floats: whether one was reached tells that a
    trial tried something."""

    name: str
    address: int
    results: tuple[bytes, bytes]
    mockup: Path
    marks: tuple[int, ...]
    constants: tuple[int, ...] = ()
    """Numbers that the function compares with; some of the random ones are drawn from these."""
    state: State | None = None
    """What it takes, as far as that is known: three of four states are made of it."""
    enough: int = 0
    """After so many states that agree and reached a loop no more are tried; 0: all are."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One seed: the verdict, how both sides ended, whether a marked instruction was reached, bytes that were changed."""

    seed: int
    verdict: str
    original: str
    lifted: str
    signal: int
    reached: int
    changed: int
    where: int


def marks_of(region: Region) -> tuple[int, ...]:
    """The instructions of the region's loops that compute with floats, as far as the runner takes them."""
    return tuple(sorted(float_loop_insns(decode(region))))[:_MARKS]


def results_of(lifted: Lifted) -> tuple[bytes, bytes]:
    """The bytes of rax and of xmm0 that the lifted function returns: 1 for each."""
    rax, xmm0 = bytearray(8), bytearray(16)
    for out in lifted.live_outs:
        start = 4 * (out.half or 0) + (0 if isinstance(out.location, Gpr) else 8 * out.location.index)
        size = max(1, BITS[out.operand.ty] // 8)
        (rax if isinstance(out.location, Gpr) else xmm0)[start : start + size] = bytes([1]) * size
    return bytes(rax), bytes(xmm0)


def constants_of(region: Region) -> tuple[int, ...]:
    """The immediates of the region's compares, as far as the runner takes them."""
    found = {
        insn.operands[1].value % 2**32
        for insn in decode(region).values()
        if insn.mnemonic == "cmp" and isinstance(insn.operands[1], Immediate)
    }
    return tuple(sorted(found))[:_CONSTANTS]


def build_runner(folder: Path) -> Path:
    """Compile the runner into ``folder``; raises CalledProcessError."""
    program = folder / "lift_runner"
    includes = [f"-I{directory}" for directory in include_directories()]
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", *includes, "-o", str(program), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, timeout=120)
    return program


def load_base(runner: Path, library: Path, search: Sequence[Path] = ()) -> int:
    """The address at which the runner has the library; the same in each run, since address randomisation is off."""
    return int(_run(runner, [str(library)], search).stdout, 16)


def run_jobs(
    runner: Path, library: Path, jobs: Sequence[Job], folder: Path, *, seeds: int, search: Sequence[Path] = ()
) -> dict[str, tuple[Trial, ...]]:
    """Run every job with ``seeds`` random states; the trials by name. Raises RuntimeError if the runner fails."""
    given, got = folder / "jobs.bin", folder / "results.bin"
    given.write_bytes(b"".join(_packed(job, seeds) for job in jobs))
    done = _run(runner, [str(library), str(given), str(got)], search)
    if done.returncode != 0:
        raise RuntimeError(f"lift_runner ended with {done.returncode}: {done.stderr.strip()[:300]}")
    trials = [_trial(words) for words in _RESULT.iter_unpack(got.read_bytes())]
    return {job.name: tuple(t for t in trials[k * seeds : (k + 1) * seeds] if t.seed) for k, job in enumerate(jobs)}


def _run(runner: Path, arguments: list[str], search: Sequence[Path]) -> subprocess.CompletedProcess[str]:
    environment = {"LD_LIBRARY_PATH": ":".join(str(s) for s in search), "PATH": os.environ.get("PATH", "")}
    environment["OPENBLAS_NUM_THREADS"] = environment["OMP_NUM_THREADS"] = "1"
    return subprocess.run(
        [str(runner), *arguments], capture_output=True, text=True, env=environment, timeout=1800, check=False
    )


def _packed(job: Job, seeds: int) -> bytes:
    constants = (*job.constants, *(0,) * (_CONSTANTS - len(job.constants)))
    marks = (*job.marks, *(0,) * (_MARKS - len(job.marks)))
    place = str(job.mockup).encode()
    assert len(place) < 256
    state = bytes(BYTES) if job.state is None else job.state.packed()
    counts = (len(job.marks), len(job.constants))
    return _JOB.pack(job.address, seeds, 1, job.enough, 0, *job.results, *counts, *constants, *marks, place, state)


def _trial(words: tuple[int, ...]) -> Trial:
    seed, verdict, original, lifted, signal, reached, changed, where = words
    return Trial(seed, VERDICTS[verdict], OUTCOMES[original], OUTCOMES[lifted], signal, reached, changed, where)
