"""A complete run that is replaced, set aside until the new one is there: a run that is cut short gives it back.

Each step is one rename. The marker goes last into the folder and comes first out of it: with the marker in it the folder
holds the whole run, without it the rest belongs to what is outside.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

BEFORE, _GONE = ".layout-advise-before", ".layout-advise-gone"


def is_whole(path: Path, marker: str) -> bool:
    """Returns whether a whole run is set aside in the run directory ``path``."""
    return (path / BEFORE / marker).exists()


def set_aside(path: Path, names: Iterable[str], marker: str) -> None:
    """Moves the files ``names`` of the run directory away, then its ``marker``."""
    (path / BEFORE).mkdir(exist_ok=True)
    for name in [*names, marker]:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path / name, path / BEFORE / name)


def give_back(path: Path, marker: str, clear: Callable[[Path], None]) -> None:
    """Undoes :func:`set_aside`, also one that was cut short; ``clear`` removes what a newer run has written."""
    before = path / BEFORE
    if not before.is_dir():
        return
    if is_whole(path, marker):
        clear(path)
        os.replace(before / marker, path / marker)
    for each in before.iterdir():
        os.replace(each, path / each.name)
    before.rmdir()


def forget(path: Path) -> None:
    """The new run is there: the one before goes."""
    shutil.rmtree(path / _GONE, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.replace(path / BEFORE, path / _GONE)
    shutil.rmtree(path / _GONE, ignore_errors=True)
