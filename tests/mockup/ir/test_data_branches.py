"""Hotspots that the processor's branch predictor can learn, as gcc compiles them."""

from __future__ import annotations

from pathlib import Path

import pytest

from layout_advise.mockup.ir.data_branches import branches_on_data
from tests.support.mockups.branching_kernels import BRANCHING
from tests.support.mockups.native import Native


@pytest.mark.parametrize("name", BRANCHING)
def test_ways_that_depend_on_what_is_loaded(name: str, tmp_path: Path) -> None:
    source, expected = BRANCHING[name]
    assert branches_on_data(Native(source, name, tmp_path, ("-O2", "-fno-if-conversion")).lifted()) is expected
