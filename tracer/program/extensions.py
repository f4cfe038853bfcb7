"""The vector extensions and widths that code was compiled for, read from its instructions where nothing records them.

A hotspot often shows less than its compiler was allowed: scalar code on floats has nothing of AVX-512's masks, yet a layout
in which it becomes vectors would be given them. The flags of a file are those of all its functions, so the whole compile
unit is looked at, unless functions of it were compiled differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import capstone

# Instruction group of capstone -> switch of gcc and clang. SSE and SSE2 belong to every x86-64.
_EXTENSIONS = {
    capstone.x86.X86_GRP_SSE3: "-msse3",
    capstone.x86.X86_GRP_SSSE3: "-mssse3",
    capstone.x86.X86_GRP_SSE41: "-msse4.1",
    capstone.x86.X86_GRP_SSE42: "-msse4.2",
    capstone.x86.X86_GRP_AVX: "-mavx",
    capstone.x86.X86_GRP_AVX2: "-mavx2",
    capstone.x86.X86_GRP_FMA: "-mfma",
    capstone.x86.X86_GRP_BMI: "-mbmi",
    capstone.x86.X86_GRP_BMI2: "-mbmi2",
    capstone.x86.X86_GRP_F16C: "-mf16c",
    capstone.x86.X86_GRP_AVX512: "-mavx512f",
    capstone.x86.X86_GRP_CDI: "-mavx512cd",
    capstone.x86.X86_GRP_DQI: "-mavx512dq",
    capstone.x86.X86_GRP_BWI: "-mavx512bw",
    capstone.x86.X86_GRP_VLX: "-mavx512vl",
}

_WITH_FMA = frozenset(
    (capstone.x86.X86_GRP_AVX, capstone.x86.X86_GRP_AVX2, capstone.x86.X86_GRP_BMI, capstone.x86.X86_GRP_BMI2)
)
"""Extensions that a compiler may use too where it may use FMA: they came together (Haswell, Zen; x86-64-v3), and are
switched on together (``-march``). A loop over floats shows FMA, and nothing of AVX2's integers: its mock-ups in vectors were
half as wide as those written by hand and compiled as the program was."""

_AVX512 = frozenset(
    (
        capstone.x86.X86_GRP_AVX512,
        capstone.x86.X86_GRP_CDI,
        capstone.x86.X86_GRP_DQI,
        capstone.x86.X86_GRP_BWI,
        capstone.x86.X86_GRP_VLX,
    )
)
_WITH_AVX512 = _AVX512 | _WITH_FMA | {capstone.x86.X86_GRP_FMA}
"""So it is with AVX-512 (Skylake's servers, Zen 4; x86-64-v4): without the others there was only the Xeon Phi."""

NARROW = "-mprefer-vector-width=256"
"""The extensions that ``-march=skylake-avx512`` and its successors imply in gcc and clang; with AVX-512 switched on alone,
both take 64 bytes. So the unchanged ``pixels`` by clang ran 1.5 times as fast as the original."""

_MOST_CODE = 256 << 10
"""Bytes of a compile unit that are looked at: half a second."""


@dataclass(frozen=True, slots=True)
class _UsedExtensions:
    """Groups of the instructions; whether some use registers of 64 bytes, and some vector registers in the encoding that
    code for AVX never uses."""

    groups: frozenset[int]
    wide: bool
    legacy: bool


def extension_flags(code: Iterable[bytes], unit: Iterable[bytes] = ()) -> tuple[str, ...]:
    """The switches for the vector extensions that the instructions in ``code`` belong to, in a fixed order, and those of the
    ``unit`` that it is part of, with what came with them. Functions for several processors in one unit leave it out: some of
    them have SSE's encoding, which a compiler that may use AVX does not."""
    seen = _seen(code)
    if not seen.legacy:
        around = _seen(unit)
        if not around.legacy:
            seen = _UsedExtensions(seen.groups | around.groups, seen.wide or around.wide, False)
    groups = set(seen.groups)
    if groups & _AVX512:
        groups |= _WITH_AVX512
    elif capstone.x86.X86_GRP_FMA in groups:
        groups |= _WITH_FMA
    switches = tuple(switch for group, switch in _EXTENSIONS.items() if group in groups)
    return (*switches, NARROW) if groups & _AVX512 and not seen.wide else switches


def _seen(code: Iterable[bytes]) -> _UsedExtensions:
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    decoder.skipdata = True
    groups: set[int] = set()
    wide = legacy = False
    left = _MOST_CODE
    for piece in code:
        for instruction in decoder.disasm(piece[:left], 0):
            if instruction.id == 0:
                continue
            groups.update(instruction.groups)
            # capstone puts FMA3 into the AVX group
            if re.match(r"vfn?m(add|sub)", instruction.mnemonic):
                groups.add(capstone.x86.X86_GRP_FMA)
            wide |= "zmm" in instruction.op_str
            legacy |= "xmm" in instruction.op_str and not instruction.mnemonic.startswith(("v", "sha"))  # SHA has no other
        left = max(left - len(piece), 0)
    return _UsedExtensions(frozenset(groups), wide, legacy)
