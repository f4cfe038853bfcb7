"""The folding code in C: no undefined behaviour, nothing leaks, and it needs no libc."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support import slower
from tests.support.paths import ROOT

NLR = ROOT / "tracer" / "nlr"
WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror")


def driver(folder: Path, *flags: str) -> Path:
    program = folder / "driver"
    sources = (Path(__file__).with_name("nlr_driver.c"), *sorted(NLR.glob("*.c")))
    subprocess.run(["gcc", *WARNINGS, *flags, f"-I{NLR}", "-o", program, *sources], check=True)
    return program


@pytest.mark.slow
def test_random_streams_under_sanitizers(tmp_path: Path) -> None:
    program = driver(tmp_path, "-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    folded, sets, inexact, nests, cycles = map(int, done.stdout.split())
    assert folded > 40
    assert sets > 20
    assert inexact > 5
    assert nests > 1000  # several rows at once
    assert cycles > 1000  # several times the same at once


def test_the_object_needs_no_library(tmp_path: Path) -> None:
    thing = tmp_path / "all.o"
    freestanding = ("-O2", "-ffreestanding", "-fno-stack-protector", "-fno-builtin", "-fcf-protection=none")
    link = ("-r", "-nostdlib")
    subprocess.run(["gcc", *WARNINGS, *freestanding, *link, "-o", thing, *sorted(NLR.glob("*.c"))], check=True)
    undefined = subprocess.run(["nm", "-u", str(thing)], check=True, capture_output=True, text=True).stdout.split()
    assert set(undefined) <= {"U", "memcpy", "memset", "memmove"}  # gcc's own needs; Valgrind's core has them


MOST = 64 << 20
FOUR_GB = 1 << 29
"""Places of 8 bytes, and bits of the largest bitmap."""


@pytest.mark.parametrize(
    ("places", "reads", "exact"),
    [
        (FOUR_GB, 2_000_000, True),  # the hashes hold them
        *slower((FOUR_GB // 2, 3_000_000, True)),  # every page is bits
        (FOUR_GB, 6_000_000, False),  # the whole bitmap, and the directory on top
        (2 * FOUR_GB, 3_000, False),
    ],
)
def test_a_set_stays_within_its_memory_while_it_grows(tmp_path: Path, places: int, reads: int, exact: bool) -> None:
    program = driver(tmp_path, "-O2")
    done = subprocess.run([program, str(places), str(reads)], capture_output=True, text=True, check=True)
    state, count, peak = map(int, done.stdout.split())
    assert (state, count) == (1 if exact else 2, reads)
    assert peak < MOST
