"""Indices that a call brings along: no pointer of its arguments is divided in it."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.emit import emit
from layout_advise.mockup.evidence.binding import bind
from layout_advise.tracer.trace.trace import Trace
from tests.support import slower
from tests.support.mockups.case import FLAGS, Case, f64_fields, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, references_of, relayout, run_mockup, trace_of

STEP = """
struct p { double x, y, z, v, m; };
void step(struct p *q, struct p *other, double by) {
    q->x += by * q->v;
    q[-1].y += other->m * q->z;
    other->z = q->x - q->y;
}
void sweep(struct p *q, long n) {
    for (long i = 0; i < n; i++) q[i].x += q[i].v * q[i].m;
}"""

FIELDS = f64_fields(("x", 0), ("y", 8), ("z", 16), ("v", 24), ("m", 32))
KINDS = [("soa", 0), ("aosoa", 4), ("split", 0), ("compact", 0)]


def kernel_of(text: str) -> str:
    """The mock-up's own computation, without what is made before."""
    start = text.index("static LA_APART")
    return text[start : text.index("\n}\n", start)]


def particles(symbol: str, flags: tuple[str, ...], where: Path) -> tuple[Case, Structure, np.ndarray]:
    case = Case(STEP, symbol, flags, where)
    data = np.random.default_rng(4).random((37, 5))
    case.arrays = [data]
    shape = Structure("s0", "p", data.ctypes.data, data.nbytes, (Dim(37, 40),), FIELDS, (), data.ctypes.data)
    case.structures = (shape,)
    return case, shape, data


