"""Loops over the elements of a block, inside of those that they share and in plain C, do what the machine code does."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from layout_advise.build.mockups import make_all
from layout_advise.errors import NotVectorisedError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.run.compilers import GCC
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.recipes import Code, recipes
from layout_advise.propose.source import Source
from layout_advise.tracer.trace.trace import Trace
from tests.support import slower
from tests.support.compilers import HASWELL, needs_clang
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout
from tests.support.mockups.vector_kernels import FLAGS, KMEANS, NUMBERS, TERMS, VectorKernel, loop_kernel

BLOCKS = ("aosoa", "blocks")


class Turned(VectorKernel):
    """The same with loops over a block's elements inside."""

    def emitted(
        self, lifted: Lifted, layout: Candidate | None, trace: Trace, structure: Structure, vector_bytes: int
    ) -> str:
        self.made = lifted, trace, structure
        return emit_mockup(lifted, layout, trace, (structure,), variant="lanes", vector_bytes=vector_bytes)


def numbers(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def kmeans(where: Path, vector_bytes: int, count: int, block: int) -> Turned:
    """The nearest centre of each point, compared with the native function's."""
    case = Turned(KMEANS, "assign", 5, where, FLAGS[vector_bytes])
    data = numbers(5 * count, 1)
    data[::7] = np.nan
    assert case.run(data, numbers(12, 2), BLOCKS, vector_bytes, block) == set(BLOCKS)
    return case


@pytest.mark.parametrize(("count", "block", "vector_bytes"), [(3, 8, 32), (29, 8, 32), *slower((29, 16, 16), (16, 4, 32))])
def test_kmeans_in_plain_c(tmp_path: Path, count: int, block: int, vector_bytes: int) -> None:
    text = kmeans(tmp_path, vector_bytes, count, block).texts["blocks"]
    assert "vector_size" not in text
    assert '"lanes.h"' not in text
    assert f"for (int e = 0; e < {block}; ++e) {{" in text


def test_a_choice_is_written_where_it_is_assigned(tmp_path: Path) -> None:
    """Of one that is stored later gcc makes no masked store, and twice the speed of what one writes by hand."""
    text = kmeans(tmp_path, 32, 29, 8).texts["blocks"]
    assert any("_all[e] ? " in line and line.strip().endswith("_all[e];") for line in text.splitlines())


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
def test_the_compiler_makes_vectors_of_it(compiler: str, tmp_path: Path) -> None:
    case = kmeans(tmp_path, 32, 29, 8)
    lifted, trace, structure = case.made
    chosen = replace(candidate(relayout(structure, "blocks", 8)), block=8)
    code = Code(lifted, lifted)
    recipe = next(r for r in recipes((chosen,), code) if r.variant.promise == "lanes")
    source = Source(code, lifted, trace, (structure,), Compiled(compiler, HASWELL))
    (made,) = make_all([recipe], source, source.compiler, tmp_path / compiler).values()
    assert made.path is not None, made.reason
    assert not {*GCC.only_these, "-fno-tree-vectorize", "-fno-slp-vectorize"} & set(made.flags)
    shown = subprocess.run(["objdump", "-d", str(made.path)], capture_output=True, text=True, check=True).stdout
    assert any("vsubps" in line and "%ymm" in line for line in shown.splitlines())


def test_only_blocks_with_loops_in_them_are_tried_so(tmp_path: Path) -> None:
    lifted, _, structure = kmeans(tmp_path, 32, 29, 8).made
    blocks, arrays = (candidate(relayout(structure, kind, 8)) for kind in ("blocks", "soa"))
    layouts = (replace(blocks, id="c1", block=8), replace(arrays, id="c2"))
    assert {str(r.variant) for r in recipes(layouts, Code(lifted, lifted)) if r.variant.promise == "lanes"} == {"c1-lanes"}
    flat = replace(lifted, body=tuple(i for i in lifted.body if not hasattr(i, "body")))
    assert not [r for r in recipes(layouts, Code(flat, flat)) if r.variant.promise == "lanes"]
    assert not next(r for r in recipes(layouts, Code(lifted, lifted)) if r.variant.promise == "lanes").checked


def compare(source: str, where: Path, vector_bytes: int, seed: int, count: int, rows: int) -> str:
    """Why it is not written so; else it left the same bytes."""
    flags = ("-fno-math-errno", "-fno-strict-aliasing", *FLAGS[vector_bytes])
    case = Turned(source, "run", 5, where, flags, blurred=(4,))
    words = numbers(5 * count, seed).reshape(-1, 5)
    words[:, 2:4] = np.random.default_rng(seed).integers(-9, 9, (count, 2)).astype(np.int32).view(np.float32)
    try:
        case.run(words.ravel(), np.append(numbers(3 * rows, seed), np.float32(0)), BLOCKS, vector_bytes, 8)
    except NotVectorisedError as error:
        return error.why
    return ""


STRAIGHT = st.one_of(
    st.builds("{0} = {1} {2} {3};".format, st.sampled_from("sq"), TERMS, st.sampled_from("+-*"), TERMS),
    st.builds("{0} = (int32_t)((uint32_t)({1}) + (uint32_t)({2}));".format, st.sampled_from("nm"), NUMBERS, NUMBERS),
    st.builds("{0} = {0} < {1} ? {0} : {1};".format, st.sampled_from("sq"), st.sampled_from("uvw")),
)
"""Statements of which compilers make no jumps."""


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_kernels_leave_the_same_bytes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    some = st.lists(STRAIGHT, min_size=1, max_size=5).map(" ".join)
    source = loop_kernel(data.draw(some), data.draw(some), data.draw(st.one_of(st.just(""), some)))
    where, seed = tmp_path_factory.mktemp("turned"), data.draw(st.integers(0, 1000))
    count, rows = data.draw(st.integers(8, 40)), data.draw(st.integers(1, 4))
    event(compare(source, where, data.draw(st.sampled_from((16, 32))), seed, count, rows) or "in plain C")


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.integers(1, 4))
@example(rows=1)
@example(rows=3)
def test_moves_that_depend_on_each_other(tmp_path_factory: pytest.TempPathFactory, rows: int) -> None:
    """Variables exchanged, some that all elements share, and counters read as numbers."""
    body = "const float t = s; s = q + w; q = t * u; n = m; m = (int32_t)i + (int32_t)r;"
    after = "s += u; q -= v; n += (int32_t)r;"
    assert not compare(loop_kernel(body, "s = s + (float)i;", after), tmp_path_factory.mktemp("moves"), 32, 5, 29, rows)


