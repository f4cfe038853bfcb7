"""What the processor at hand can execute."""

from __future__ import annotations

from pathlib import Path

HAS_WIDE = all(f" avx512{part}" in Path("/proc/cpuinfo").read_text() for part in ("f", "bw", "dq", "vl", "cd"))
