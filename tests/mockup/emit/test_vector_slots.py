"""Loops whose iterations run side by side do what the machine code does: branches, NaNs, remainders, any layout."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from layout_advise.errors import NotVectorisedError
from layout_advise.mockup.emit.simd.vector_slots import vector_include
from layout_advise.mockup.ir.lifted import Item, LiftedLoop
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.run.build import vector_bytes
from tests.support.compilers import HASWELL
from tests.support.mockups.vector_kernels import FLAGS, KMEANS, NUMBERS, TERMS, VectorKernel, loop_kernel


def loops(items: tuple[Item, ...]) -> list[LiftedLoop]:
    return [x for item in items if isinstance(item, LiftedLoop) for x in (item, *loops(item.body))]


ALL = ("identity", "soa", "aosoa")


@pytest.mark.parametrize(("count", "block", "vector_bytes"), [(3, 8, 32), (29, 8, 32), (29, 16, 16), (16, 4, 32)])
def test_kmeans_runs_points_side_by_side(tmp_path: Path, count: int, block: int, vector_bytes: int) -> None:
    case = VectorKernel(KMEANS, "assign", 5, tmp_path, FLAGS[vector_bytes])
    values = np.random.default_rng(1)
    data = values.standard_normal(5 * count).astype(np.float32)
    data[::7] = np.nan
    table = values.standard_normal(12).astype(np.float32)
    done = case.run(data, table, ALL, vector_bytes, block)
    assert done == set(ALL)


@pytest.mark.parametrize(("block", "vector_bytes", "bytes_"), [(4, 32, 4), (8, 32, 4), (4, 16, 4), (16, 16, 4)])
def test_masks_are_as_wide_as_what_is_compared(tmp_path: Path, block: int, vector_bytes: int, bytes_: int) -> None:
    """Floats in blocks of four had masks of eight bytes with AVX2, and ten instructions to come from one to the other."""
    case = VectorKernel(KMEANS, "assign", 5, tmp_path, FLAGS[vector_bytes])
    values = np.random.default_rng(1)
    data, table = (values.standard_normal(n).astype(np.float32) for n in (5 * 16, 12))
    case.run(data, table, ("aosoa",), vector_bytes, block)
    assert f"#define LA_MASK_BYTES {bytes_}\n" in case.texts["aosoa"]


def test_a_mask_fills_at_least_eight_bytes_and_at_most_a_register() -> None:
    found = {(n, c): vector_include(n, 32, c).split("LA_MASK_BYTES ")[1][0] for n in (2, 4, 8, 16) for c in (1, 4, 8)}
    assert [found[n, 1] for n in (2, 4, 8, 16)] == ["4", "2", "1", "1"]  # la_any reads quads
    assert [found[n, 4] for n in (2, 4, 8, 16)] == ["4", "4", "4", "2"]
    assert [found[n, 8] for n in (2, 4, 8, 16)] == ["8", "8", "4", "2"]


TESTS = st.sampled_from(
    ("s < u", "q >= v", "s != s", "n < m", "(n & 3) == 0", "s < q && n > 0", "!(q > w) || m == n", "u < v")
)


@st.composite
def statements(draw: st.DrawFn, depth: int = 0) -> str:
    """Assignments, some under conditions."""
    kind = draw(st.sampled_from(("float", "number", "if", "else", "choice") if depth < 2 else ("float", "number", "choice")))
    if kind == "float":
        return f"{draw(st.sampled_from('sq'))} = {draw(TERMS)} {draw(st.sampled_from('+-*'))} {draw(TERMS)};"
    if kind == "number":
        return f"{draw(st.sampled_from('nm'))} = (int32_t)((uint32_t)({draw(NUMBERS)}) + (uint32_t)({draw(NUMBERS)}));"
    if kind == "choice":
        return f"s = {draw(TESTS)} ? {draw(TERMS)} : {draw(TERMS)};"
    inner = " ".join(draw(st.lists(statements(depth + 1), min_size=1, max_size=3)))
    if kind == "if":
        return f"if ({draw(TESTS)}) {{ {inner} }}"
    return f"if ({draw(TESTS)}) {{ {inner} }} else {{ {draw(statements(depth + 1))} }}"


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_kernels_leave_the_same_bytes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    some = st.lists(statements(), min_size=1, max_size=3).map(" ".join)
    source = loop_kernel(data.draw(some), data.draw(some), data.draw(st.one_of(st.just(""), some)))
    vector_bytes = data.draw(st.sampled_from((16, 32)))
    seed, count = data.draw(st.integers(0, 1000)), data.draw(st.integers(1, 40))
    compare(source, tmp_path_factory.mktemp("lanes"), vector_bytes, seed, count, data.draw(st.integers(0, 4)))


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.integers(0, 5))
@example(rows=1)
@example(rows=3)
def test_a_loop_that_is_written_out_twice_is_left_in_the_middle(tmp_path_factory: pytest.TempPathFactory, rows: int) -> None:
    """Its count was the distance over twice the step: none for a single row, and one too few for every odd number."""
    compare(loop_kernel("s = n < m ? q : fabsf(s);", "s = s * s;", ""), tmp_path_factory.mktemp("twice"), 32, 0, 5, rows)


@pytest.mark.slow
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.integers(0, 5))
@example(rows=3)
def test_a_pointer_leaves_two_loops_at_once(tmp_path_factory: pytest.TempPathFactory, rows: int) -> None:
    """What the outer loop adds to the inner one's count was computed before both, and the row loop never ended."""
    before = (
        "m = (int32_t)((uint32_t)(m * 3) + (uint32_t)(n + (int32_t)r)); "
        "if (q >= v) { s = s != s ? s * u : q; } s = s * u * s;"
    )
    inside = (
        "s = u < v ? q + v : sqrtf(fabsf(q)); s = s != s ? q + v : s; "
        "if (n < m) { q = q + v * q + v; } else { q = q - s - w; }"
    )
    compare(loop_kernel(inside, before, ""), tmp_path_factory.mktemp("leaves"), 32, 328, 27, rows)


