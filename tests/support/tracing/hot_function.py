"""Programs parked at a call of one function."""

from __future__ import annotations

from pathlib import Path

from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park

MANY = 1 << 40
"""More accesses than any test makes."""

DEAD_LOADS = {"flags"}
"""Of the clone's programs those with loads whose value nothing uses: Valgrind removes them."""


def entry_of(program: Path, symbol: str = "hot") -> Entry:
    """Where calls of ``symbol`` enter, and its code."""
    binary = ElfBinary.open_module(program)
    function = binary.find(symbol)
    return Entry(program, function.start, binary.read(function.start, function.size), symbol)


def parked(program: Path, call: int) -> AgentProcess:
    """The program stopped at that call of ``hot``."""
    return park([str(program)], entry_of(program), call, timeout=60)
