"""Programs traced step by step up to the objects that they touch."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Node, Point, Stream
from layout_advise.tracer.backends.step.single_steps import trace_by_steps
from layout_advise.tracer.code.decoder import GPR_NAMES
from layout_advise.tracer.objects.attribution import Attribution, attribute
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.process.ptraced import PtracedProgram
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Allocation, Reference, Registers, Trace

# Stands in for the agent: writes address, size and return address of every allocation to a file.
LOGGER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *__libc_malloc(size_t); void *__libc_calloc(size_t, size_t);
static void note(void *block, size_t bytes, void *site) {
    static int file = -1;
    char line[96];
    if (file < 0) file = open(getenv("BLOCK_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    int length = snprintf(line, sizeof line, "%lu %lu %lu\n", (unsigned long)block, bytes, (unsigned long)site);
    if (write(file, line, length) != length) abort();
}
void *malloc(size_t n) { void *p = __libc_malloc(n); note(p, n, __builtin_return_address(0)); return p; }
void *calloc(size_t n, size_t m) { void *p = __libc_calloc(n, m); note(p, n * m, __builtin_return_address(0)); return p; }
"""


@dataclass(frozen=True)
class TracedObjects:
    trace: Trace
    found: Attribution

    def object(self, name: str) -> MemoryObject:
        return next(o for o in self.found.objects if o.name == name)

    @property
    def names(self) -> set[str]:
        return {o.name for o in self.found.objects}

    def accesses(self, name: str) -> int:
        number = self.found.objects.index(self.object(name))
        return sum(t.accesses or 0 for touches in self.found.touches for t in touches if t.object == number)


def build_logger(folder: Path) -> Path:
    """A library for LD_PRELOAD that logs every allocation."""
    (folder / "logger.c").write_text(LOGGER)
    command = ["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", "logger.so", "logger.c"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "logger.so"


def trace_objects(folder: Path, logger: Path, source: str, compiler: str, flags: str, symbol: str = "work") -> TracedObjects:
    """Compile, run to the first call of ``symbol``, trace that call step by step, attribute."""
    suffix = {"g++": ".cpp", "gfortran": ".f90"}.get(compiler, ".c")
    (folder / f"app{suffix}").write_text(source)
    subprocess.run([compiler, *flags.split(), "-o", "app", f"app{suffix}"], check=True, cwd=folder)
    log = folder / "blocks"
    binary = ElfBinary.open(folder / "app")
    environment = {"LD_PRELOAD": str(logger), "BLOCK_LOG": str(log), "LD_BIND_NOW": "1"}
    with PtracedProgram([str(folder / "app")], environment) as program:
        base = binary.load_base(program.mappings())
        assert base is not None
        region = binary.region(symbol, base)
        program.run_to(region.entry)
        registers, mappings = program.registers(), program.mappings()
        steps = trace_by_steps(program, region)
        blocks = [tuple(map(int, line.split())) for line in log.read_text().splitlines()] if log.exists() else []
        allocations = tuple(Allocation(a, n, order, site) for order, (a, n, site) in enumerate(blocks))
        state = Registers(tuple(int(getattr(registers, r)) for r in GPR_NAMES), registers.rip, 0, 0, registers.fs_base)
        streams: dict[tuple[int, int], list[int]] = {}
        for step in steps:
            streams.setdefault((step.pc, step.operand), []).append(step.address)
        references = tuple(Reference(k, pc, operand, "read", 1) for k, (pc, operand) in enumerate(streams))
        trace = Trace(symbol, 1, "step", references, tuple(map(folded, streams.values())), len(steps), False,
                      state, mappings, allocations)  # fmt: skip
        return TracedObjects(trace, attribute(trace, binary, program.read))


def folded(recorded: list[int]) -> Stream:
    """One nest per run of equal strides: what the folding gives, without its second level."""
    nodes: list[Node] = []
    start = 0
    while start < len(recorded):
        stride = recorded[start + 1] - recorded[start] if start + 1 < len(recorded) else 0
        stop = start + 1
        while stop < len(recorded) and recorded[stop] - recorded[stop - 1] == stride:
            stop += 1
        nodes.append(Loop(Affine(stop - start), (Point(Affine(recorded[start], (stride,))),)))
        start = stop
    return FoldedStream(tuple(nodes), len(recorded))
