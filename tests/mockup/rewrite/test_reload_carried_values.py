"""What loops carry from earlier loads is loaded again, and computes the same: random loops in the interpreter, and what gcc
makes of loops over neighbours on the processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.binding import accesses
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.ir.lifted import (
    Assign,
    Goto,
    Imm,
    Item,
    Label,
    Let,
    Lifted,
    LiftedLoop,
    Linear,
    LiveIn,
    LiveOut,
    Load,
    Origin,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.rewrite.passes import run_passes
from layout_advise.mockup.rewrite.reload_carried_values import reload_carried_values
from tests.support import slower
from tests.support.lifting.run_lifted import run_lifted
from tests.support.mockups.case import Case, f64_fields, verify
from tests.support.mockups.native import candidate, relayout
from tests.support.mockups.small_memory import COUNTER, MEMORY_START, POINTER, SmallMemory, interpreted

AT = 240
WORD = 1 << 64


def moves(lifted: Lifted) -> list[Assign]:
    """The assignments in loops."""
    loops = [item for item in everything(lifted.body) if isinstance(item, LiftedLoop)]
    return [item for loop in loops for item in loop.body if isinstance(item, Assign)]


def carrying(
    step: int, back: int, stores: tuple[tuple[int, int, bool], ...], trips: int, begins: int = 0, *, behind: bool = False
) -> Lifted:
    """``for k: new = a[k]; b = new + what a[k - back] was; stores; go round``: values go ``back`` times round. Each store is
    (where, how far an iteration moves it, through a pointer). What is loaded before the loop is ``begins`` bytes off;
    ``behind``: the last value is used after the loop."""
    kept = [Var(100 + k, "f64") for k in range(back)]
    first = [Val(200 + k, "f64") for k in range(back)]
    loads: list[Item] = [
        Load(v, Linear((MEMORY_START + AT - (k + 1) * step + begins) % WORD), Origin(0x10 + k)) for k, v in enumerate(first)
    ]
    starts: list[Item] = [Assign(v, f, 0) for v, f in zip(kept, first, strict=True)]
    new, total = Val(300, "f64"), Val(301, "f64")
    body: list[Item] = [
        Load(new, Linear(MEMORY_START + AT, ((COUNTER, step % WORD),)), Origin(0x20)),
        Let(total, "fadd", (new, kept[-1]), Origin(0x21)),
    ]
    for number, (where, moved, through) in enumerate(stores):
        terms = ((POINTER, 1), (COUNTER, moved % WORD)) if through else ((COUNTER, moved % WORD),)
        body.append(Store("f64", Linear(where + (0 if through else MEMORY_START), terms), total, Origin(0x30 + number)))
    body += [Assign(v, new if k == 0 else kept[k - 1], 1) for k, v in enumerate(kept)]
    loop = LiftedLoop(COUNTER, Imm("i64", trips), tuple(body), 0x500)
    outs = (LiveOut(kept[0], Gpr(0)),) if behind else ()
    return Lifted("f", 0x500, (LiveIn(POINTER, Gpr(7)),), outs, (*loads, *starts, loop))


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from((8, 16, -8, 24)), st.integers(1, 3), st.integers(0, 5),
    st.lists(st.tuples(st.integers(12, 44).map(lambda k: 8 * k), st.sampled_from((8, 16, -8)), st.booleans()), max_size=2),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_what_is_loaded_again_is_what_was_kept(
    step: int, back: int, trips: int, stores: list[tuple[int, int, bool]], random: object
) -> None:
    lifted = carrying(step, back, tuple(stores), trips)
    words = [float(getattr(random, "randint")(-9, 9)) for _ in range(64)]  # noqa: B009 - hypothesis's random has no type
    data = np.array(words).tobytes()
    before, after = SmallMemory(data), SmallMemory(data)
    trace = interpreted(lifted, {Gpr(7): MEMORY_START}, before)
    again = reload_carried_values(lifted, Evidence.of(trace, ()))
    event(f"loaded again: {not moves(again)}")
    run_lifted(again, {Gpr(7): MEMORY_START}, after)
    assert after.data == before.data


def reloads(lifted: Lifted) -> bool:
    """Whether nothing is carried any more, after a traced run."""
    return not moves(
        reload_carried_values(lifted, Evidence.of(interpreted(lifted, {Gpr(7): MEMORY_START}, SmallMemory(bytes(512))), ()))
    )


@pytest.mark.parametrize("back", [1, 2, 3])
def test_values_that_go_round_several_times(back: int) -> None:
    assert reloads(carrying(8, back, ((400, 8, False),), 4))
    assert reloads(carrying(8, back, ((400, 8, True),), 4))  # seen in the trace


def test_what_an_iteration_stores_is_not_loaded_again() -> None:
    for where in (AT, AT + 8, AT - 8):
        assert not reloads(carrying(8, 2, ((where, 8, False),), 4))
        assert not reloads(carrying(8, 2, ((where, 8, True),), 4))


def test_another_first_value_or_one_that_is_used_behind_the_loop_stays() -> None:
    assert not reloads(carrying(8, 1, ((400, 8, False),), 4, begins=-8))
    assert not reloads(carrying(8, 1, ((400, 8, False),), 4, behind=True))


def test_a_load_that_may_be_jumped_over_stays() -> None:
    lifted = carrying(8, 1, ((400, 8, False),), 4)
    loop = lifted.body[-1]
    assert isinstance(loop, LiftedLoop)
    jumped = LiftedLoop(loop.counter, loop.trip, (Goto(1, Imm("i1", 0)), loop.body[0], Label(1), *loop.body[1:]), loop.head)
    assert not reloads(Lifted("f", 0x500, lifted.live_ins, (), (*lifted.body[:-1], jumped)))


SMOOTH = """
struct cell { double u, v, w; };
void smooth(const struct cell *restrict now, struct cell *restrict next, long n) {
    for (long i = 1; i < n - 1; i++) {
        next[i].u = now[i - 1].u - 2.0 * now[i].u + now[i + 1].u;
        next[i].v = now[i - 1].v * now[i + 1].v;
    }
}
void within(struct cell *restrict a, const struct cell *unused, long n) {
    for (long i = 1; i < n - 1; i++) a[i].w = a[i - 1].u - 2.0 * a[i].u + a[i + 1].v * a[i].v;
}
void in_place(struct cell *restrict a, const struct cell *unused, long n) {
    for (long i = 1; i < n - 1; i++) a[i].u = a[i - 1].u + a[i].v - a[i + 1].v;
}"""


@pytest.mark.parametrize(
    "flags",
    [
        *slower((("-O3", "-fno-tree-vectorize"),)),
        ("-O3", "-march=haswell", "-fno-tree-loop-vectorize"),
        *slower((("-O2", "-fpredictive-commoning"),)),
    ],
)
@pytest.mark.parametrize(("symbol", "kept"), [("smooth", 0), ("within", 0), ("in_place", 1)])
def test_of_loops_over_neighbours(symbol: str, kept: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    """`in_place` hands on what it has stored, which stays."""
    case = Case(SMOOTH, symbol, flags, tmp_path)
    random = np.random.default_rng(3)
    data, other = random.random((41, 3)), random.random((41, 3))
    case.arrays, case.integers = [data, other], [data.ctypes.data, other.ctypes.data, 41]
    fields = f64_fields(("u", 0), ("v", 8), ("w", 16))
    case.structures = tuple(
        Structure(f"s{k}", name, a.ctypes.data, a.nbytes, (Dim(41, 24),), fields)
        for k, (name, a) in enumerate((("now", data), ("next", other)))
    )
    case.prepare()
    assert moves(case.lifted)  # else nothing is tested
    case.lifted = run_passes(case.lifted, Evidence.of(case.trace, case.structures), (reload_carried_values,), verify=True)
    assert len(moves(case.lifted)) == kept
    verify(case, candidate(relayout(case.structures[0], "soa")))


BENT = """
struct voxel { float raw, smooth, outline, speed, edge; };
void bend(struct voxel *v, long n) {
    for (long y = 1; y < n - 1; y++)
        for (long x = 1, i = y * n + 1; x < n - 1; x++, i++)
            v[i].speed = v[i - 1].outline + v[i + 1].outline + v[i - n].outline + v[i + n].outline - 4.0f * v[i].outline;
}"""


def test_what_is_loaded_again_for_two_neighbours_was_loaded_once(tmp_path: Path) -> None:
    """imaging -O3: the last two of eight loads go round, as `i - 1` and `i` of the next eight, and the mock-up said that one
    of them "ran 3456 times, 1728 times in the trace"."""
    case = Case(BENT, "bend", ("-O3", "-march=haswell"), tmp_path)
    data = np.random.default_rng(3).random((26 * 26, 5), dtype=np.float32)
    case.arrays, case.integers = [data], [data.ctypes.data, 26]
    fields = tuple(
        Field(name, 4 * k, 4, "float", 1, 1) for k, name in enumerate(("raw", "smooth", "outline", "speed", "edge"))
    )
    case.structures = (Structure("s0", "v", data.ctypes.data, data.nbytes, (Dim(26 * 26, 20),), fields),)
    case.prepare()
    assert moves(case.lifted)
    case.lifted = run_passes(case.lifted, Evidence.of(case.trace, case.structures), (reload_carried_values,), verify=True)
    verify(case, candidate(relayout(case.structures[0], "soa")))
    assert any(access.lanes for access in accesses(case.lifted.body))
