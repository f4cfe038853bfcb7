"""A program over particles, and that program parked at a call of its hotspot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park
from tests.support.tracing.parked_programs import entry_of
from tests.support.tracing.snapshot_programs import PROGRAM, N, build_program


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the module's programs are built."""
    return tmp_path_factory.mktemp("agent")


@pytest.fixture(scope="module")
def program(folder: Path) -> Path:
    """The program, compiled."""
    return build_program(folder, PROGRAM, "particles")


@pytest.fixture
def parked(program: Path) -> Iterator[AgentProcess]:
    """The program with N particles, parked at its fifth call."""
    with park([str(program), str(N)], entry_of(program, "hot"), 5, timeout=60, command_timeout=20) as stopped:
        yield stopped
