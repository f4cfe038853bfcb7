# ruff: noqa: E501  (C source, a line a statement list)
"""The order of execution that the Valgrind tool folds is that of its raw records, and the clone's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.sets.nests import expand
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.protocol import Rerun
from layout_advise.tracer.backends.tool.order import order_of
from layout_advise.tracer.backends.tool.run import ToolRun
from layout_advise.tracer.backends.valgrind.record import ValgrindBackend
from layout_advise.tracer.backends.valgrind.run import run_tool
from layout_advise.tracer.folding.execution_order import count_nodes, fold_control
from layout_advise.tracer.trace.trace import Control, Trace
from tests.support.clone_programs import PROGRAMS, build, region_of
from tests.support.tracing.parked_programs import DEAD_LOADS, HASWELL, MANY, O2, entry_of, parked
from tests.support.tracing.trace_requests import request
from tests.support.tracing.traced_kernels import KERNELS, traced
from tests.support.tracing.unfolding import partition, unfolded

QUICK = ("particles", "triangle", "conditional")
QUICK_KERNELS = ("two loops in one", "a step here, a step there", "rows that grow to a size", "one turn that differs")
LANES = ("gather", "masked")  # Valgrind takes masked moves apart


def ordered(run: ToolRun) -> list[tuple[int, int, str, int]]:
    """The references in the order of the tool's pieces."""
    assert run.order is not None
    assert run.order.nodes is not None, run.order.reason
    pieces = run.order.pieces
    return [key(run, number) for name in expand(run.order.nodes) for number in pieces[name]]


def key(run: ToolRun, number: int) -> tuple[int, int, str, int]:
    seen = run.references[number]
    return seen.pc, seen.ordinal, seen.kind, seen.bytes


def recorded(run: ToolRun) -> list[tuple[int, int, str, int]]:
    assert run.records is not None
    return [key(run, number) for number in (run.records >> np.uint64(48)).tolist()]


def kernel(folder: Path, name: str, *flags: str) -> Path:
    source, program = folder / "p.c", folder / "p"
    main = "int main(void) { for (long k = 0; k < 3; k++) hot(k + 22); return 0; }\n"
    source.write_text(KERNELS[name].replace("void hot", "__attribute__((noipa)) void hot", 1) + "\n" + main)
    subprocess.run(["gcc", *flags, "-o", str(program), str(source)], check=True)
    return program


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        *(
            pytest.param(name, O2, marks=[] if name in QUICK_KERNELS else pytest.mark.slow)
            for name in KERNELS
            if name not in ("masked", "stencil")
        ),
        *(pytest.param(name, HASWELL, marks=[] if name == "masked" else pytest.mark.slow) for name in KERNELS),
    ],
)
def test_the_folded_order_is_that_of_the_records(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    program = kernel(tmp_path, name, *flags)
    raw, folded = traced(program, raw=True), traced(program, raw=False)
    expected = recorded(raw)
    assert ordered(raw) == expected
    assert ordered(folded) == expected
    control = control_of(folded)
    partition(control, len(folded.references))
    if control.nodes is None:  # what is too much for the one is too much for the other
        assert raw.records is not None
        assert fold_control(raw.records, len(raw.references)).nodes is None
        assert "folds badly" in (control.reason or "")
        return
    assert [key(folded, number) for number in unfolded(control)] == expected


def control_of(run: ToolRun) -> Control:
    assert run.order is not None
    references = len(run.references)
    return order_of(run.order, {n: n for n in range(references)}, references)


def by_place(trace: Trace) -> Iterator[tuple[int, int]]:
    assert trace.control is not None
    for number in unfolded(trace.control):
        reference = trace.references[number]
        yield reference.pc, reference.operand


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        *((name, O2) for name in QUICK),
        *(pytest.param(name, O2, marks=pytest.mark.slow) for name in PROGRAMS if name not in QUICK),
        *(pytest.param(name, HASWELL, marks=pytest.mark.slow) for name in PROGRAMS),
    ],
)
def test_the_order_is_the_clones(tmp_path: Path, name: str, flags: tuple[str, ...]) -> None:
    program = build(tmp_path, name, *flags)
    with parked(program, 2) as process:
        region = region_of(program, process.load_base)
        clone = trace_call(process, region, 2, folder=tmp_path)
        rerun = Rerun([str(program)], entry_of(program), 2, MANY, folder=tmp_path)
        mine = ValgrindBackend().trace(request(process, region, rerun)).trace
    assert clone.control is not None
    assert mine.control is not None
    if clone.control.nodes is None:
        assert mine.control.nodes is None
        return
    partition(mine.control, len(mine.references))
    here, there = list(by_place(mine)), list(by_place(clone))
    if name == "strings":  # cmps: the two operands of one instruction are read in the other order
        assert sorted(here) == sorted(there)
    elif name in DEAD_LOADS or name in LANES:
        common = set(here) & set(there)
        assert len(common) > 3
        assert [p for p in here if p in common] == [p for p in there if p in common]
    else:
        assert here == there
        assert mine.control.pieces == clone.control.pieces


