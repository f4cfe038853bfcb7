"""Packed instructions as vector statements: what they compute, in every layout, and which ones are left lane by lane."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layout_advise.mockup.emit.packs.find import nothing_packed, packed
from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import Item, Let, Lifted, Linear, Load, Origin, Store, Val
from tests.support import slower
from tests.support.compilers import needs_clang
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import Native, rows, run_mockup, traced

HASWELL = ("-O2", "-march=haswell")
REGISTERS = 4
PLAIN = ("add", "sub", "mul", "div", "min", "max", "addsub")
FUSED = ("fmadd", "fmsub", "fmaddsub", "fmsubadd")
OTHERS = ("sqrt", "negate", "abs", "swap", "low", "high", "first", "half", "parts")
FACTORS = (0.5, 0.75, 0.5, 1.25, 0.5, 0.5, 3.0, 0.5)
"""Of the lanes of ``parts``: some are those of ``half``, so that products by them are the same values."""


def statement(name: str, to: int, a: int, b: int, c: int, kind: str, width: int) -> str:
    """One intrinsic on registers of ``width`` bytes; ``kind`` is ps or pd."""
    mm, suffix = ("_mm256" if width == 32 else "_mm"), kind
    if name in PLAIN:
        return f"r{to} = {mm}_{name}_{suffix}(r{a}, r{b});"
    if name in FUSED:
        return f"r{to} = {mm}_{name}_{suffix}(r{a}, r{b}, r{c});"
    factors = ", ".join(map(str, reversed(FACTORS[: width // (8 if kind == "pd" else 4)])))
    return {
        "half": f"r{to} = {mm}_mul_{suffix}(r{a}, {mm}_set1_{suffix}(0.5));",
        "parts": f"r{to} = {mm}_mul_{suffix}(r{a}, {mm}_set_{suffix}({factors}));",
        "sqrt": f"r{to} = {mm}_sqrt_{suffix}(r{a});",
        "negate": f"r{to} = {mm}_xor_{suffix}(r{a}, {mm}_set1_{suffix}(-0.0));",
        "abs": f"r{to} = {mm}_andnot_{suffix}({mm}_set1_{suffix}(-0.0), r{a});",
        "swap": f"r{to} = {mm}_shuffle_{suffix}(r{a}, r{b}, {0x1B if kind == 'ps' else 5});",
        "low": f"r{to} = {mm}_unpacklo_{suffix}(r{a}, r{b});",
        "high": f"r{to} = {mm}_unpackhi_{suffix}(r{a}, r{b});",
        "first": f"r{to} = {mm}_blend_{suffix}(r{a}, r{b}, 1);",
    }[name]


def kernel(lines: list[str], kind: str, width: int) -> str:
    """The lines for every row of ``REGISTERS`` vectors; what the last register holds is handed on to the next row."""
    vector = f"__m{8 * width}{'d' if kind == 'pd' else ''}"
    mm, element = ("_mm256" if width == 32 else "_mm"), "double" if kind == "pd" else "float"
    lanes = width // (8 if kind == "pd" else 4)
    loads = "\n".join(f"        {vector} r{k} = {mm}_loadu_{kind}(p + {k * lanes});" for k in range(REGISTERS - 1))
    stores = "\n".join(f"        {mm}_storeu_{kind}(p + {k * lanes}, r{k});" for k in range(REGISTERS))
    body = "\n".join(f"        {line}" for line in lines)
    return f"""
#include <immintrin.h>
void run({element} *p, long n)
{{
    {vector} r{REGISTERS - 1} = {mm}_loadu_{kind}(p + {lanes});
    for (long i = 0; i < n; i++, p += {REGISTERS * lanes}) {{
{loads}
{body}
{stores}
    }}
}}
"""


def blurred(data: np.ndarray) -> bytes:
    """Any NaN is as good as another: compilers exchange the operands of sums and products."""
    return np.where(np.isnan(data), np.nan, data).astype(data.dtype).tobytes()


def both(
    source: str, kind: str, where: Path, flags: tuple[str, ...], width: int, compiler: str = "gcc"
) -> tuple[str, bytes, bytes]:
    """The mock-up's text, and what the original and the mock-up make of the same rows."""
    native = Native(source, "run", where, HASWELL)
    lifted = native.lifted()
    lanes = width // (8 if kind == "pd" else 4)
    start = np.random.default_rng(5).uniform(-2.0, 2.0, (9, REGISTERS * lanes)).astype("f8" if kind == "pd" else "f4")
    start[2, 0], start[3, 1], start[4, :lanes], start[5, -1] = -0.0, np.inf, 0.0, 1e30
    work = start.copy()
    arguments = (work.ctypes.data, len(work))
    native.function(*(ctypes.c_uint64(a) for a in arguments))
    expected = blurred(work)
    work[:] = start
    trace = traced(lifted, where, arguments, ())
    work[:] = start
    text = emit_mockup(lifted, None, trace, (), vector_bytes=width)
    run_mockup(text, where / "mockup.so", arguments, flags=flags, compiler=compiler)
    return text, expected, blurred(work)


