"""Rerolled loops compute what the original ones do: random bodies in the interpreter, compiled kernels on the processor."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.effects import Gpr, Lane, Ty
from layout_advise.mockup.ir.lifted import (
    Assign,
    Imm,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Linear,
    LiveIn,
    LiveOut,
    Load,
    Operand,
    Origin,
    Store,
    Val,
    Var,
)
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.rewrite.reroll import reroll
from layout_advise.tracer.trace.trace import Trace
from tests.support import slower
from tests.support.lifting.kernel_library import ARGUMENTS, RSP, KernelArguments, KernelLibrary, NativeMemory
from tests.support.lifting.run_lifted import run_lifted
from tests.support.mockups.native import references_of, trace_of
from tests.support.mockups.small_memory import COUNTER, MEMORY_BYTES, MEMORY_START, POINTER, SmallMemory, interpreted


@dataclass(frozen=True)
class Step:
    """One statement of the element's computation: a load or a store at ``at`` plus ``stride`` an element, a formula of
    earlier values, a number of the element (its index times ``stride`` plus ``at``), a sum carried from element to element
    (``at`` 0), one that runs through the lanes backwards (1), or one with an accumulator a lane (2)."""

    kind: str
    at: int = 0
    stride: int = 0
    through: bool = False
    sources: tuple[int, ...] = ()
    name: str = "add"
    odd: bool = False
    """The last lane is another one: its constant, its distance."""
    shared: bool = False
    """All lanes use the value of the first."""
    gives: int = 0
    """Of a sum: the new value, the one before (1), the one at the start of the iteration (2)."""


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Step], int, int, str]:
    """Steps of an element, lanes, trips, and the order in which the lanes are written."""
    lanes, trips = draw(st.integers(2, 4)), draw(st.integers(0, 4))
    values = draw(st.integers(1, 4))
    steps: list[Step] = []
    strides = st.sampled_from((4, 8, -4, 12, 0))
    rarely = st.integers(0, 9).map(lambda k: k == 0)
    for _ in range(values):
        number = len(steps)
        kind = draw(st.sampled_from(("load", "load", "formula", "index", "constant") if number else ("load", "index")))
        if kind == "load":
            stride = draw(strides)
            at = draw(st.integers(0, 12)) * 4 + 96
            steps.append(Step("load", at, stride, draw(st.booleans()), odd=draw(rarely), shared=draw(rarely)))
        elif kind == "formula":
            sources = tuple(draw(st.integers(0, number - 1)) for _ in range(2))
            steps.append(Step("formula", sources=sources, name=draw(st.sampled_from(("add", "mul", "xor", "sub")))))
        elif kind == "index":
            steps.append(
                Step("index", draw(st.integers(-3, 3)), draw(st.integers(1, 3)), odd=draw(rarely), shared=draw(rarely))
            )
        else:
            steps.append(Step("constant", draw(st.integers(0, 5)), odd=draw(rarely)))
    if draw(st.booleans()):
        name, sources = draw(st.sampled_from(("sub", "mul", "xor"))), (draw(st.integers(0, len(steps) - 1)),)
        way, gives = draw(st.sampled_from((0, 0, 0, 1, 2))), draw(st.sampled_from((0, 0, 1, 2)))
        steps.append(Step("carried", way, sources=sources, name=name, gives=gives))
    for _ in range(draw(st.integers(1, 2))):
        source = draw(st.integers(0, len(steps) - 1))
        while steps[source].kind == "store" or (steps[source].kind == "carried" and steps[source].at == 1):
            source -= 1
        stride = draw(st.sampled_from((4, 8, -4, 12, 12)))
        at = draw(st.integers(0, 40)) * 4 + 96
        steps.append(Step("store", at, stride, draw(st.booleans()), (source,)))
    return steps, lanes, trips, draw(st.sampled_from(("vector", "unrolled")))


class Writer:
    """Writes the steps as a loop of several lanes."""

    def __init__(self, steps: list[Step], lanes: int, trips: int, order: str) -> None:
        self.steps, self.lanes = steps, lanes
        self.numbers = 10
        self.items: list[Item] = []
        self.values: dict[tuple[int, int], Operand] = {}
        self.sums: dict[Var, Operand] = {}
        if order == "vector":
            turns = [(s, k) for s in range(len(steps)) for k in range(lanes)]
        else:
            turns = [(s, k) for k in range(lanes) for s in range(len(steps))]
        backwards = [(s, k) for s, k in turns if steps[s].kind == "carried" and steps[s].at == 1]
        for s, k in [*(turn for turn in turns if turn not in backwards), *reversed(backwards)]:
            self.step(s, k)
        first = tuple(Assign(v, Imm("i32", 3), 0) for v in self.sums)
        last = tuple(Assign(v, value, 1) for v, value in self.sums.items())
        loop = LiftedLoop(COUNTER, Imm("i64", trips), (*self.items, *last), 0x500)
        outs = tuple(LiveOut(v, Gpr(8 + k)) for k, v in enumerate(self.sums))
        self.lifted = Lifted("f", 0x500, (LiveIn(POINTER, Gpr(7)),), outs, (*first, loop))

    def value(self, ty: Ty = "i32") -> Val:
        self.numbers += 1
        return Val(self.numbers, ty)

    def address(self, step: Step, lane: int) -> Linear:
        const = self.distance(step, lane) + (0 if step.through else MEMORY_START)
        terms: list[tuple[Operand, int]] = [(POINTER, 1)] if step.through else []
        moved = step.stride * self.lanes
        return Linear(const % 2**64, (*terms, (COUNTER, moved)) if moved else tuple(terms))

    def distance(self, step: Step, lane: int) -> int:
        """Where the lane is, for a step that moves; the last lane may be odd."""
        return step.at + lane * step.stride + 4 * (step.odd and lane == self.lanes - 1)

    def step(self, number: int, lane: int) -> None:
        step, origin = self.steps[number], Origin(0x1000 + 16 * number + lane)
        if step.shared and lane:
            self.values[number, lane] = self.values[number, 0]
            return
        if step.kind == "load":
            value = self.value()
            self.items.append(Load(value, self.address(step, lane), origin))
        elif step.kind == "store":
            self.items.append(Store("i32", self.address(step, lane), self.values[step.sources[0], lane], origin))
            return
        elif step.kind == "constant":
            self.values[number, lane] = Imm("i32", step.at + (step.odd and lane == self.lanes - 1))
            return
        elif step.kind == "carried":
            variable = Var(5000 + (lane if step.at == 2 else 0), "i32")
            value = self.value()
            before = self.sums.get(variable, variable)
            self.items.append(Let(value, step.name, (before, self.values[step.sources[0], lane]), origin))
            self.sums[variable] = value
            self.values[number, lane] = (value, before, variable)[step.gives]
            return
        elif step.kind == "index":
            low, value = self.value(), self.value()
            scaled = self.value()
            self.items.append(Let(low, "lo32", (COUNTER,), origin))
            self.items.append(Let(scaled, "mul", (low, Imm("i32", step.stride * self.lanes)), origin))
            const = Imm("i32", self.distance(step, lane) % 2**32)
            self.items.append(Let(value, "add", (const, scaled), origin))
        else:
            value = self.value()
            args = tuple(self.values[source, lane] for source in step.sources)
            self.items.append(Let(value, step.name, args, origin))
        self.values[number, lane] = value


def rolled_lanes(items: tuple[Item, ...]) -> Iterator[int]:
    """The number of lanes of every access of a rerolled loop."""
    for item in items:
        if isinstance(item, LiftedLoop):
            yield from rolled_lanes(item.body)
        elif isinstance(item, Load | Store) and item.lanes:
            yield len(item.lanes)


@settings(max_examples=200, deadline=None)
@given(programs(), st.integers(-3, 3).map(lambda k: 4 * k), st.randoms(use_true_random=False))
def test_a_rerolled_loop_stores_what_the_loop_did(
    program: tuple[list[Step], int, int, str], shift: int, random: object
) -> None:
    lifted = Writer(*program).lifted
    data = bytes(getattr(random, "randbytes")(MEMORY_BYTES))  # noqa: B009 - hypothesis's random has no type
    before, after = SmallMemory(data), SmallMemory(data)
    at: dict[Gpr | Lane, int] = {Gpr(7): MEMORY_START + shift}
    trace = interpreted(lifted, at, before)
    rolled = reroll(lifted, Evidence.of(trace, ()))
    event(f"rerolled: {bool(list(rolled_lanes(rolled.body)))}")
    found = run_lifted(rolled, dict(at), after)
    assert after.data == before.data
    assert found == run_lifted(lifted, dict(at), SmallMemory(data))


def copies(steps: list[Step], lanes: int, order: str, shift: int = 0) -> Lifted:
    """The loop rerolled after a traced run of three trips."""
    lifted = Writer(steps, lanes, 3, order).lifted
    trace = interpreted(lifted, {Gpr(7): MEMORY_START + shift}, SmallMemory(bytes(MEMORY_BYTES)))
    return reroll(lifted, Evidence.of(trace, ()))


LOAD = Step("load", 64, 4)
SCALE = (Step("constant", 3), Step("formula", sources=(0, 1), name="mul"))


@pytest.mark.parametrize("order", ["vector", "unrolled"])
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_independent_lanes_are_rerolled(lanes: int, order: str) -> None:
    rolled = copies([LOAD, *SCALE, Step("store", 192, 4, sources=(2,))], lanes, order)
    assert set(rolled_lanes(rolled.body)) == {lanes}
    loops = [item for item in rolled.body if isinstance(item, LiftedLoop)]
    assert len(loops[0].body) == 3  # load, multiply, store
    assert loops[0].independent


def test_updates_in_place_are_rerolled() -> None:
    assert list(rolled_lanes(copies([LOAD, *SCALE, Step("store", 64, 4, sources=(2,))], 4, "vector").body))


@pytest.mark.parametrize("through", [False, True])
def test_a_lane_that_loads_what_an_earlier_one_stores_is_left_alone(through: bool) -> None:
    """All loads come first in the vector body, so a[i + 1] must be the old value; seen in the addresses or in the trace."""
    steps = [LOAD, *SCALE, Step("store", 68, 4, through, sources=(2,))]
    lifted = copies(steps, 4, "vector", MEMORY_START if not through else 0)
    assert not list(rolled_lanes(lifted.body))
    assert not any(item.independent for item in lifted.body if isinstance(item, LiftedLoop))


def test_in_the_order_of_the_lanes_the_same_is_rerolled() -> None:
    rolled = copies([LOAD, *SCALE, Step("store", 68, 4, sources=(2,))], 4, "unrolled")
    assert list(rolled_lanes(rolled.body))
    assert not any(item.independent for item in rolled.body if isinstance(item, LiftedLoop))


@pytest.mark.parametrize(("way", "lanes"), [(0, {4}), (1, set()), (2, set())])
def test_sums_are_rerolled_in_the_order_of_the_elements_only(way: int, lanes: set[int]) -> None:
    steps = [LOAD, *SCALE, Step("carried", way, sources=(2,), name="xor"), Step("store", 192, 4, sources=(2,))]
    for order in ("vector", "unrolled"):
        assert set(rolled_lanes(copies(steps, 4, order).body)) == lanes
        assert set(rolled_lanes(copies(steps[:-1], 4, order).body)) == lanes


@pytest.mark.parametrize(("gives", "lanes"), [(0, {4}), (1, {4}), (2, set())])
def test_a_sum_that_is_stored_must_be_each_lane_s_own(gives: int, lanes: set[int]) -> None:
    steps = [LOAD, Step("carried", sources=(0,), name="xor", gives=gives), Step("store", 192, 4, sources=(1,))]
    assert set(rolled_lanes(copies(steps, 4, "vector").body)) == lanes


def test_other_constants_in_a_lane_are_left_alone() -> None:
    steps = [LOAD, Step("constant", 3, odd=True), SCALE[1], Step("store", 192, 4, sources=(2,))]
    assert not list(rolled_lanes(copies(steps, 4, "vector").body))


def test_without_a_trace_other_pointers_are_not_trusted() -> None:
    steps = [LOAD, *SCALE, Step("store", 192, 4, True, sources=(2,))]
    lifted = Writer(steps, 4, 3, "vector").lifted
    trace = interpreted(lifted, {Gpr(7): MEMORY_START}, SmallMemory(bytes(MEMORY_BYTES)))
    assert list(rolled_lanes(reroll(lifted, Evidence.of(trace, ())).body))
    unknown = replace(trace, streams=(None,) * len(trace.streams))
    assert not list(rolled_lanes(reroll(lifted, Evidence.of(unknown, ())).body))


def test_a_value_used_behind_the_loop_or_a_load_of_no_lane_is_left_alone() -> None:
    steps = [LOAD, *SCALE, Step("store", 192, 4, sources=(2,))]
    lifted = Writer(steps, 4, 3, "vector").lifted
    (loop,) = (item for item in lifted.body if isinstance(item, LiftedLoop))
    lone = Load(Val(900, "i32"), Linear(MEMORY_START), Origin(7))
    value = next(item.value for item in loop.body if isinstance(item, Load))
    behind = Store("i32", Linear(MEMORY_START), value, Origin(8))
    for body in ((replace(loop, body=(*loop.body, lone)),), (loop, behind)):
        other = replace(lifted, body=body)
        trace = interpreted(other, {Gpr(7): MEMORY_START}, SmallMemory(bytes(MEMORY_BYTES)))
        assert not list(rolled_lanes(reroll(other, Evidence.of(trace, ())).body))


def test_fields_of_an_element_are_no_lanes() -> None:
    """All four fields of a pixel are treated alike; copies are pixels, not fields."""
    steps = [LOAD, *SCALE, Step("store", 64, 4, sources=(2,))]
    lifted = Writer(steps, 8, 3, "vector").lifted
    trace = interpreted(lifted, {Gpr(7): MEMORY_START}, SmallMemory(bytes(MEMORY_BYTES)))
    fields = tuple(Field(name, 4 * k, 4) for k, name in enumerate("rgba"))
    pixels = Structure("s0", "pixels", MEMORY_START + 64, 96, (Dim(6, 16),), fields)
    assert set(rolled_lanes(reroll(lifted, Evidence.of(trace, (pixels,))).body)) == {2}
    assert set(rolled_lanes(reroll(lifted, Evidence.of(trace, ())).body)) == {8}


def test_the_last_lane_s_value_is_what_is_left() -> None:
    lifted = Writer([LOAD, *SCALE, Step("store", 192, 4, sources=(2,))], 4, 3, "vector").lifted
    (loop,) = (item for item in lifted.body if isinstance(item, LiftedLoop))
    store = [item for item in loop.body if isinstance(item, Store)][-1]
    address = Val(900, "i64")
    extra = LetLinear(address, Linear(5, ((COUNTER, 16),)), Origin(1))
    assert isinstance(store.stored, Val)
    left, end = Var(901, "i32"), Var(902, "i64")
    body = (*loop.body, extra, Assign(left, store.stored, 1), Assign(end, address, 1))
    first = (Assign(left, Imm("i32", 0), 0), Assign(end, Imm("i64", 0), 0))
    outs = (LiveOut(left, Gpr(0)), LiveOut(end, Gpr(2)))
    lifted = replace(lifted, body=(*first, replace(loop, body=body)), live_outs=outs)
    data = bytes(range(256)) * 2
    trace = interpreted(lifted, {Gpr(7): MEMORY_START}, SmallMemory(data))
    rolled = reroll(lifted, Evidence.of(trace, ()))
    assert list(rolled_lanes(rolled.body))
    assert run_lifted(rolled, {}, SmallMemory(data)) == run_lifted(lifted, {}, SmallMemory(data))
    not_last = next(item for item in loop.body if isinstance(item, Store)).stored
    body = (*loop.body, Assign(left, not_last, 1))
    lifted = replace(lifted, body=(*first, replace(loop, body=body)), live_outs=outs[:1])
    assert not list(rolled_lanes(reroll(lifted, Evidence.of(trace, ())).body))


VECTORISED = (
    "daxpy", "stencil3", "stencil_int", "backward", "float_swap", "convert", "complex_multiply", "copy", "reverse", "nans",
    "matmul_pitch", "dot", "floats",
)  # fmt: skip
SEARCHES = ("early", "early_break", "while_loop")
"""Left alone."""
OTHERS = ("clamp", "gather", "exps", "local_array", "roots", "ints", "prefix", "maximum")
BUILDS = {
    "gcc-O3-haswell": ("gcc", "-O3", "-march=haswell"),
    "clang-O2": ("clang", "-O2"),
    "clang-O3-haswell": ("clang", "-O3", "-march=haswell"),
}


@pytest.fixture(scope="module", params=["gcc-O3-haswell", "clang-O2", *slower(("clang-O3-haswell",))])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    compiler, *flags = BUILDS[request.param]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    return KernelLibrary(request.param, tmp_path_factory.mktemp(request.param), compiler, *flags)


@pytest.mark.parametrize("name", [*VECTORISED, *SEARCHES, *OTHERS])
def test_rerolled_kernels_do_what_the_machine_code_does(built: KernelLibrary, name: str) -> None:
    code = lift(built.region(name), result="float")
    arrays = KernelArguments(51, 2)
    values = [*map(ctypes.addressof, arrays.memory), arrays.n]
    locations: dict[Gpr | Lane, int] = {Gpr(r): v for r, v in zip(ARGUMENTS, values, strict=True)}
    locations[Gpr(RSP)] = (ctypes.addressof(arrays.stack) + (1 << 15) & ~15) - 8
    trace = native_trace(code, locations)
    arrays.restore()
    rolled = reroll(code, Evidence.of(trace, (), open_image(str(built.path), built.base).read))
    lanes = set(rolled_lanes(rolled.body))
    if name in SEARCHES:
        assert not lanes
    if name in VECTORISED and "O3" in built.name:
        assert lanes
    expected = arrays.native(getattr(built.library, name))
    assert arrays.lifted(rolled) == expected


def native_trace(code: Lifted, locations: dict[Gpr | Lane, int]) -> Trace:
    """As ``interpreted``, on this process's memory; the lowest part that is there stands for a reference."""
    references = references_of(code)
    numbers = {(r.pc, r.operand): r.id for r in references}
    seen: list[tuple[int, int, int, int]] = []
    run_lifted(code, dict(locations), NativeMemory(), budget=400_000, watch=seen.append)
    lowest: dict[tuple[int, int], int] = {}
    for pc, operand, part, _ in seen:
        lowest[pc, operand] = min(part, lowest.get((pc, operand), part))
    words = [a - p & (1 << 48) - 1 | numbers[pc, op] << 48 for pc, op, p, a in seen if p == lowest[pc, op]]
    return trace_of(code, np.array(words, np.uint64), references, code.symbol)
