"""The calibration of a processor in the user's cache: the tree, what it rests on, where and when it was made."""

from __future__ import annotations

from pathlib import Path

import msgspec

from layout_advise import machine
from layout_advise.reports.model.contract import Machine
from layout_advise.tiles import kept
from layout_advise.tiles.processor.shapes import WalkSample
from layout_advise.tiles.tree import TileTree

SCHEMA = "layout-advise.processor-calibration/1"
PREFIX = "processor-"


class ProcessorCalibration(msgspec.Struct, frozen=True):
    """A processor's tree. Losses are times with the tiles chosen over those with the best ones, in the mean: ``loss`` of the
    tree on shapes that it was not trained on, ``loss_of_records`` of arrays of structures, ``loss_of_arrays`` of structures
    of arrays, ``loss_of_blocks`` of blocks as long as the longest vector. ``created`` in seconds since 1970."""

    schema: str
    machine: Machine
    compiler: str
    flags: tuple[str, ...]
    created: float
    tree: TileTree
    loss: float
    loss_of_records: float
    loss_of_arrays: float
    loss_of_blocks: float
    samples: tuple[WalkSample, ...]

    @property
    def told(self) -> str:
        """One line about it."""
        return f"{kept.aged(self.created, len(self.samples), self.loss)} on {self.machine.cpu}"


def is_alike(one: Machine, other: Machine) -> bool:
    """Tells whether tiles of one hold on the other: the same processor with the same caches, of however many cores."""
    return msgspec.structs.replace(one, cores=0) == msgspec.structs.replace(other, cores=0)


def file_of(here: Machine) -> Path:
    """The file of a machine's calibration: another processor, or other caches, have another one."""
    sizes = (here.line_bytes, here.l1d_bytes, here.l2_bytes, here.l3_bytes)
    return kept.file_for((here.cpu, *map(str, sizes)), PREFIX)


def stored(here: Machine | None = None) -> ProcessorCalibration | None:
    """The calibration of a machine, by default of this one; None where there is none that can be read."""
    here = here or machine.describe()
    found = kept.read(file_of(here), ProcessorCalibration)
    return found if found is not None and found.schema == SCHEMA and is_alike(found.machine, here) else None


def others(here: Machine | None = None) -> list[ProcessorCalibration]:
    """Those of other machines in the same cache, the newest first."""
    here = here or machine.describe()
    read = (kept.read(path, ProcessorCalibration) for path in sorted(kept.folder().glob(f"{PREFIX}*.json")))
    found = [one for one in read if one is not None and one.schema == SCHEMA and not is_alike(one.machine, here)]
    return sorted(found, key=lambda one: -one.created)


def store(calibration: ProcessorCalibration) -> Path:
    """Keeps it in the place of an older one."""
    return kept.write(file_of(calibration.machine), calibration)
