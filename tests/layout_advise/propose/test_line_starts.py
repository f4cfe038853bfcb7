"""Plain arrays that are to begin with a cache line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from layout_advise.layoutalgebra.bridges.changes import source_change
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.explore.relayout import ALIGN
from layout_advise.propose.line_starts import in_whole_lines, worth_lines
from layout_advise.propose.titles import title, words
from tests.support.algebra_structures import of_sizes

NUMBERS = (Field("a", 0, 8, "double", 100, 0),)
MALLOCED = Structure("s0", "a", 0x1010, 816, (Dim(100, 8),), NUMBERS, block_base=0x1010, alloc_site="m.c:3")
RECORDS = replace(of_sizes([100], [8, 8], [0, 8], 16), id="s9", block_base=0x1010)


def test_an_array_keeps_its_elements_places_and_begins_with_a_line() -> None:
    (one,) = in_whole_lines((MALLOCED,))
    (mapped,) = one.fields
    assert [mapped.place((k,)) for k in (0, 1, 99)] == [0, 8, 792]
    assert (one.buffers[0].bytes, one.rules) == (800, (ALIGN,))


def test_what_is_accessed_first_stays_as_far_from_the_start_of_the_block() -> None:
    """A stencil's inner elements: the line is that of the block."""
    (one,) = in_whole_lines((replace(MALLOCED, base=0x1018),))
    assert (one.fields[0].place((0,)), one.buffers[0].bytes) == (8, 808)


@pytest.mark.parametrize(
    "other",
    [
        replace(MALLOCED, base=0x1040, block_base=0x1040),  # it does
        replace(MALLOCED, dims=(Dim(1, 8),)),
        replace(MALLOCED, inexact="its accesses are not known"),
        replace(MALLOCED, dims=(Dim(10, 96), Dim(10, 8))),  # rows with room between them
        RECORDS,
    ],
)
def test_others_stay_as_they_are(other: Structure) -> None:
    assert not list(in_whole_lines((other,)))
    assert worth_lines((other,)) is None


def test_it_is_tried_where_most_accesses_go_to_such_arrays() -> None:
    much, little = (replace(RECORDS, fields=tuple(replace(f, reads=n) for f in RECORDS.fields)) for n in (60, 40))
    assert worth_lines((MALLOCED, much)) is None
    found = worth_lines((MALLOCED, little))
    assert found is not None
    assert [r.structure.id for r in found.relayouts] == ["s0"]
    assert worth_lines((MALLOCED, little), refused=("s0",)) is None
    both = worth_lines((MALLOCED, replace(MALLOCED, id="s1", name="b")))
    assert both is not None
    assert both.derivation == ("s0: align", "s1: align")


def test_in_words() -> None:
    found = worth_lines((MALLOCED,))
    assert found is not None
    assert words(found) == "line-aligned"
    said = "store `a` (m.c:3, 100 × 8 bytes) as it is, in a block that begins with a cache line: f"
    assert title(found, "f") == said


@pytest.mark.parametrize(
    ("structure", "lines"),
    [
        (MALLOCED, ["-double *a = malloc(100 * sizeof *a);  /* m.c:3 */", "+double *a = aligned_alloc(64, 832);"]),
        (
            replace(MALLOCED, dims=(Dim(10, 80), Dim(10, 8)), kind="global", alloc_site=None),
            ["-double a[10][10];", "+_Alignas(64) double a[10][10];"],
        ),
        (
            replace(MALLOCED, alloc_site="m.cpp:3"),
            ["-std::vector<double> a(100);  /* m.cpp:3 */", "+double *a = (double *)aligned_alloc(64, 832);"],
        ),
    ],
)
def test_the_change_of_the_source(structure: Structure, lines: list[str]) -> None:
    found = worth_lines((structure,))
    assert found is not None
    assert source_change(found).splitlines() == lines
