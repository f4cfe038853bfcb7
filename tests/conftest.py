"""Fixtures for all tests: a fixed terminal width, no colours."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None)  # nothing is timed in tests: the machine may be busy
settings.load_profile("house")


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same width and no colours everywhere."""
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
