"""The files that a snapshot expects as they were: CRIU refuses to restore a process whose file has grown."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A regular file that a process had open for writing, and its size in bytes at that time."""

    path: Path
    device: int
    inode: int
    size: int


def written_files(pid: int) -> tuple[OpenFile, ...]:
    """The regular files that process ``pid`` has open for writing."""
    found = {}
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            status, target = entry.stat(), os.readlink(entry)
            flags = int(Path(f"/proc/{pid}/fdinfo/{entry.name}").read_text().split("flags:")[1].split()[0], 8)
        except OSError:  # not a file, or a deleted one: it goes into the dump whole
            continue
        if stat.S_ISREG(status.st_mode) and flags & os.O_ACCMODE != os.O_RDONLY:
            found[target] = OpenFile(Path(target), status.st_dev, status.st_ino, status.st_size)
    return tuple(found.values())


class GrownFiles:
    """Cuts files back before each restore.

    What stood there before the first cut is kept in ``folder``; :meth:`close` puts it back.
    """

    def __init__(self, files: tuple[OpenFile, ...], folder: Path) -> None:
        self._files = files
        self._folder = folder
        self._kept: dict[OpenFile, Path] = {}

    def cut(self) -> None:
        """Make every file as long as it was in the snapshot; raises OSError."""
        for number, file in enumerate(self._files):
            if _size(file) <= file.size:
                continue
            if file not in self._kept:
                kept = self._folder / f"tail-{number}"
                with file.path.open("rb") as source:
                    source.seek(file.size)
                    kept.write_bytes(source.read())
                self._kept[file] = kept
            os.truncate(file.path, file.size)

    def close(self) -> None:
        """Put back what was cut first."""
        for file, kept in self._kept.items():
            if _size(file) >= file.size:
                os.truncate(file.path, file.size)
                with file.path.open("ab") as target:
                    target.write(kept.read_bytes())
        self._kept.clear()


def _size(file: OpenFile) -> int:
    """The size of ``file`` now, -1 if another one stands in its place."""
    try:
        now = file.path.stat()
    except OSError:
        return -1
    return now.st_size if (now.st_dev, now.st_ino) == (file.device, file.inode) else -1
