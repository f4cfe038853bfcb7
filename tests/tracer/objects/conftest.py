"""A logger of allocations for programs that are traced without the agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tracing.traced_objects import build_logger


@pytest.fixture(scope="module")
def logger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logger's library."""
    return build_logger(tmp_path_factory.mktemp("logger"))
