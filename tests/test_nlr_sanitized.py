"""The folding code in C: no undefined behaviour, nothing leaks, and it needs no libc."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NLR = ROOT / "tracer" / "nlr"
WARNINGS = ("-std=c11", "-Wall", "-Wextra", "-Werror")


def test_random_streams_under_sanitizers(tmp_path: Path) -> None:
    program = tmp_path / "driver"
    sources = (str(ROOT / "tests" / "nlr_driver.c"), str(NLR / "nlr.c"))
    sanitize = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{NLR}")
    subprocess.run(["gcc", *WARNINGS, *sanitize, "-o", str(program), *sources], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    folded, sets, inexact, nests = map(int, done.stdout.split())
    assert folded > 40
    assert sets > 20
    assert inexact > 5
    assert nests > 1000  # several rows at once


def test_the_object_needs_no_library(tmp_path: Path) -> None:
    thing = tmp_path / "nlr.o"
    freestanding = ("-O2", "-ffreestanding", "-fno-stack-protector", "-fno-builtin", "-fcf-protection=none")
    subprocess.run(["gcc", *WARNINGS, *freestanding, "-c", "-o", str(thing), str(NLR / "nlr.c")], check=True)
    undefined = subprocess.run(["nm", "-u", str(thing)], check=True, capture_output=True, text=True).stdout.split()
    assert set(undefined) <= {"U", "memcpy", "memset", "memmove"}  # gcc's own needs; Valgrind's core has them
