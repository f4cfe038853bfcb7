"""Fields that a value picks, which no loop counts: ``star[n % 3]``, ``node->child[side]``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.ir.lifted import Linear, Val
from layout_advise.mockup.remap.field_runs import Run
from layout_advise.mockup.remap.picked_fields import picked_fields
from tests.support import slower
from tests.support.killable import EndedError, in_child
from tests.support.mockups.case import FLAGS, Case, compare
from tests.support.mockups.emitted import emit_mockup
from tests.support.mockups.native import candidate, relayout

GENES = """
struct node { int type, at, star[3]; float score; double whole[4]; };
void best(struct node *nodes, const int *order, long n) {
    for (long i = 1; i < n; i++) {
        int to = nodes[order[i]].star[nodes[i].at % 3];
        nodes[i].score += to >= 0 ? nodes[to].score : 0.5f;
    }
}"""
COUNT = 41


def genes(folder: Path, flags: tuple[str, ...] = FLAGS["O2"]) -> tuple[Case, Structure]:
    """Records of 56 bytes, one of whose three links is read, by the place of another record."""
    case = Case(GENES, "best", flags, folder)
    random = np.random.default_rng(5)
    data = random.random((COUNT, 14)).astype(np.float32)
    numbers = data.view(np.int32)
    numbers[:, 1] = random.permutation(3 * COUNT)[:COUNT]
    numbers[:, 2:5] = random.integers(-1, COUNT, (COUNT, 3))
    order = random.permutation(COUNT).astype(np.int32)
    case.arrays, case.integers = [data, order], [data.ctypes.data, order.ctypes.data, COUNT]
    links = (Field(f"star[{k}]", 8 + 4 * k, 4) for k in range(3))
    fields = (Field("at", 4, 4), *links, Field("score", 20, 4))
    shape = Structure("s0", "nodes", data.ctypes.data, data.nbytes, (Dim(COUNT, 56),), fields)
    case.structures = (shape,)
    case.prepare()
    return case, shape


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
@pytest.mark.parametrize(("kind", "block"), [("compact", 0), *slower(("blocks", 4))])
def test_a_field_is_picked_in_another_layout(kind: str, block: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    case, shape = genes(tmp_path, flags)
    compare(case, candidate(relayout(shape, kind, block)), "plain", "restrict")


def test_which_field_is_picked_is_asked(tmp_path: Path) -> None:
    """A remainder below 0 picks what lies before the links, in the original as well."""
    case, shape = genes(tmp_path)
    chosen = candidate(relayout(shape, "compact"))
    assert "> 2) __builtin_trap()" in emit_mockup(case.lifted, chosen, case.trace, case.structures)
    assert in_child(lambda: case.run(chosen, "as-it-was")[0], 60)
    case.arrays[0].view(np.int32)[7, 1] = -1
    with pytest.raises(EndedError):
        in_child(lambda: case.run(chosen, "below")[0], 60)


def test_arrays_of_their_own_are_refused(tmp_path: Path) -> None:
    case, shape = genes(tmp_path)
    with pytest.raises(RemapError, match="which field of an element it goes to is computed there, and these have no even"):
        emit_mockup(case.lifted, candidate(relayout(shape, "soa")), case.trace, case.structures)


TREE = """
struct tree { double key; long pad[3]; struct tree *child[2]; long found; };
long search(struct tree *root, const double *keys, long n) {
    long all = 0;
    for (long i = 0; i < n; i++) {
        struct tree *node = root;
        while (node->key != keys[i]) node = node->child[node->key < keys[i]];
        node->found++;
    }
    return all;
}"""


def tree(folder: Path) -> tuple[Case, Structure]:
    """A search tree of 31 nodes of 56 bytes, in shuffled places."""
    case = Case(TREE, "search", FLAGS["O2"], folder)
    random = np.random.default_rng(11)
    data = np.zeros((31, 7), np.int64)
    places = random.permutation(31)
    for number in range(31):  # the root is 0, and its keys are those of the middle
        level = (number + 1).bit_length() - 1
        own = data[places[number]]
        own[:1].view(np.float64)[0] = (2 * (number + 1 - (1 << level)) + 1) / (2 << level)
        for side in (0, 1):
            below = 2 * number + 1 + side
            own[4 + side] = data.ctypes.data + 56 * int(places[below]) if below < 31 else 0
    keys = random.permutation(data[:, 0].copy().view(np.float64))
    case.arrays, case.integers = [data, keys], [data.ctypes.data + 56 * int(places[0]), keys.ctypes.data, 31]
    fields = (Field("key", 0, 8), Field("child[0]", 32, 8), Field("child[1]", 40, 8), Field("found", 48, 8))
    shape = Structure("s0", "tree", data.ctypes.data, data.nbytes, (Dim(31, 56),), fields)
    case.structures = (shape,)
    case.prepare()
    return case, shape


def test_a_way_down_a_tree_picks_a_child(tmp_path: Path) -> None:
    """What reads at wrong places there finds no key, and goes on where there are no nodes."""
    case, shape = tree(tmp_path)
    chosen = candidate(relayout(shape, "compact"))
    assert all(case.run(chosen, variant, variant=variant)[0] == case.expected for variant in ("plain", "restrict"))
    found, done = case.run(chosen, "check", check=True)
    assert found == case.expected
    assert (done.mismatches, done.remapped > 100) == (0, True)


def value(number: int) -> Val:
    return Val(number, "i64")


def test_the_sum_of_what_moves_within_an_element_picks() -> None:
    i, n, q = value(1), value(2), value(3)
    terms = ((value(0), 1), (i, 176), (n, 4), (q, (1 << 64) - 12))
    parts = ((n, 1), (q, -3))
    assert picked_fields(terms, 176, frozenset({20, 28})) == (Run(parts, 4, 3, Linear(0, parts), picked=True),)


@pytest.mark.parametrize(
    ("terms", "traced"),
    [
        (((value(0), 1), (value(1), 8)), frozenset({16})),
        (((value(0), 1), (value(1), 8)), frozenset({16, 20})),
        (((value(0), 1), (value(1), 176)), frozenset({16, 24})),
        (((value(0), 1), (value(1), 1)), frozenset({16, 17})),
        (((value(0), 1), (value(1), 2)), frozenset({0, 128})),
        (((value(0), 1), (value(1), 8)), None),
    ],
    ids=["one", "between", "whole", "bytes", "many", "unknown"],
)
def test_what_picks_no_field(terms: tuple[tuple[Val, int], ...], traced: frozenset[int] | None) -> None:
    assert picked_fields(terms, 176, traced) == ()
