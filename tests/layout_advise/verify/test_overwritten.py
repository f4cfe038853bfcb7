"""Calls that write what is there already: what they only write holds other bytes before them, so that it can be compared."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Point
from layout_advise.tracer.trace.trace import Mapping, Reference, Registers, Trace
from layout_advise.verify.overwritten import overwritten
from tests.support.command import advise

FILTER = r"""
#include <stdio.h>
#include <stdlib.h>
struct pixel { float r, g, b, unused[5]; };
__attribute__((noinline)) void grey(const struct pixel *in, float *out, long n) {
    for (int k = 0; k < 4; k++)
        for (long i = 0; i < n; i++) out[i] = 0.3f * in[i].r + 0.6f * in[i].g + 0.1f * in[i].b;
}
int main(void) {
    long n = 20000;
    struct pixel *in = malloc(n * sizeof *in);
    float *out = malloc(n * sizeof *out);
    for (long i = 0; i < n; i++) in[i] = (struct pixel){i % 251, i % 241, i % 239, {0}};
    for (int k = 0; k < 60; k++) grey(in, out, n);
    printf("%g\n", out[77]);
}
"""


@pytest.mark.slow
def test_a_filter_that_runs_again_on_the_same_image_is_compared(tmp_path: Path) -> None:
    (tmp_path / "filter.c").write_text(FILTER)
    subprocess.run(["gcc", "-O2", "-g", "filter.c", "-o", "filter"], check=True, cwd=tmp_path)
    report = advise(["./filter"], "--restores", "3", "--hotspot", "grey", folder=tmp_path)
    (hotspot,) = report.hotspots
    assert hotspot.identity is not None
    assert hotspot.identity.evidence == "verified"
    assert {check.id: check.ok for check in report.quality.checks}["wrong-map"]
    assert any(c.evidence == "verified" and c.structures for c in hotspot.candidates)


REST = r"""
#include <stdio.h>
#include <stdlib.h>
struct cell { double level, supply, unused[6]; };
__attribute__((noinline)) void settle(struct cell *c, long n) {
    for (int k = 0; k < 5; k++)
        for (long i = 0; i < n; i++) c[i].level = 0.03125 * c[i].level + c[i].supply;
}
int main(void) {
    long n = 20000;
    struct cell *c = calloc(n, sizeof *c);
    for (long i = 0; i < n; i++) c[i].supply = i % 251;
    for (int k = 0; k < 60; k++) settle(c, n);
    printf("%g\n", c[77].level);
}
"""


@pytest.mark.slow
def test_a_program_that_comes_to_rest_after_the_first_call_is_measured(tmp_path: Path) -> None:
    """Five times five bits a call: the third leaves everything as it is. CI stopped one call too late once."""
    (tmp_path / "rest.c").write_text(REST)
    subprocess.run(["gcc", "-O2", "-g", "rest.c", "-o", "rest"], check=True, cwd=tmp_path)
    (tmp_path / "rest.c").unlink()
    report = advise(["./rest"], "--restores", "3", "--hotspot", "settle", "--call", "2", folder=tmp_path)
    (hotspot,) = report.hotspots
    assert hotspot.identity is not None
    assert (report.status, hotspot.identity.evidence) == ("complete", "verified"), hotspot.verdict.text
    instructions = [line for line in hotspot.source if line.uses]  # the source is gone
    assert all(line.address for line in instructions)
    (used, *_) = [line for line in instructions if any(use.structure == "s0" for use in line.uses)]
    assert "[" in used.text
    checks = {check.id: check for check in report.quality.checks}
    assert not checks["calls-verified"].ok
    assert checks["calls-verified"].value in (1.0, 2.0)


BASE, STACK = 0x10000, 0x7000_0000
Use = tuple[Literal["read", "write", "both"], int, int, int, int]
KINDS = st.sampled_from(("read", "write", "both"))
ACCESSES = st.tuples(KINDS, st.sampled_from((1, 4, 8)), st.integers(0, 300), st.integers(1, 24), st.integers(1, 40))


def folded(at: int, stride: int, count: int) -> FoldedStream:
    """A loop over addresses with a stride."""
    return FoldedStream((Loop(Affine(count), (Point(Affine(at, (stride,))),)),), count)


@given(st.lists(ACCESSES, min_size=1, max_size=6))
def test_what_is_written_and_nowhere_read_is_found(
    uses: list[tuple[Literal["read", "write", "both"], int, int, int, int]],
) -> None:
    references = tuple(Reference(k, 0x1000 + k, 0, kind, size) for k, (kind, size, *_) in enumerate(uses))
    streams = tuple(folded(BASE + at, stride, count) for _, _, at, stride, count in uses)
    registers = Registers((STACK,) * 16, 0x1000, 0, 0, 0)
    maps = (Mapping(BASE, 2 * BASE, "rw-p", 0, ""), Mapping(STACK - 4096, STACK + 4096, "rw-p", 0, "[stack]"))
    trace = Trace("f", 1, "clone", references, streams, 0, False, registers, maps, ())
    written: set[int] = set()
    read: set[int] = set()
    for kind, size, at, stride, count in uses:
        touched = {BASE + at + k * stride + b for k in range(count) for b in range(size)}
        written |= touched if kind == "write" else set()
        read |= touched if kind != "write" else set()
    found = {place.start + int(k) for place in overwritten(trace) for k in np.flatnonzero(place.only_written)}
    assert found == written - read
