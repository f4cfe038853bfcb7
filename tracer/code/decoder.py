"""capstone's decoder, and its register operands as values. What it says of memory operands is read by those who need it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import capstone
from capstone import x86_const as x86

LONGEST_INSTRUCTION = 16
GPR_NAMES = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16)))


@dataclass(frozen=True, slots=True)
class Register:
    """A register operand of ``bytes`` bytes (gpr 1, 2, 4, 8; vector 16, 32, 64; mask 8).

    ``number`` as encoded; ``high`` for ah, ch, dh, bh (numbers 0 to 3). ``other`` are registers that are never lifted
    (segment, x87, control), with their name.
    """

    kind: Literal["gpr", "vector", "mask", "other"]
    number: int
    bytes: int
    high: bool = False
    name: str = ""


@cache
def register(name: str) -> Register:
    """The register called ``name`` in Intel syntax."""
    if name[:3] in ("xmm", "ymm", "zmm"):
        return Register("vector", int(name[3:]), {"x": 16, "y": 32, "z": 64}[name[0]], name=name)
    if name[:1] == "k" and name[1:].isdigit():
        return Register("mask", int(name[1:]), 8, name=name)
    if name[:1] == "r" and name[1:].rstrip("dwb").isdigit():
        return Register("gpr", int(name[1:].rstrip("dwb")), {"d": 4, "w": 2, "b": 1}.get(name[-1], 8), name=name)
    for number, stem in enumerate(full[1:] for full in GPR_NAMES[:8]):
        if name in (stem, f"e{stem}", f"r{stem}"):
            return Register("gpr", number, {"e": 4, "r": 8}.get(name[0], 2) if len(name) == 3 else 2, name=name)
        if name in (f"{stem[0]}l", f"{stem}l") and (len(name) == 3) == (number >= 4):
            return Register("gpr", number, 1, name=name)
        if number < 4 and name == f"{stem[0]}h":
            return Register("gpr", number, 1, high=True, name=name)
    return Register("other", 0, 0, name=name)


@cache
def _engine(detail: bool) -> Any:
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    engine.detail = detail
    return engine


def disassemble(code: bytes, address: int, most: int = 0, *, detail: bool = True) -> Iterator[Any]:
    """capstone's instructions from the start of ``code``, which stands at ``address``: ``most`` of them (0: all), or up to
    the first bytes that are no instruction. All are decoded before the first is handed out."""
    found: Iterator[Any] = _engine(detail).disasm(code, address, most)
    return found


def _register_numbers() -> dict[int, Register]:
    ids = range(1, x86.X86_REG_ENDING)
    return {number: register(_engine(False).reg_name(number)) for number in ids}


REGISTERS = _register_numbers()
"""By capstone's id."""
GPR = {number: found.number for number, found in REGISTERS.items() if found.kind == "gpr"}
"""Numbers of the general registers by capstone's id, whatever their width (``ah`` is part of rax)."""
VECTOR = {number: found.number for number, found in REGISTERS.items() if found.kind == "vector"}
