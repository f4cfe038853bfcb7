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


def read_by_objdump(folder: Path, code: bytes) -> list[str]:
    """The instructions as binutils read them."""
    (folder / "flat").write_bytes(code)
    options = ("-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn")
    done = subprocess.run(["objdump", *options, folder / "flat"], capture_output=True, text=True, check=True)
    lines = [line.split("\t")[1].split("#")[0] for line in done.stdout.splitlines() if "\t" in line]
    return [" ".join(line.replace("+0x0]", "]").removeprefix("rex ").split()) for line in lines]