def compare(source: str, where: Path, vector_bytes: int, seed: int, count: int, rows: int, *, far: bool = False) -> set[str]:
    """Random elements, some not numbers, infinite or zero; ``far``: m is no index of the table where n is not 1..3."""
    flags = ("-fno-math-errno", "-fno-strict-aliasing", *FLAGS[vector_bytes])
    case = VectorKernel(source, "run", 5, where, flags, blurred=(4,))
    values = np.random.default_rng(seed)
    words = values.standard_normal((count, 5)).astype(np.float32)
    words[values.random((count, 5)) < 0.1] = values.choice(np.array([np.nan, np.inf, -0.0, 0.0, -np.inf], np.float32))
    words[:, 2:4] = values.integers(-9, 9, (count, 2)).astype(np.int32).view(np.float32)
    if far:
        numbers = words.view(np.int32)
        numbers[:, 3] = np.where((numbers[:, 2] > 0) & (numbers[:, 2] < 4), numbers[:, 3] % 9, 1 << 28)
    table = values.standard_normal(3 * rows).astype(np.float32)
    try:
        done = case.run(words.ravel(), np.append(table, np.float32(0))[: 3 * rows + 1], ALL, vector_bytes, 8)
    except NotVectorisedError as error:
        if far:
            raise
        event(error.why)
        return set()
    if far:
        return done
    event(f"{len(done)} side by side")
    return done


