"""What the body of a parallel region is handed names the memory that it works on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.tracer.backends.clone.record_team import trace_region
from layout_advise.tracer.objects.attribution import attribute
from layout_advise.tracer.objects.outlined_arguments import RSI, arguments_kept
from layout_advise.tracer.process.patching import RDI
from tests.support.openmp.programs import needs_libomp
from tests.support.tracing.openmp_traces import parked_team

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
struct order { double price, quantity, pnl, rest[5]; };
struct market { double mid; };
__attribute__((noinline)) void reprice(struct order *orders, int n, const struct market *m)
{
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
        double gap = m->mid - orders[i].price;
        orders[i].price += 0.1 * gap;
        orders[i].pnl += orders[i].quantity * gap;
    }
}
int main(int argc, char **argv)
{
    int n = 1000 + argc;
    struct order *book = calloc(n, sizeof *book);
    struct market m = {100};
    for (int k = 0; k < 8; k++)
        reprice(book, n, &m);
    printf("%g\\n", book[7].price);
    free(argv[0] ? book : 0);
}
"""


@pytest.mark.parametrize(
    "command",
    [("gcc", "-O2"), ("gcc", "-O3", "-march=haswell"), pytest.param(("clang", "-O2"), marks=needs_libomp)],
    ids=" ".join,
)
def test_arrays_that_the_function_was_handed_have_its_names(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "book.c").write_text(PROGRAM)
    subprocess.run([*command, "-g", "-fopenmp", "-o", tmp_path / "book", tmp_path / "book.c"], check=True)
    with parked_team(tmp_path / "book", 3, 1, "reprice") as (process, binary, function), process.fork() as copy:
        trace = trace_region(process, copy, binary.region(function, process.load_base, callees=True), 3)
        objects = attribute(trace, binary, process.read).objects
    (orders,) = (one for one in objects if one.kind == "heap" and one.bytes > 64000)
    assert orders.name == "orders"
    assert orders.type is not None
    assert [member.name for member in orders.type.members][:3] == ["price", "quantity", "pnl"]


def test_a_register_that_was_written_tells_no_place_any_more() -> None:
    code = bytes.fromhex("55 89f7 90 e800000000 90")  # push rbp; mov edi, esi; nop; call; nop
    both = frozenset((RDI, RSI))
    assert list(arguments_kept(code, 16, both)) == [(16, both), (17, both), (19, {RSI}), (20, {RSI})]
