"""Random programs print the same in random layouts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.applying.record_programs import RecordProgram, programs
from tests.support.applying.rewritten import SANITIZED, WARNINGS, changed, output


def check(program: RecordProgram, flags: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        new = changed(
            {"p.c": program.text}, "item", program.groups, folder, guard=True, blocks=program.blocks, apart=program.apart
        )
        assert output(new, flags) == output(folder / "old", flags)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_programs_print_the_same(program: RecordProgram) -> None:
    check(program, WARNINGS)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_a_thousand_random_programs_print_the_same(program: RecordProgram) -> None:
    check(program, WARNINGS)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_programs_are_clean_under_sanitizers(program: RecordProgram) -> None:
    check(program, SANITIZED)