@pytest.mark.parametrize(
    ("vector_bytes", "body"),
    [
        (
            32,
            "if (n > 0) { s += table[0][(n + (int32_t)r) % 3] / u; q += (float)((m + (int32_t)r) / n); }",
        ),  # would divide by 0
        (32, "if (n > 0 && n < 4) { s = s * u + ((float *)table)[m + n]; }"),  # would load from anywhere
        (16, "if (s < u) { if (q < v) { s = v; if (n & 1) q = w; } else { n++; } }"),
        (32, "if (!(s < u)) s = u; else if (!(q < v)) q = v; else m = (int32_t)r;"),
        (16, "n = s < u ? (int32_t)r : n; s = fminf(s, u); q = fabsf(q - (float)i);"),
    ],
)
def test_branches_become_masks(tmp_path: Path, vector_bytes: int, body: str) -> None:
    assert compare(loop_kernel(body), tmp_path, vector_bytes, 3, 29, 4, far=True) == set(ALL)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("float t = 0; for (long i = 0; i < n; i++) { LOOP t += s; p[5 * i] = t; }", "the one before"),
        ("for (long i = 0; i < n; i++) { LOOP p[5 * i] = s; if (s > 9) break; }", "leave a loop at different times"),
        ("for (long i = 0; i < n; i++) { rows = (int)table[4 * i % 9]; LOOP p[5 * i] = s; }", "differs from iteration"),
    ],
)
def test_what_cannot_run_side_by_side_says_why(tmp_path: Path, source: str, why: str) -> None:
    loop = "float s = 0; for (long r = 0; r < rows; r++) s = s * 0.5f + table[3 * r] * p[5 * i + 2];"
    text = f"void run(float *p, long n, float *table, long rows) {{ {source.replace('LOOP', loop)} }}"
    case = VectorKernel(text, "run", 5, tmp_path, ("-O2",))
    said = ""
    try:
        assert case.run(np.ones(40, np.float32), np.ones(12, np.float32), ("identity",), 16, 4) == set()
    except NotVectorisedError as error:
        said = error.why
    assert why in (said or case.texts["identity"])  # in the text, where another loop is told of


def test_values_after_the_loop_are_those_of_the_last_element(tmp_path: Path) -> None:
    source = """
void run(float *p, long n, float *table, long rows)
{
    float s = 0, q = 0;
    for (long i = 1; i < n; i++) {
        s = 0;
        for (long r = 0; r < rows; r++) s = s * 0.5f + table[3 * r] * p[5 * i + 2];
        q = s > 1 ? s : p[5 * i + 1];
        p[5 * i] = s;
    }
    p[3] = s;
    p[4] = q;
}
"""
    case = VectorKernel(source, "run", 5, tmp_path, HASWELL)
    for count in (1, 2, 9, 16, 17):
        done = case.run(np.arange(5 * count, dtype=np.float32), np.ones(12, np.float32), ("identity", "soa"), 32, 8)
        assert done == {"identity", "soa"} or count < 3


def test_a_register_that_may_hold_a_result_stops_nothing(tmp_path: Path) -> None:
    """Of a function whose type is not known rax and xmm0 stay alive; what the last element left there is compared."""
    source = KMEANS.replace("void assign", "float assign").replace(
        "distance = nearest;\n    }", "distance = last = nearest;\n    }"
    )
    source = (
        source.replace("long centres)\n{", "long centres)\n{\n    float last = 0;").rstrip().removesuffix("}")
        + "return last; }"
    )
    case = VectorKernel(source, "assign", 5, tmp_path, HASWELL)
    case.lifted = lift(case.native.region, result="any")
    assert case.lifted.live_outs
    data = np.random.default_rng(2).standard_normal(5 * 21).astype(np.float32)
    assert case.run(data, np.ones(9, np.float32), ("identity", "aosoa"), 32, 8) == {"identity", "aosoa"}
    case.native.function.restype = ctypes.c_float
    left = np.frombuffer(case.left.vector[0][:4], np.float32)[0]
    work = data.copy()
    arguments = (work.ctypes.data, 21, np.ones(9, np.float32).ctypes.data, 3)
    assert left == case.native.function(*(ctypes.c_uint64(a) for a in arguments))


def test_vectors_are_no_wider_than_the_flags_allow() -> None:
    assert vector_bytes("gcc", ("-O2",)) == vector_bytes("no such compiler", ()) == 16
    assert vector_bytes("gcc", HASWELL) == vector_bytes("gcc", ("-O3", "-march=skylake-avx512")) == 32
