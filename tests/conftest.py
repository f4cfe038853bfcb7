"""Fixtures for all tests: a fixed terminal width, no colours, a disk that is soon full."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from layout_advise.tracer.sampling.turns import VARIABLE, _Held

settings.register_profile("house", deadline=None)  # nothing is timed in tests: the machine may be busy
settings.load_profile("house")


def pytest_collection_finish() -> None:
    """What was made until now stays to the end: to look through all of it again and again, for what may be freed, took
    seconds, and in a child of this process it copied all pages."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same width and no colours everywhere."""
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")


@pytest.fixture(autouse=True)
def own_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests are not timed: those that run side by side do not wait for each other, and what one waited for is not taken from
    the clock of the next."""
    monkeypatch.setenv(VARIABLE, str(os.getpid()))
    monkeypatch.setattr(_Held, "waited", 0.0)


@pytest.fixture(autouse=True)
def own_calibrations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None of those that this machine may have: they would change what is proposed."""
    monkeypatch.setenv("LAYOUT_ADVISE_CALIBRATIONS", str(tmp_path / "calibrations"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    folder = tmp_path / "small-disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)
