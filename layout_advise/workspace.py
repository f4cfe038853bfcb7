"""Where a run keeps its files and shows its progress."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from layout_advise.progress import Progress
from layout_advise.rundir import RunDir


@dataclass(frozen=True, slots=True)
class Workspace:
    """``run`` is the directory that stays, ``scratch`` one that is gone afterwards."""

    run: RunDir
    scratch: Path
    progress: Progress