QUICK = (("ps", 32), ("pd", 16))
"""Kinds and widths of which every operation has one in the quick tests, by turns."""
STEPS = st.tuples(st.sampled_from(PLAIN + FUSED + OTHERS), *(st.integers(0, REGISTERS - 1) for _ in range(4)))
SHAPES = st.sampled_from((("ps", 16), ("pd", 16), ("ps", 32), ("pd", 32)))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=2, max_size=9), shape=SHAPES, flags=st.sampled_from((("-O1",), ("-O2",), HASWELL)))
def test_any_sequence_of_packed_instructions_gives_the_same(
    steps: list[tuple[str, int, int, int, int]],
    shape: tuple[str, int],
    flags: tuple[str, ...],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    kind, width = shape
    source = kernel([statement(*step, kind=kind, width=width) for step in steps], kind, width)
    _, expected, found = both(source, kind, tmp_path_factory.mktemp("packs"), flags, width)
    assert found == expected


@pytest.mark.parametrize(
    ("name", "kind", "width"),
    [
        pytest.param(name, *shape, marks=[] if shape == QUICK[place % 2] else pytest.mark.slow)
        for place, name in enumerate((*PLAIN, *FUSED, "sqrt", "negate", "abs"))
        for shape in (("ps", 32), ("pd", 16), ("ps", 16), ("pd", 32))
    ],
)
def test_each_operation_is_one_statement(name: str, kind: str, width: int, tmp_path: Path) -> None:
    steps = [(name, 2, 0, 1, 2), ("mul", 3, 2, 0, 0), ("add", 2, 3, 0, 0)]
    source = kernel([statement(*step, kind=kind, width=width) for step in steps], kind, width)
    text, expected, found = both(source, kind, tmp_path, HASWELL, width)
    assert found == expected
    vector = f"la_f{32 if kind == 'ps' else 64}x{width // (4 if kind == 'ps' else 8)}"
    stated = re.findall(rf"const {vector} p\d+ = (?!\*\()", text)
    assert len(stated) == (4 if name == "fmsub" else 3)  # fmsub: the addend's sign by itself
    assert not re.findall(r"\*\((const )?la_f(32|64)(_u)? \*\)", text)  # nor is memory accessed lane by lane


@pytest.mark.parametrize("width", [16, 32])
@pytest.mark.parametrize("kind", ["ps", "pd"])
@pytest.mark.parametrize("order", [("half", "parts"), ("parts", "half")])
def test_a_product_that_two_vectors_share_is_in_both(order: tuple[str, str], kind: str, width: int, tmp_path: Path) -> None:
    """pixels: the lifter finds that these are one value, and a lane was moved from one vector to the other."""
    steps = [(order[0], 1, 0, 0, 0), (order[1], 2, 0, 0, 0), ("add", 3, 1, 2, 0), ("mul", 3, 3, 2, 0), ("sub", 2, 3, 1, 0)]
    source = kernel([statement(*step, kind=kind, width=width) for step in steps], kind, width)
    text, expected, found = both(source, kind, tmp_path, ("-O2", "-march=haswell"), width)
    assert found == expected
    assert not re.search(r"\{[^}]*p\d+\[", text)


@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=needs_clang)])
@pytest.mark.parametrize("flags", ["", "-mavx -mfma", *slower(("-msse3",), ("-mavx",))])
@pytest.mark.parametrize(("kind", "width"), [*slower(("ps", 16)), ("ps", 32), ("pd", 16), *slower(("pd", 32))])
def test_operations_do_the_same_whatever_the_compiler_may_use(
    kind: str, width: int, flags: str, compiler: str, tmp_path: Path
) -> None:
    names = [*PLAIN, *FUSED, "sqrt", "negate", "abs"]
    steps = [(name, 2 + k % 2, k % 3, 3 - k % 2, 1 + k % 3) for k, name in enumerate(names)]
    source = kernel([statement(*step, kind=kind, width=width) for step in steps], kind, width)
    _, expected, found = both(source, kind, tmp_path, ("-O2", *flags.split()), width, compiler)
    assert found == expected


