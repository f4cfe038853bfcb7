"""Parts that are compiled at first use, kept in the user's cache."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from layout_advise.errors import MachineError

_UNWRITABLE = "set LAYOUT_ADVISE_CACHE to a writable folder"


def cache_folder() -> Path:
    """The folder of compiled parts: ``LAYOUT_ADVISE_CACHE``, else ``XDG_CACHE_HOME/layout-advise``."""
    own = os.environ.get("LAYOUT_ADVISE_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "layout-advise"


def cached_library(target: Path, build: Callable[[Path], None], failed: str) -> Path:
    """``target``, made by ``build`` where it is not there: two runs at once build it twice and keep one.

    ``failed`` says what cannot be done, in the :class:`MachineError` for a cache that cannot be written.
    """
    if target.exists():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=".so")
        os.close(handle)
        fresh = Path(name)
        try:
            build(fresh)
            fresh.chmod(0o755)
            fresh.rename(target)  # atomic
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise MachineError(failed, str(error), _UNWRITABLE) from error
    return target


def cached_folder(target: Path, build: Callable[[Path], None], failed: str, hint: str = _UNWRITABLE) -> Path:
    """As :func:`cached_library`, of a folder that ``build`` fills."""
    if target.is_dir():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=target.parent))
        try:
            build(fresh)
            with contextlib.suppress(OSError):  # another run was faster: its folder is as good
                fresh.rename(target)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise MachineError(failed, str(error), hint) from error
    return target