@pytest.mark.parametrize("cap", [1, 7, 500, 900])
def test_a_cap_ends_the_order_where_it_ends_the_trace(tmp_path: Path, cap: int) -> None:
    program = build(tmp_path, "particles", *O2)
    whole = run_tool(Rerun([str(program)], entry_of(program), 1, MANY), raw=True)
    part = run_tool(Rerun([str(program)], entry_of(program), 1, cap))
    assert part.accesses == cap
    assert ordered(part) == recorded(whole)[:cap]
    control = control_of(part)
    assert [key(part, number) for number in unfolded(control)] == recorded(whole)[:cap]


BRANCHES = r"""
#include <stdlib.h>
#include <unistd.h>
#include <pthread.h>
long a[64]; unsigned long x = 1;
__attribute__((noipa)) void one(void) { a[1]++; } __attribute__((noipa)) void two(long k) { a[k]++; }
__attribute__((noipa)) void chance(long n) { for (long i = 0; i < n; i++) { x = x * 6364136223846793005 + 1442695040888963407;
    if (x >> 63) one(); if (x >> 62 & 1) two(x >> 58); if (x >> 61 & 1) two(3); } }
int to[2], from[2], two_threads; char byte; /* the other thread's turn comes in each call: it is waited for */
__attribute__((noipa)) void rows(long n) { if (two_threads && (write(to[1], &byte, 1) != 1 || read(from[0], &byte, 1) != 1)) abort();
    for (long i = 0; i < n; i++) { for (int j = 0; j < 40; j++) a[j] += a[j + 1]; a[63] += i; } }
static void *other(void *p) { while (read(to[0], &byte, 1) == 1) { a[50] ^= 3; write(from[1], &byte, 1); } return p; }
int main(int argc, char **argv) { pthread_t t; long k, n = atol(argv[2]); two_threads = argc > 3;
    if (two_threads && (pipe(to) || pipe(from) || pthread_create(&t, 0, other, 0))) return 1;
    for (k = 0; k < 3; k++) (*argv[1] == 'c' ? chance : rows)(n); return 0; }
"""


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("branches")
    (folder / "p.c").write_text(BRANCHES)
    subprocess.run(["gcc", "-O1", "-pthread", "-o", "p", "p.c"], cwd=folder, check=True)
    return folder / "p"


def test_an_irregular_order_is_left_out_with_the_reason(branches: Path) -> None:
    run = run_tool(Rerun([str(branches), "c", "40000"], entry_of(branches, "chance"), 2, MANY))
    assert control_of(run) == Control(None, (), "the order of execution is irregular: it does not fold")
    short = run_tool(Rerun([str(branches), "c", "200"], entry_of(branches, "chance"), 2, MANY), raw=True)
    assert ordered(short) == recorded(short)


def test_many_buffers_of_one_loop_and_another_thread(branches: Path) -> None:
    run = run_tool(Rerun([str(branches), "r", "20000", "too"], entry_of(branches, "rows"), 2, MANY))
    control = control_of(run)
    assert control.nodes is not None
    assert run.accesses > 1_600_000
    assert run.foreign > 0
    assert run.after is None  # what came and went may be the other's
    assert count_nodes(control.nodes) < 20
    sizes = [last - first + 1 for first, last in control.pieces]
    assert sum(sizes[piece] for piece in expand(control.nodes)) == run.accesses