def test_elements_that_jump_apart_are_refused(tmp_path: Path) -> None:
    body = "if (n > 0) { s += table[0][(n + (int32_t)r) % 3] / u; q += (float)((m + (int32_t)r) / n); }"
    assert "jump at different places" in compare(loop_kernel(body), tmp_path, 32, 3, 29, 4)


def test_what_lies_in_no_blocks_is_refused(tmp_path: Path) -> None:
    lifted, trace, structure = kmeans(tmp_path, 32, 29, 8).made
    for layout in (None, candidate(relayout(structure, "soa"))):
        with pytest.raises(NotVectorisedError, match="no blocks"):
            emit_mockup(lifted, layout, trace, (structure,), variant="lanes")


@pytest.mark.parametrize("block", [8, *slower((4,), (16,))])
def test_values_after_the_loop_are_those_of_the_last_element(tmp_path: Path, block: int) -> None:
    source = """
void run(float *p, long n, float *table, long rows)
{
    float s = 0, q = 0;
    for (long i = 0; i < n; i++) {
        s = 0;
        for (long r = 0; r < rows; r++) s = s * 0.5f + table[3 * r] * p[5 * i + 2];
        q = s + p[5 * i + 1];
        p[5 * i] = s;
    }
    p[3] = s;
    p[4] = q;
}
"""
    case = Turned(source, "run", 5, tmp_path, HASWELL)
    for count in (2, 9, 16, 17):
        case.run(np.arange(5 * count, dtype=np.float32), np.ones(12, np.float32), BLOCKS, 32, block)
