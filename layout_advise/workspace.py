"""The workspace of a run: its files and its progress."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from layout_advise.progress import Progress
from layout_advise.rundir import RegionDir


@dataclass(frozen=True, slots=True)
class Workspace:
    """``region`` is the studied region's part of the run directory, ``scratch`` a folder that is gone afterwards."""

    region: RegionDir
    scratch: Path
    progress: Progress
