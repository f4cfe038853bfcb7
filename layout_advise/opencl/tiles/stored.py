"""Calibrations kept in the user's cache, one file a device: the tree, what it rests on, and when it was made."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import msgspec

from layout_advise.machine import cpu_fields
from layout_advise.opencl.tiles.samples import TileSample
from layout_advise.opencl.tiles.tree import TileTree
from layout_advise.rundir import write_atomically
from layout_advise.tracer.process.build_cache import cache_folder

SCHEMA = "layout-advise.calibration/2"


class Calibration(msgspec.Struct, frozen=True):
    """A device's tree. Losses are times with the tiles chosen over those with the best ones, in the mean: ``loss`` of the
    tree on shapes that it was not trained on, ``loss_of_first`` with the tile that is tried without a calibration,
    ``loss_of_none`` without tiles. ``created`` in seconds since 1970."""

    schema: str
    platform: str
    device: str
    driver: str
    machine: str
    created: float
    tree: TileTree
    loss: float
    loss_of_first: float
    loss_of_none: float
    samples: tuple[TileSample, ...]

    @property
    def days(self) -> int:
        """Its age."""
        return max(0, int((time.time() - self.created) // 86400))

    @property
    def told(self) -> str:
        """One line about it."""
        day = time.strftime("%Y-%m-%d", time.gmtime(self.created))
        figures = f"{len(self.samples)} kernels, tiles {self.loss:.2f} times the best ones' time on those not trained on"
        age = {0: "today", 1: "a day old"}.get(self.days, f"{self.days} days old")
        return f"calibration of {day} ({age}; {figures})"


def file_of(device: Any) -> Path:
    """The file of a device's calibration: another driver or processor has another one."""
    words = "\n".join((device.platform.name, device.name, device.driver_version, machine_name()))
    return cache_folder() / "calibrations" / f"{hashlib.sha256(words.encode()).hexdigest()[:16]}.json"


def machine_name() -> str:
    """The processor's name."""
    return cpu_fields().get("model name", "unknown")


def stored(device: Any) -> Calibration | None:
    """The calibration of a device; None where there is none that can be read."""
    try:
        found = msgspec.json.decode(file_of(device).read_bytes(), type=Calibration)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.schema == SCHEMA else None


def store(device: Any, calibration: Calibration) -> Path:
    """Keeps it in the place of an older one."""
    path = file_of(device)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(calibration), indent=1) + b"\n")
    return path
