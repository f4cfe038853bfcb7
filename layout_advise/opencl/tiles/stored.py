"""Calibrations kept in the user's cache, one file a device: the tree, what it rests on, and when it was made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from layout_advise.machine import cpu_fields
from layout_advise.opencl.tiles.samples import TileSample
from layout_advise.tiles import kept
from layout_advise.tiles.tree import TileTree

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
        return kept.days_since(self.created)

    @property
    def told(self) -> str:
        """One line about it."""
        return kept.aged(self.created, len(self.samples), self.loss)


def file_of(device: Any) -> Path:
    """The file of a device's calibration: another driver or processor has another one."""
    return kept.file_for((device.platform.name, device.name, device.driver_version, machine_name()))


def machine_name() -> str:
    """The processor's name."""
    return cpu_fields().get("model name", "unknown")


def stored(device: Any) -> Calibration | None:
    """The calibration of a device; None where there is none that can be read."""
    found = kept.read(file_of(device), Calibration)
    return found if found is not None and found.schema == SCHEMA else None


def store(device: Any, calibration: Calibration) -> Path:
    """Keeps it in the place of an older one."""
    return kept.write(file_of(device), calibration)
