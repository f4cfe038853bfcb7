"""Kernels over arrays of structures of 4-byte words whose iterations a mock-up runs side by side."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.rewrite.passes import run_passes
from layout_advise.mockup.rewrite.reroll import reroll
from layout_advise.mockup.rewrite.unroll_field_loops import unroll_field_loops
from layout_advise.tracer.trace.trace import Trace
from tests.support.compilers import HASWELL
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import Native, candidate, relayout, run_mockup, traced

FLAGS = {16: ("-O2",), 32: HASWELL}

KMEANS = """
struct point { float x[3]; int label; float distance; };
void assign(struct point *p, long n, float (*centre)[3], long centres)
{
    for (long i = 0; i < n; i++) {
        float nearest = 3.4e38f;
        int best = 0;
        for (long c = 0; c < centres; c++) {
            float d = 0.0f;
            for (int k = 0; k < 3; k++) {
                const float t = p[i].x[k] - centre[c][k];
                d += t * t;
            }
            best = d < nearest ? (int)c : best;
            nearest = d < nearest ? d : nearest;
        }
        p[i].label = best;
        p[i].distance = nearest;
    }
}
"""


class VectorKernel:
    """A kernel over an array of structures of 4-byte words, and a table that all elements read. Of the words numbered
    ``blurred``, floats, any NaN is as good as another: of two the processor keeps the first operand's sign, and compilers
    exchange the operands of sums and products."""

    def __init__(
        self, source: str, symbol: str, words: int, where: Path, flags: tuple[str, ...], blurred: tuple[int, ...] = ()
    ) -> None:
        self.blurred = blurred
        self.native = Native(source, symbol, where, flags)
        self.lifted, self.words, self.where = self.native.lifted(), words, where
        self.texts: dict[str, str] = {}

    def run(self, data: np.ndarray, table: np.ndarray, kinds: tuple[str, ...], vector_bytes: int, block: int) -> set[str]:
        """Compare the native run with mock-ups of each kind of layout; which of these ran side by side."""
        count = len(data) // self.words
        work, start = data.copy(), data.copy()
        rows = len(table) // 3
        arguments = (work.ctypes.data, count, table.ctypes.data, rows)
        self.native.function(*(ctypes.c_uint64(a) for a in arguments))
        expected = work.copy()
        work[:] = start
        trace = traced(self.lifted, self.where, arguments, (), 1 << 18)
        work[:] = start
        fields = tuple(Field(f"f{k}", 4 * k, 4, "float", 1, 1) for k in range(self.words))
        structure = Structure(
            "s0", "p", work.ctypes.data, work.nbytes, (Dim(count, 4 * self.words),), fields, (), work.ctypes.data
        )
        lifted = run_passes(self.lifted, Evidence.of(trace, (structure,)), (unroll_field_loops, reroll), verify=True)
        abreast = set()
        for kind in kinds:
            layout = None if kind == "identity" else candidate(relayout(structure, kind, block))
            text = self.texts[kind] = self.emitted(lifted, layout, trace, structure, vector_bytes)
            done = run_mockup(text, self.where / f"{kind}.so", arguments, flags=FLAGS[vector_bytes])
            self.left = done.registers
            assert self.settled(work) == self.settled(expected), f"{kind}\n{text}"
            work[:] = start
            if "side by side" in text:
                abreast.add(kind)
        return abreast

    def settled(self, elements: np.ndarray) -> bytes:
        """What is compared of ``elements``."""
        rows = elements.reshape(-1, self.words).copy()
        for word in self.blurred:
            rows[np.isnan(rows[:, word]), word] = np.nan
        return rows.tobytes()

    def emitted(
        self, lifted: Lifted, layout: Candidate | None, trace: Trace, structure: Structure, vector_bytes: int
    ) -> str:
        return emit_mockup(lifted, layout, trace, (structure,), variant="simd", vector_bytes=vector_bytes)


def loop_kernel(body: str, before: str = "", after: str = "") -> str:
    """A loop over elements ``p[i]`` of five words, with a loop over the rows of a table in it."""
    return f"""
#include <math.h>
#include <stdint.h>
struct element {{ float a, b; int32_t n, m; float out; }};
void run(struct element *p, long count, float (*table)[3], long rows)
{{
    for (long i = 0; i < count; i++) {{
        float s = p[i].a, q = p[i].b;
        int32_t n = p[i].n, m = p[i].m;
        float u = 1.5f, v = -0.5f, w = 0.25f;
        long r = 3;
        {before}
        for (r = 0; r < rows; r++) {{
            u = table[r][0], v = table[r][1], w = table[r][2];
            {body}
            q = s * u - q;
        }}
        {after}
        p[i].out = s + q;
        p[i].m = n ^ m;
    }}
}}
"""


TERMS = st.sampled_from(("s", "q", "u", "v", "w", "s * u", "q + v", "s - w", "q / v", "fabsf(s)", "sqrtf(fabsf(q))"))

NUMBERS = st.sampled_from(
    ("n", "m", "n + (int32_t)r", "m * 3", "n ^ m", "(int32_t)i", "n >> 2", "m & 12", "(int32_t)(uint8_t)n")
)
