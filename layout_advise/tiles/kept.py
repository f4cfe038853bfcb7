"""Calibrations in the user's cache: where they lie, and what is told of their age."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from layout_advise.rundir import write_atomically
from layout_advise.tracer.process.build_cache import cache_folder

Kept = TypeVar("Kept")
DAY = 86400


def folder() -> Path:
    """The folder of all of them: ``LAYOUT_ADVISE_CALIBRATIONS``, else one in the user's cache."""
    own = os.environ.get("LAYOUT_ADVISE_CALIBRATIONS")
    return Path(own) if own else cache_folder() / "calibrations"


def file_for(words: Sequence[str], prefix: str = "") -> Path:
    """The file of what ``words`` name."""
    digest = hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
    return folder() / f"{prefix}{digest}.json"


def read(path: Path, kind: type[Kept]) -> Kept | None:
    """The content of a file; None where there is none that can be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None


def write(path: Path, calibration: msgspec.Struct) -> Path:
    """Keeps it in the place of an older one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n")
    return path


def days_since(created: float) -> int:
    """Whole days since then, in seconds since 1970."""
    return max(0, int((time.time() - created) // DAY))


def aged(created: float, kernels: int, loss: float) -> str:
    """``calibration of 2026-11-26 (today; ...)`` with the number of kernels and the loss on those not trained on."""
    figures = f"{kernels} kernels, tiles {loss:.2f} times the best ones' time on those not trained on"
    day, days = time.strftime("%Y-%m-%d", time.gmtime(created)), days_since(created)
    age = {0: "today", 1: "a day old"}.get(days, f"{days} days old")
    return f"calibration of {day} ({age}; {figures})"
