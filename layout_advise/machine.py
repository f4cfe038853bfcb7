"""The machine: cores and caches from sysfs, for the report and for the lane counts of AoSoA."""

from __future__ import annotations

import os
from pathlib import Path

from layout_advise.reports.model.contract import Machine

CPU0 = Path("/sys/devices/system/cpu/cpu0/cache")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _bytes(text: str) -> int:
    if not text:
        return 0
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def caches() -> dict[tuple[int, str], int]:
    """(level, type) to size in bytes of the caches of CPU 0; empty where sysfs does not say."""
    found: dict[tuple[int, str], int] = {}
    for index in sorted(CPU0.glob("index*")):
        level, kind = _text(index / "level"), _text(index / "type")
        if level.isdigit():
            found[(int(level), kind)] = _bytes(_text(index / "size"))
    return found


def cpu_fields() -> dict[str, str]:
    """The first processor's lines of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in _text(Path("/proc/cpuinfo")).splitlines():
        if not line.strip():
            break
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    return fields


def vector_bytes() -> tuple[int, ...]:
    """Vector lengths that this machine has, in bytes, ascending."""
    flags = set(cpu_fields().get("flags", "").split())
    return tuple(n for n, flag in ((16, "sse2"), (32, "avx2"), (64, "avx512f")) if flag in flags)


def describe() -> Machine:
    """The ``machine`` part of the report."""
    sizes = caches()
    line = _text(CPU0 / "index0" / "coherency_line_size")
    return Machine(
        cpu=cpu_fields().get("model name", "unknown"),
        cores=len(os.sched_getaffinity(0)),
        line_bytes=int(line) if line.isdigit() else 64,
        l1d_bytes=sizes.get((1, "Data"), 0),
        l2_bytes=sizes.get((2, "Unified"), 0),
        l3_bytes=sizes.get((3, "Unified"), 0),
    )