@pytest.mark.parametrize("flags", [FLAGS["O3-avx2"], *slower((FLAGS["O2"],))], ids=["O3-avx2", "O2"])
@pytest.mark.parametrize(("kind", "block"), KINDS)
def test_pointers_to_elements(kind: str, block: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    case, shape, data = particles("step", flags, tmp_path)
    case.integers, case.floats = [data.ctypes.data + 40 * 17, data.ctypes.data + 40 * 5], [0.25]
    chosen = candidate(relayout(shape, kind, block))
    verify(case, chosen)
    text = emit_mockup(case.lifted, chosen, case.trace, case.structures)
    assert "la_run_entered" in text
    assert not re.search(r"/ 40\b", kernel_of(text))
    assert "la_enter" not in emit_mockup(case.lifted, None, case.trace, case.structures)


@pytest.mark.parametrize(("kind", "block"), [KINDS[0], *slower(KINDS[1], KINDS[2]), KINDS[3]])
def test_where_a_loop_begins(kind: str, block: int, tmp_path: Path) -> None:
    case, shape, data = particles("sweep", ("-O2",), tmp_path)
    case.integers = [data.ctypes.data + 40 * 3, 30]
    chosen = candidate(relayout(shape, kind, block))
    verify(case, chosen)
    if kind != "aosoa":  # where its blocks begin the compiler is told
        assert not re.search(r"/ 40\b", kernel_of(emit_mockup(case.lifted, chosen, case.trace, case.structures)))


LENGTH = """
void length(const float *v, const long *n, float *out) {
    float sum = 0;
    for (long i = 0; i < *n; i++) sum += v[i] * v[i];
    *out = sum;
}"""


@pytest.mark.parametrize(("kind", "block"), [("compact", 0), ("blocks", 4)])
def test_a_pointer_into_the_structure_or_elsewhere_is_tested_once(kind: str, block: int, tmp_path: Path) -> None:
    """hnswlib: of two vectors one may be the query. Whether loops go on from a new pointer or the old one is no test of
    each access."""
    case = Case(LENGTH, "length", ("-O2", "-fno-tree-vectorize"), tmp_path)
    random = np.random.default_rng(6)
    data, own = random.random((24, 15)).astype(np.float32), random.random(8).astype(np.float32)
    count, out = np.array([8], np.int64), np.zeros(1, np.float32)
    case.arrays = [data, own, count, out]
    pointers = [data.ctypes.data + 60 * 7 + 12, own.ctypes.data, data.ctypes.data + 60 * 20 + 12]
    trace = traced_from(case, pointers, tmp_path)
    fields = tuple(Field(f"f{12 + 4 * k}", 12 + 4 * k, 4) for k in range(8))
    shape = Structure("s0", "memory", data.ctypes.data, data.nbytes, (Dim(24, 60),), fields, (), data.ctypes.data)
    assert bind(case.lifted, trace, (shape,)).shared
    made = emit(case.lifted, candidate(relayout(shape, kind, block)), trace, (shape,))
    assert made.translated == (frozenset() if kind == "compact" else {"s0"})
    text = made.text
    kernel = kernel_of(text)
    assert "LA_WITHIN" not in kernel
    assert bool(re.search(r"\(inside\d+ \? [^;]*\)\) \+ 4 \* i", kernel)) == (kind == "compact")
    check_from(case, pointers, text, tmp_path)


ALONG = """
struct p { float x, y; };
void along(const struct p *v, const long *n, float *out) {
    float sum = 0;
    for (long i = 0; i < *n; i++) sum += v[i].x * v[i - 1].x + v[i - 2].y;
    *out = sum;
}"""


@pytest.mark.parametrize(("kind", "block"), [("soa", 0), ("aosoa", 4)])
def test_neighbours_of_a_pointer_into_the_structure_or_elsewhere(kind: str, block: int, tmp_path: Path) -> None:
    """flac's prediction: no layout of its samples compiled ("inside1 undeclared"), as the indices of all terms but the first
    were made of the first one's."""
    case = Case(ALONG, "along", ("-O2", "-fno-tree-vectorize"), tmp_path)
    random = np.random.default_rng(6)
    data, own = random.random((24, 2)).astype(np.float32), random.random((12, 2)).astype(np.float32)
    count, out = np.array([8], np.int64), np.zeros(1, np.float32)
    case.arrays = [data, own, count, out]
    pointers = [data.ctypes.data + 8 * 7, own.ctypes.data + 16, data.ctypes.data + 8 * 12]
    trace = traced_from(case, pointers, tmp_path)
    fields = tuple(Field(name, at, 4, "float") for name, at in (("x", 0), ("y", 4)))
    shape = Structure("s0", "points", data.ctypes.data, data.nbytes, (Dim(24, 8),), fields, (), data.ctypes.data)
    text = emit(case.lifted, candidate(relayout(shape, kind, block)), trace, (shape,)).text
    check_from(case, pointers, text, tmp_path)


def traced_from(case: Case, pointers: Sequence[int], folder: Path) -> Trace:
    """The calls with each pointer in the place of the first argument, traced as one."""
    count, out = (array.ctypes.data for array in case.arrays[-2:])
    records = []
    for pointer in pointers:
        case.integers = [pointer, count, out]
        source = emit_mockup(case.lifted, None, empty_trace(case), (), check=True)
        records.append(run_mockup(source, folder / f"{pointer}.so", case.integers, (), records=1 << 10).records)
    return trace_of(case.lifted, np.concatenate(records), references_of(case.lifted), case.lifted.symbol)


def check_from(case: Case, pointers: Sequence[int], text: str, folder: Path) -> None:
    """The mock-up leaves what the function does, with each pointer in the place of the first argument."""
    count, out = case.arrays[-2:]
    for pointer in pointers:
        integers = [pointer, count.ctypes.data, out.ctypes.data]
        case.native.function(*(ctypes.c_int64(number) for number in integers))
        expected, out[0] = out[0], 0
        run_mockup(text, folder / f"new{pointer}.so", integers, (), flags=("-O2", "-ffp-contract=off"))
        assert out[0] == expected


def empty_trace(case: Case) -> Trace:
    return trace_of(case.lifted, None, references_of(case.lifted), case.lifted.symbol)
