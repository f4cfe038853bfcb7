"""The folder of a dump: on a tmpfs if memory allows, else on disk; never left behind."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from layout_advise.errors import SnapshotError
from layout_advise.tracer.offspring.processes import start_time

_PREFIX = "layout-advise-dump-"
_TMPFS = Path("/dev/shm")
_MARGIN = 64 << 20  # page tables, logs, and what other processes take meanwhile


def resident_bytes(pid: int) -> int:
    """Resident memory of process ``pid``: an upper bound of its dump."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    return 0


def make_dump_folder(size: int, disk: Path) -> Path:
    """A fresh folder with room for a dump of ``size`` bytes: on tmpfs, else below ``disk``.

    On tmpfs the dump and a restored process must fit into the memory that is available. Raises :class:`SnapshotError`
    where there is no room in either.
    """
    need = size + size // 16 + _MARGIN
    for place, room in ((_TMPFS, min(_free(_TMPFS), _available_memory() - need)), (disk, _free(disk))):
        if room >= need:
            return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-{start_time(os.getpid())}-", dir=place))
    raise SnapshotError(
        "cannot snapshot the program",
        f"its dump needs {need >> 20} MB, too much for {_TMPFS}; {max(_free(disk), 0) >> 20} MB are free in {disk}",
        "make room, choose another output folder with -o, or use --snapshot fork",
    )


def remove_stale_dumps(disk: Path) -> None:
    """Remove the dumps of runs that were killed: those whose process (pid and start time) is gone."""
    for place in {_TMPFS, disk}:
        for folder in place.glob(f"{_PREFIX}*"):
            owner = folder.name.removeprefix(_PREFIX).split("-")
            if len(owner) >= 3 and owner[0].isdigit() and start_time(int(owner[0])) != owner[1]:
                shutil.rmtree(folder, ignore_errors=True)


def _free(folder: Path) -> int:
    try:
        return shutil.disk_usage(folder).free if os.access(folder, os.W_OK) else -1
    except OSError:
        return -1


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0