POINTS = """
struct point { float x[4]; float m; float unused; float y[4]; };
void run(struct point *p, long n)
{
    for (long i = 0; i < n; i++)
        for (int k = 0; k < 4; k++)
            p[i].y[k] = (p[i].x[k] - p[i].m) * p[i].x[k] + p[i].y[k];
}
"""


@pytest.mark.parametrize("kind", ["identity", "compact", "split", "soa", "aosoa"])
def test_lanes_stay_together_where_the_layout_keeps_them(kind: str, tmp_path: Path) -> None:
    start = np.random.default_rng(1).standard_normal((32, 10)).astype("f4")
    case = rows(POINTS, start, [k for k in range(10) if k != 5], tmp_path, ("-O3",))
    layout = case.layout(kind)
    text = emit_mockup(case.lifted, layout, case.trace, (case.structure,))
    in_one_piece = len(re.findall(r"\*\((const )?la_f32x4_u \*\)", text))
    assert bool(in_one_piece) == (kind in ("identity", "compact"))  # split: every second field
    assert ("la_f32x4" in text) == (kind in ("identity", "compact"))
    assert "la_f32x4" not in emit_mockup(case.lifted, layout, case.trace, (case.structure,), vectors=False)
    assert case.made_by(text, tmp_path / "mockup.so") == case.expected


def lifted_of(items: list[Item]) -> Lifted:
    return Lifted("f", 0x1000, (), (), tuple(items))


def lanes_of(pack: int, name: str, numbers: tuple[int, ...], args: list[tuple[Val, ...]], ty: Ty = "f64") -> list[Let]:
    pairs = enumerate(zip(numbers, args, strict=True))
    return [Let(Val(n, ty), name, a, Origin(0x1000 + pack, pack, lane, 16)) for lane, (n, a) in pairs]


def loads_of(pack: int, numbers: tuple[int, ...]) -> list[Load]:
    origin = Origin(0x1000 + pack, pack, 0, 16)
    return [Load(Val(n, "f64"), Linear(0x9000 + 64 * pack + 8 * k), origin, 0, 8 * k) for k, n in enumerate(numbers)]


def stores_of(pack: int, values: tuple[int, ...]) -> list[Store]:
    origin = Origin(0x1000 + pack, pack, 0, 16)
    return [Store("f64", Linear(0x9000 + 64 * pack + 8 * k), Val(n, "f64"), origin, 0, 8 * k) for k, n in enumerate(values)]


def check_order(before: list[Item], after: tuple[Item, ...]) -> None:
    """The same statements, each after its operands, stores in their order."""
    assert Counter(before) == Counter(after)
    known: set[int] = set()
    for item in after:
        read = item.args if isinstance(item, Let) else (item.stored,) if isinstance(item, Store) else ()
        assert {a.number for a in read if isinstance(a, Val)} <= known
        known |= {item.value.number} if isinstance(item, Let | Load) else set()
    assert [i for i in after if isinstance(i, Store)] == [i for i in before if isinstance(i, Store)]


def v(*numbers: int) -> tuple[Val, ...]:
    return tuple(Val(n, "f64") for n in numbers)


def test_packs_that_wait_for_each_other_are_not_both_made() -> None:
    """Lane 1 of each needs lane 0 of the other one."""
    first = lanes_of(2, "fadd", (10, 11), [v(1, 1), v(20, 2)])
    second = lanes_of(3, "fmul", (20, 21), [v(2, 2), v(10, 1)])
    items: list[Item] = [*loads_of(1, (1, 2)), first[0], second[0], first[1], second[1], *stores_of(4, (11, 21))]
    lifted, packs = packed(lifted_of(items), 16)
    check_order(items, lifted.body)
    assert sorted(p.name for p in packs.at.values()) in (
        ["load", "store"],
        ["fadd", "load", "store"],
        ["fmul", "load", "store"],
    )


def test_a_store_between_its_members_ends_a_pack_of_loads() -> None:
    loads = loads_of(1, (1, 2))
    store = Store("f64", Linear(0x7000), Val(1, "f64"), Origin(0x1500))
    items: list[Item] = [loads[0], store, loads[1], *stores_of(4, (1, 2))]
    lifted, packs = packed(lifted_of(items), 16)
    check_order(items, lifted.body)
    assert [p.name for p in packs.at.values()] == ["store"]


