"""Functions from assembly text."""

from __future__ import annotations

import subprocess
from pathlib import Path

from layout_advise.tracer.code.region import CodeRange, Region

BASE = 0x401000


def assemble(tmp_path: Path, text: str) -> Region:
    """Intel syntax; the code of a function at BASE."""
    thing, flat = tmp_path / "code.o", tmp_path / "code.bin"
    source = f".intel_syntax noprefix\n{text}\n"
    subprocess.run(["as", "-o", str(thing), "-"], input=source.encode(), check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", str(thing), str(flat)], check=True)
    return Region("f", "function", BASE, (CodeRange(BASE, flat.read_bytes()),), "none", 0)
