"""Programs parked at a call of their function ``hot``."""

from __future__ import annotations

from pathlib import Path

from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.park import park

O2 = ("-O2",)
HASWELL = ("-O3", "-march=haswell")
MANY = 1 << 40
# Valgrind removes loads whose value nothing uses; nothing else differs.
DEAD_LOADS = {"flags"}


def entry_of(program: Path, symbol: str = "hot") -> Entry:
    binary = ElfBinary.open_module(program)
    function = binary.find(symbol)
    return Entry(program, function.start, binary.read(function.start, function.size), symbol)


def parked(program: Path, call: int) -> AgentProcess:
    return park([str(program)], entry_of(program), call, timeout=60)


HEAP = r"""
#include <stdlib.h>
static void *keep, *old, *grown, *stays;
__attribute__((noipa)) long hot(long n) { void *brief = malloc(500); *(volatile char *)brief = 1; free(brief);
    keep = malloc(777); free(old); old = NULL; grown = realloc(grown, 300000 + n); *(volatile char *)stays = 2;
    return keep != NULL; }
int main(void) { old = malloc(333); grown = malloc(64); stays = malloc(99); return hot(4) + hot(5) == 0; }
"""
