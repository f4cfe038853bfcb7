"""Compiling mock-ups with the producer's compiler and flags."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from layout_advise.mockup.emit import include_directories

# -fno-fast-math comes first: it switches errno on again, and with that no square root is vectorised. A lifted square root is
# an instruction and sets none. Whether operations may trap is left as the producer had it: it decides what is vectorised.
EXACT = ("-fno-fast-math", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing")
PLACED = ("-falign-loops=32", "-falign-functions=64")
UNMERGED = ("-fno-tree-ter",)
"""Without it a large vector body spilt: 2.7x where 4.1x was to be had. clang does not know the flag."""
MERGED = ("-ftree-ter",)
"""As gcc does by itself, for short loops. Where expressions are not put together again, it kept a value in a register for
its second use (``particles`` as a structure of arrays: three loads an iteration) that of a source, whatever its order, is
loaded twice: 4.2 times as fast as the original for 3.2."""
# Merged branches (a & b != 0) hide from the loop passes that a trip count is positive; the original's branches are kept.
# What the original's compiler did to the loop nest is in the lifted code already; done anew it would be a gain of the
# mock-up's own (two passes over the data merged into one: 1.6x).
GCC_ONLY = (
    "--param=logical-op-non-short-circuit=0",
    "-fno-loop-unroll-and-jam",
    "-fno-loop-interchange",
)
IN_ORDER = ("-mllvm", "-hints-allow-reordering=false")
"""To clang a loop that is said to be independent is one whose sums it may reorder. It did so with what a fleet of vehicles
used in all: 4.1 times as fast with clang's own order, and the same bytes, as these were whole numbers."""
UNTOLD = ("-DLA_UNTOLD",)
"""For a clang that does not know the switch: nothing is said of loops."""
LINK = ("-shared", "-fPIC", "-Wl,-z,now", "-Wl,--build-id=none")
TIME_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class BuiltMockup:
    """The shared object, or the ``reason`` why there is none; ``log`` is the command and what the compiler said."""

    path: Path | None
    log: str
    reason: str | None = None


_built: dict[str, Path] = {}
"""Digest of a text and its flags → the file that this process last built from them."""


@cache
def _in_order(compiler: str) -> tuple[str, ...]:
    argv = [compiler, *IN_ORDER, "-x", "c", "-c", os.devnull, "-o", os.devnull]
    try:
        known = subprocess.run(argv, capture_output=True, timeout=TIME_LIMIT, check=False).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        known = False
    return IN_ORDER if known else UNTOLD


def command(source: Path, out: Path, compiler: str, flags: Sequence[str]) -> list[str]:
    """The compiler's command line."""
    extra, before = (GCC_ONLY, UNMERGED) if "clang" not in Path(compiler).name else (_in_order(compiler), ())
    includes = [f"-I{directory}" for directory in include_directories()]
    own = [*EXACT, *extra]
    return [
        compiler,
        *PLACED,
        *before,
        *flags,
        *own,
        "-fvisibility=hidden",
        *includes,
        *LINK,
        "-o",
        str(out),
        str(source),
        "-lm",
    ]


def build(source: str, out: Path, compiler: str = "gcc", flags: Sequence[str] = ("-O2",)) -> BuiltMockup:
    """Write ``source`` next to ``out`` (suffix .c) and compile it to the shared object ``out``.

    A second build of the same text with the same flags in this process copies what the first one gave, as long as that is
    still there. A failure is data (``reason``), not an exception: the candidate is then rejected with it.
    """
    text = out.with_suffix(".c")
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(source)
    argv = command(text, out, compiler, flags)
    log = out.with_suffix(".log")
    digest = hashlib.sha256("\0".join([compiler, *flags, source]).encode()).hexdigest()
    known = _built.get(digest)
    if known is not None and known.exists():
        if known != out:
            content = known.read_bytes()
            _forget(out)
            out.write_bytes(content)
        message = f"{shlex.join(argv)}\nsame as {known.name}\n"
        log.write_text(message)
        return BuiltMockup(out, message)
    _forget(out)
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    except FileNotFoundError:
        return BuiltMockup(None, shlex.join(argv), f"the compiler {compiler} is not installed")
    except subprocess.TimeoutExpired:
        return BuiltMockup(None, shlex.join(argv), f"{compiler} took more than {TIME_LIMIT:.0f} s")
    message = f"{shlex.join(argv)}\n{done.stdout}{done.stderr}"
    log.write_text(message)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error" in line] or [f"exit status {done.returncode}"]
        return BuiltMockup(None, message, f"{compiler}: {errors[0].strip()}")
    _built[digest] = out
    return BuiltMockup(out, message)


def _forget(out: Path) -> None:
    """``out`` is about to hold something else than what it was built from before."""
    for digest in [digest for digest, path in list(_built.items()) if path == out]:
        _built.pop(digest, None)


@lru_cache(maxsize=64)
def vector_bytes(compiler: str, flags: tuple[str, ...]) -> int:
    """Width of the vector registers that ``flags`` allow for integers and floats: 16 or 32. Compilers leave the 64 bytes of
    AVX-512 unused unless told otherwise."""
    argv = [compiler, *flags, "-dM", "-E", "-x", "c", os.devnull]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return 16
    return 32 if "#define __AVX2__ 1" in done.stdout.splitlines() else 16


def build_all(
    sources: Sequence[tuple[str, Path]], compiler: str = "gcc", flags: Sequence[str] = ("-O2",), jobs: int = 2
) -> tuple[BuiltMockup, ...]:
    """Build several mock-ups, ``jobs`` at a time; results in the order of ``sources``."""
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return tuple(pool.map(lambda pair: build(pair[0], pair[1], compiler, flags), sources))
