"""Helpers that several tests share; no tests."""

from __future__ import annotations

import pytest
from _pytest.mark import ParameterSet


def slower(*values: tuple[object, ...]) -> list[ParameterSet]:
    """Parameters that are run with the slow tests, as others beside them take the same ways; each a tuple of arguments."""
    return [pytest.param(*one, marks=pytest.mark.slow) for one in values]
