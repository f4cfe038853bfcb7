"""Elements in several blocks as one structure: numbered by their addresses, looked up where a pointer leads to one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.scattered_elements import ElementBlock
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.emit import emit
from layout_advise.mockup.evidence.gather_objects import base_of
from layout_advise.mockup.evidence.pools import is_there
from layout_advise.tracer.trace.trace import Allocation
from tests.support import slower
from tests.support.mockups.case import FLAGS, Case
from tests.support.mockups.lists import MARKED, MERGED, REVERSED, WALKED
from tests.support.mockups.native import candidate, relayout

LENGTHS = (7, 1, 30, 2, 1, 1, 18)
"""Nodes in each block."""
COUNT = sum(LENGTHS)
NODE = 32

SUMMED = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node **rows, long *lengths, double *out)
{
    double sum = 0;
    for (long k = 0; k < 7; k++)
        for (long i = 0; i < lengths[k]; i++) {
            struct node *p = rows[k] + i;
            sum = sum * 0.5 + p->key;
            p->other = sum;
        }
    *out = sum;
    return sum;
}"""

MIXED = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *first, struct node *outside, double *out)
{
    double sum = 0;
    for (struct node *p = first; p; p = p->next) {
        sum = sum * 0.5 + p->key;
        p->other += sum;
    }
    *out = sum;
    return sum;
}"""


def in_blocks(source: str, flags: tuple[str, ...], where: Path) -> tuple[Case, Structure]:
    """Nodes in blocks that lie anywhere, and lists in random order; that of ``MIXED`` goes on in a node elsewhere."""
    case = Case(source, "kernel", (*flags, "-ffp-contract=off"), where)
    random = np.random.default_rng(5)
    blocks = sorted((np.zeros((length, 4)) for length in LENGTHS), key=lambda b: b.ctypes.data)
    apart, out = np.zeros(4), np.zeros(1)
    lengths = np.array([len(b) for b in blocks], np.int64)
    rows = np.array([b.ctypes.data for b in blocks], np.int64)
    places = np.concatenate([b.ctypes.data + NODE * np.arange(len(b)) for b in blocks])
    where_is = {int(at): (b, k) for b in blocks for k, at in enumerate(b.ctypes.data + NODE * np.arange(len(b)))}
    for block in blocks:
        block[:, :2] = random.random((len(block), 2))
    order = random.permutation(places)
    starts = [order[: COUNT // 2], order[COUNT // 2 :]]
    for half in starts:
        half[...] = sorted(half, key=lambda at: where_is[int(at)][0][where_is[int(at)][1], 0])
        for one, following in pairwise(half):
            block, k = where_is[int(one)]
            block.view(np.int64)[k, 2] = following
    first, second = int(starts[0][0]), int(starts[1][0])
    if source in (MARKED, MIXED):
        block, k = where_is[int(starts[0][-1])]
        block.view(np.int64)[k, 2] = apart.ctypes.data
    if source is not MERGED:
        second = apart.ctypes.data
    case.arrays = [*blocks, apart, out, lengths, rows]
    case.integers = [first, second, out.ctypes.data]
    if source is SUMMED:
        case.integers = [rows.ctypes.data, lengths.ctypes.data, out.ctypes.data]
    fields = (
        Field("key", 0, 8, "double"), Field("other", 8, 8, "double"), Field("next", 16, 8), Field("back", 24, 8),
    )  # fmt: skip
    firsts = np.cumsum([0, *lengths[:-1]])
    parts = tuple(
        ElementBlock(b.ctypes.data, int(n), len(b), b.ctypes.data, b.nbytes) for b, n in zip(blocks, firsts, strict=True)
    )
    shape = Structure("s0", "nodes", base_of(0), NODE * COUNT, (Dim(COUNT, NODE),), fields, blocks=parts)
    case.structures = (shape,)
    case.prepare()
    return case, shape


@pytest.mark.parametrize("flags", [FLAGS["O2"], *slower((FLAGS["O3-avx2"],))], ids=["O2", "O3-avx2"])
@pytest.mark.parametrize("kind", ["soa", "compact"])
@pytest.mark.parametrize(
    "source",
    [WALKED, REVERSED, MERGED, MARKED, SUMMED, MIXED],
    ids=["walked", "reversed", "merged", "marked", "summed", "mixed"],
)
def test_blocks_are_one_structure(source: str, kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """Bytes, places and values are those of the original, those of other memory too."""
    case, shape = in_blocks(source, flags, tmp_path)
    chosen = candidate(relayout(shape, kind))
    for variant in ("plain", "restrict"):
        assert case.run(chosen, variant, variant=variant)[0] == case.expected
    found, done = case.run(chosen, "check", check=True)
    assert (found, done.mismatches) == (case.expected, 0)
    assert done.remapped > 0
    assert case.run(None, "identity")[0] == case.expected


def test_a_call_has_the_blocks_or_parts_of_larger_ones(tmp_path: Path) -> None:
    _, shape = in_blocks(WALKED, FLAGS["O2"], tmp_path)
    there = [Allocation(b.start - 16 * k, b.bytes + 16 * k, 0, 0) for k, b in enumerate(shape.blocks)]
    assert is_there(shape, there)
    assert not is_there(shape, there[1:])
    assert not is_there(shape, [*there[1:], Allocation(shape.blocks[0].start, shape.blocks[0].bytes - 1, 0, 0)])


def test_links_need_no_looking_up(tmp_path: Path) -> None:
    """Only the pointers that a call begins with are looked up among the blocks."""
    case, shape = in_blocks(WALKED, FLAGS["O2"], tmp_path)
    made = emit(case.lifted, candidate(relayout(shape, "soa")), case.trace, case.structures)
    assert not made.translated
    kernel = made.text[made.text.index("kernel_mockup") :].split("la_enter")[0]
    assert "la_number" not in kernel