def test_what_is_connected_with_an_unknown_packed_operation_stays_lane_by_lane() -> None:
    sums = lanes_of(2, "fadd", (10, 11), [v(1, 1), v(2, 2)])
    strange = lanes_of(3, "floor", (20, 21), [v(10), v(11)])
    apart = lanes_of(5, "fmul", (30, 31), [v(1, 2), v(2, 1)])
    items: list[Item] = [*loads_of(1, (1, 2)), *sums, *strange, *apart, *stores_of(4, (20, 21)), *stores_of(6, (30, 31))]
    lifted, packs = packed(lifted_of(items), 16)
    check_order(items, lifted.body)
    assert sorted(p.name for p in packs.at.values()) == ["fmul", "load", "store", "store"]


def test_lanes_that_nobody_reads_are_no_obstacle() -> None:
    """addpd and subpd, of each of which one lane counts (a complex product with SSE2)."""
    sums = lanes_of(2, "fadd", (10,), [v(1, 2)])
    differences = [Let(Val(21, "f64"), "fsub", v(2, 1), Origin(0x1003, 3, 1, 16))]
    items: list[Item] = [*loads_of(1, (1, 2)), *sums, *differences, *stores_of(4, (10, 21))]
    lifted, packs = packed(lifted_of(items), 16)
    check_order(items, lifted.body)
    assert {p.name: p.numbers for p in packs.at.values() if p.name[0] == "f"} == {"fadd": (0,), "fsub": (1,)}
    assert not packed(lifted_of(items), 8)[1].at


def test_what_is_rerolled_is_left_to_the_compiler() -> None:
    """``pixels`` -O3: two pixels of four floats were one register; of a single one gcc makes vectors over pixels."""
    loads = [
        replace(load, lanes=((0x1001, 0, 8 * k), (0x1001, 0, 16 + 8 * k))) for k, load in enumerate(loads_of(1, (1, 2)))
    ]
    items: list[Item] = [*loads, *lanes_of(2, "fadd", (10, 11), [v(1, 1), v(2, 2)]), *stores_of(4, (10, 11))]
    lifted, packs = packed(lifted_of(items), 16)
    assert (lifted.body, packs.at) == (tuple(items), {})
    assert not packs.all_of_them  # the compiler is to find them again


def test_whether_anything_is_packed() -> None:
    """What the original's compiler left single it leaves so with the layout unchanged (``kmeans`` by clang)."""
    single: list[Item] = [Let(Val(10, "f64"), "fadd", v(1, 1), Origin(0x1002)), *stores_of(4, (10,))]
    assert nothing_packed(lifted_of([*loads_of(1, (1,)), *single]))
    half = [Let(Val(10, "f64"), "fadd", v(1, 1), Origin(0x1002, 2, 0, 16))]  # addpd, of which nobody reads the other lane
    assert nothing_packed(lifted_of([*loads_of(1, (1,)), *half]))
    assert not nothing_packed(lifted_of([*loads_of(1, (1, 2)), *lanes_of(2, "fadd", (10, 11), [v(1, 1), v(2, 2)])]))
    rerolled = [replace(load, lanes=((0x1001, 0, 0), (0x1001, 0, 8))) for load in loads_of(1, (1,))]
    assert not nothing_packed(lifted_of([*rerolled, *single]))


PAIRS = """
struct point { float x, y, m, vx, vy; };
void run(struct point *p, long n)
{
    for (long i = 0; i < n; i++) {
        p[i].x = __builtin_fmaf(p[i].m, p[i].vx, p[i].x);
        p[i].y = __builtin_fmaf(p[i].m, p[i].vy, p[i].y);
    }
}
"""


@needs_clang
def test_two_lanes_are_one_fused_instruction_by_clang(tmp_path: Path) -> None:
    """``nbody`` by clang took 1.23 times the original's time: two lanes became two instructions and were put together."""
    start = np.random.default_rng(1).standard_normal((32, 5)).astype("f4")
    case = rows(PAIRS, start, range(5), tmp_path, ("-O3", "-march=haswell"))
    text = emit_mockup(case.lifted, None, case.trace, (case.structure,))
    assert "la_fma_f32x2" in text
    flags = ("-O2", "-mfma", "-fno-slp-vectorize")
    run_mockup(text, tmp_path / "mockup.so", (case.work.ctypes.data, len(case.work)), flags=flags, compiler="clang")
    code = subprocess.run(["objdump", "-d", tmp_path / "mockup.so"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"vfmadd\d+ps", code)
    assert not re.search(r"vfmadd\d+ss", code)
    assert case.work.tobytes() == case.expected
