"""The preloaded agent as a shared object: compiled at first use, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
from functools import cache
from pathlib import Path

from layout_advise.errors import MachineError
from layout_advise.tracer.process.build_cache import cache_folder, cached_library
from layout_advise.tracer.process.compiler_run import run_compiler

SOURCES = Path(__file__).resolve().parent.parent / "agent"
ABI_HEADER = SOURCES / "abi.h"
FLAGS = [
    *("-std=gnu11", "-O2", "-g", "-fPIC", "-shared", "-fvisibility=hidden", "-fno-builtin", "-fno-stack-protector"),
    # The agent runs while the program's vector registers are live; exceptions may pass through operator new.
    *("-fcf-protection=none", "-mgeneral-regs-only", "-fexceptions"),
    *("-Wall", "-Wextra", "-Werror", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,-z,noexecstack"),
    "-static-libgcc",  # the unwinder: no library more in the program
]


def _sources() -> list[Path]:
    return sorted(path for path in SOURCES.rglob("*") if path.suffix in {".c", ".h", ".S"})


def _key(compiler: str) -> str:
    digest = hashlib.sha256()
    try:
        version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise MachineError("cannot compile the agent", f"{compiler} does not run: {error}", "install gcc") from error
    digest.update(version + " ".join(FLAGS).encode())
    for path in _sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:20]


@cache
def agent_path() -> Path:
    """The compiled agent; builds it when the sources or the compiler are new. Raises :class:`MachineError`."""
    compiler = os.environ.get("LAYOUT_ADVISE_CC", "gcc")

    def build(target: Path) -> None:
        inputs = [str(path) for path in _sources() if path.suffix != ".h"]
        command = [compiler, *FLAGS, f"-I{SOURCES}", "-o", str(target), *inputs, "-ldl"]
        done = run_compiler(command, target.parent)
        if done.returncode:
            raise MachineError("cannot compile the agent", done.stderr.strip()[:300], "install gcc and libc6-dev")

    return cached_library(cache_folder() / "agent" / f"agent-{_key(compiler)}.so", build, "cannot compile the agent")
