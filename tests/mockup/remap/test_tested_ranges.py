"""References that reach a structure and other memory in turn: a test at run time tells where each access goes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.explore.relayout import unchanged
from layout_advise.mockup.emit import emit
from layout_advise.mockup.evidence.binding import bind
from tests.support import slower
from tests.support.mockups.case import FLAGS, Case, compare, f64_fields, verify
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout

ARENA = """
struct node { double x, y; long next, seen; };
void visit(struct node **nodes, const int *order, long n, double by) {
    for (long i = 0; i < n; i++) {
        struct node *one = nodes[order[i]];
        one->x += by * one->y;
        one->seen += one->next & 3;
    }
}"""

ROWS = """
struct p { double x, y, vx, vy; };
void move(struct p **rows, const long *lengths, long n, double dt) {
    for (long k = 0; k < n; k++) {
        struct p *row = rows[k];
        for (long i = 0; i < lengths[k]; i++) { row[i].x += row[i].vx * dt; row[i].y += row[i].vy * dt; }
    }
}"""

PAIRS = """
struct pair { int key, other; double weight; };
void copy(struct pair *const *from, struct pair *const *to, long n) {
    for (long i = 0; i < n; i++) {
        long both;
        __builtin_memcpy(&both, from[i], 8);
        __builtin_memcpy(to[i], &both, 8);
        to[i]->weight += from[i]->weight;
    }
}"""


def nodes(where: Path, flags: tuple[str, ...], seed: int = 1, arena: int = 40, own: int = 9) -> tuple[Case, Structure]:
    """Nodes of an arena, and some in blocks of their own, visited in any order through one pointer."""
    random = np.random.default_rng(seed)
    case = Case(ARENA, "visit", flags, where)
    block, others = random.random((arena, 4)), [random.random((1, 4)) for _ in range(own)]
    for data in (block, *others):
        data.view(np.int64)[:, 2:] = random.integers(0, 1000, (len(data), 2))
    places = [block.ctypes.data + 32 * k for k in range(arena)] + [o.ctypes.data for o in others]
    table = np.array(random.permutation(np.array(places, np.int64)))
    order = random.integers(0, len(places), 200).astype(np.int32)
    case.arrays, case.integers, case.floats = (
        [block, table, order, *others],
        [table.ctypes.data, order.ctypes.data, 200],
        [0.5],
    )
    fields = (*f64_fields(("x", 0), ("y", 8)), Field("next", 16, 8, "long", 1, 0), Field("seen", 24, 8, "long", 1, 1))
    shape = Structure("s0", "arena", block.ctypes.data, block.nbytes, (Dim(arena, 32),), fields, (), block.ctypes.data)
    case.structures = (shape,)
    return case, shape


@pytest.mark.parametrize("flags", [FLAGS["O3-avx2"], *slower((FLAGS["O2"],))], ids=["O3-avx2", "O2"])
@pytest.mark.parametrize(("kind", "block"), [("soa", 0), ("aosoa", 4), *slower(("blocks", 4), ("split", 0), ("compact", 0))])
def test_an_arena_whose_pointers_sometimes_go_elsewhere(
    kind: str, block: int, flags: tuple[str, ...], tmp_path: Path
) -> None:
    case, shape = nodes(tmp_path, flags)
    verify(case, candidate(relayout(shape, kind, block)))
    assert "LA_WITHIN" in emit_mockup(case.lifted, candidate(relayout(shape, kind, block)), case.trace, case.structures)


@pytest.mark.parametrize("flags", [FLAGS["O2"], *slower((FLAGS["O3-avx2"],))], ids=["O2", "O3-avx2"])
@pytest.mark.parametrize("kind", ["aosoa", *slower(("soa",), ("split",))])
def test_rows_of_which_one_is_laid_out_anew(kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """The inner loop runs over the structure, and over others: no vectors in it, and none of its blocks."""
    random = np.random.default_rng(2)
    case = Case(ROWS, "move", flags, tmp_path)
    rows = [random.random((n, 4)) for n in (5, 33, 16, 1)]
    table, lengths = np.array([r.ctypes.data for r in rows], np.int64), np.array([len(r) for r in rows], np.int64)
    case.arrays = [*rows, table, lengths]
    case.integers, case.floats = [table.ctypes.data, lengths.ctypes.data, len(rows)], [0.25]
    fields = f64_fields(("x", 0), ("y", 8), ("vx", 16), ("vy", 24))
    shape = Structure("s0", "row", rows[1].ctypes.data, rows[1].nbytes, (Dim(33, 32),), fields)
    case.structures = (shape,)
    verify(case, candidate(relayout(shape, kind)))


@pytest.mark.parametrize("kind", ["soa", "split", "blocks"])
def test_an_access_over_two_fields(kind: str, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    case = Case(PAIRS, "copy", ("-O2",), tmp_path)
    block, own = random.random((24, 2)), random.random((8, 2))
    places = np.array([a.ctypes.data + 16 * k for a in (block, own) for k in range(len(a))], np.int64)
    sources, targets = random.permutation(places), random.permutation(places)
    case.arrays = [block, own, sources, targets]
    case.integers = [sources.ctypes.data, targets.ctypes.data, len(places)]
    fields = (Field("key", 0, 4, "int", 1, 1), Field("other", 4, 4, "int", 1, 1), *f64_fields(("weight", 8)))
    shape = Structure("s0", "pairs", block.ctypes.data, block.nbytes, (Dim(24, 16),), fields)
    case.structures = (shape,)
    verify(case, candidate(relayout(shape, kind)))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1000), st.integers(1, 20), st.integers(0, 12), st.sampled_from(["soa", "aosoa", "compact"]))
def test_any_number_of_nodes_on_either_side(tmp_path: Path, seed: int, arena: int, own: int, kind: str) -> None:
    """Where no pointer, or each one, goes elsewhere there is nothing to test; the bytes are the same in any case."""
    case, shape = nodes(tmp_path, ("-O1",), seed, 4 * arena, own)
    case.prepare()
    compare(case, candidate(relayout(shape, kind)), "plain")


def test_the_unchanged_layout_with_the_same_tests(tmp_path: Path) -> None:
    """What tests and indices cost by themselves is measured on a mock-up that has them, and the layout as it is."""
    case, shape = nodes(tmp_path, ("-O2",))
    verify(case, candidate(unchanged(shape)))
    binding = bind(case.lifted, case.trace, case.structures)
    assert len(binding.shared) == 5  # `seen` is read and written by one instruction
    assert not {key for key, name in binding.structure_of.items() if name == "s0"}
    tested = emit(case.lifted, candidate(unchanged(shape)), case.trace, case.structures)
    assert tested.text.count("LA_WITHIN") == 6
    assert tested.translated == {"s0"}
    assert not emit(case.lifted, None, case.trace, case.structures).translated


def test_two_structures_of_one_reference_are_laid_out_one_by_one(tmp_path: Path) -> None:
    case, shape = nodes(tmp_path, ("-O2",), own=1)
    own = case.arrays[3]
    other = Structure("s1", "own", own.ctypes.data, own.nbytes, (Dim(1, 32),), shape.fields)
    case.structures = (shape, other)
    verify(case, candidate(relayout(shape, "soa")))
    with pytest.raises(RemapError, match="s0 and s1 in turn"):
        emit_mockup(case.lifted, candidate(relayout(shape, "soa"), relayout(other, "soa")), case.trace, case.structures)


def test_an_access_across_the_border_is_refused(tmp_path: Path) -> None:
    case, shape = nodes(tmp_path, ("-O2",), own=0)
    case.prepare()
    part = Structure("s0", "part", shape.base, 4 + 10 * 32, (Dim(10, 32),), shape.fields)
    case.structures = (part,)
    with pytest.raises(RemapError, match="touches other memory too, and where is not known or lies across its border"):
        emit_mockup(case.lifted, candidate(relayout(part, "soa")), case.trace, case.structures)
