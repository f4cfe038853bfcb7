"""Compiling mock-ups with the producer's compiler and flags."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from layout_advise.mockup.emit import include_directories
from layout_advise.mockup.run.compilers import TIME_LIMIT, family
from layout_advise.mockup.run.moved_code import moved_code
from layout_advise.tracer.process.compiler_run import run_compiler

# -fno-fast-math comes first: it switches errno on again, and with that no square root is vectorised. A lifted square root is
# an instruction and sets none. Whether operations may trap is left as the producer had it: it decides what is vectorised.
EXACT = ("-fno-fast-math", "-ffp-contract=off", "-fno-math-errno", "-fno-strict-aliasing")
PLACED = ("-falign-loops=32", "-falign-functions=64")
LINK = ("-shared", "-Wl,-z,now", "-Wl,--build-id=none")


@dataclass(frozen=True, slots=True)
class BuiltMockup:
    """The shared object, or the ``reason`` why there is none; ``log`` is the command and what the compiler said."""

    path: Path | None
    log: str
    reason: str | None = None


_built: dict[str, Path] = {}
"""Digest of a text and its flags → the file that this process last built from them."""
_assembly: dict[str, bytes] = {}
"""The same → the assembly text, compressed: code is put at several places, and compiled once. The newest of them."""
MOST_TEXTS = 512
"""So many assembly texts are kept, of some 50 KB each: more than a region's mock-ups."""


def command(source: Path, out: Path, compiler: str, flags: Sequence[str], *ends: str) -> list[str]:
    """The compiler's command line: to a shared object, or to what ``ends`` say."""
    of = family(compiler)
    includes = [f"-I{directory}" for directory in include_directories()]
    own = [*EXACT, *of.exact(compiler), "-fvisibility=hidden", "-fPIC", *includes]
    last = () if ends else ("-lm",)
    return [compiler, *PLACED, *of.before, *flags, *own, *(ends or LINK), "-o", str(out), str(source), *last]


def build(
    source: str, out: Path, compiler: str = "gcc", flags: Sequence[str] = ("-O2",), *, moved_by: int = 0
) -> BuiltMockup:
    """Write ``source`` next to ``out`` (suffix .c) and compile it to the shared object ``out``; with ``moved_by`` its
    functions begin with so many bytes of ``nop``.

    A second build of the same text with the same flags in this process copies what the first one gave, as long as that is
    still there. A failure is data (``reason``), not an exception: the candidate is then rejected with it.
    """
    text = out.with_suffix(".c")
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(source)
    line = shlex.join(command(text, out, compiler, flags))
    line += f"  # compiled with -S, then with .nops {moved_by} at the entry of each function" if moved_by else ""
    log = out.with_suffix(".log")
    compiled = _digest(compiler, *flags, source)
    digest = _digest(compiled, str(moved_by))
    known = _built.get(digest)
    if known is not None and known.exists():
        if known != out:
            content = known.read_bytes()
            _forget(out)
            out.write_bytes(content)
        message = f"{line}\nsame as {known.name}\n"
        log.write_text(message)
        return BuiltMockup(out, message)
    _forget(out)
    try:
        status, said, assembly = _compiled(text, out, compiler, flags, compiled)
        if assembly is not None:
            linked = _link(out, compiler, flags, moved_code(assembly, moved_by))
            status, said = linked.returncode, said + linked.stderr
    except FileNotFoundError:
        return BuiltMockup(None, line, f"the compiler {compiler} is not installed")
    except subprocess.TimeoutExpired:
        return BuiltMockup(None, line, f"{compiler} took more than {TIME_LIMIT:.0f} s")
    message = f"{line}\n{said}"
    log.write_text(message)
    if status != 0:
        errors = [told for told in said.splitlines() if "error" in told] or [f"exit status {status}"]
        return BuiltMockup(None, message, f"{compiler}: {errors[0].strip()}")
    _built[digest] = out
    return BuiltMockup(out, message)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _compiled(text: Path, out: Path, compiler: str, flags: Sequence[str], digest: str) -> tuple[int, str, str | None]:
    """The compiler's exit status, what it said, and the assembly text, where it made one or that is known."""
    if (known := _assembly.get(digest)) is not None:
        return 0, "", zlib.decompress(known).decode(errors="surrogateescape")
    file = out.with_suffix(".s")
    try:
        done = run_compiler(command(text, file, compiler, flags, "-S"), out.parent, TIME_LIMIT)
        content = file.read_bytes() if done.returncode == 0 else None
    finally:
        file.unlink(missing_ok=True)
    if content is None:
        return done.returncode, done.stdout + done.stderr, None
    _assembly[digest] = zlib.compress(content, 1)
    for oldest in list(_assembly)[:-MOST_TEXTS]:
        _assembly.pop(oldest, None)
    return 0, done.stdout + done.stderr, content.decode(errors="surrogateescape")


def _link(out: Path, compiler: str, flags: Sequence[str], assembly: str) -> subprocess.CompletedProcess[str]:
    file = out.with_suffix(".s")
    try:
        file.write_text(assembly, errors="surrogateescape")
        unused = "-Wno-unused-command-line-argument"  # clang warns of what only compiling needs
        return run_compiler(command(file, out, compiler, (*flags, unused)), out.parent, TIME_LIMIT)
    finally:
        file.unlink(missing_ok=True)


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
