"""Pointers between records that a layout moves are the numbers of records in the new arrays, as a source would have them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.emit import emit
from layout_advise.mockup.emit.settings import EmitSettings
from tests.support import slower
from tests.support.killable import EndedError, in_child
from tests.support.mockups.case import FLAGS, Case
from tests.support.mockups.lists import MARKED, MERGED, REVERSED, WALKED
from tests.support.mockups.native import candidate, relayout

COUNT = 60

ABREAST = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *first, struct node *outside, double *out)
{
    double one = 0, two = 0;
    for (struct node *p = first; p; p = p->next) {
        one = one * 0.5 + p->key;
        two = two * 0.5 + p->other;
    }
    outside->key = one;
    outside->other = two;
    return *out;
}"""

CHOSEN = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *one, struct node *other, double *out)
{
    struct node *less = one->key < other->key ? one : other;
    return *out = less->other * less->key + (less->next != 0);
}"""
LESSER = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *one, struct node *other, double *out)
{
    const double *less = one->other < other->other ? &one->other : &other->other;
    *out = one->key + other->key;
    return *out += *less;
}"""
PICKED = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *one, struct node **table, double *out)
{
    const struct node *other = table[one->key < 0.5];
    return *out = other->other * other->key + (other->next != 0);
}"""


SENTINEL = """
struct node { double key, other; struct node *next, *back; };
double kernel(struct node *first, struct node *end, double *out)
{
    double sum = 0;
    for (struct node *p = first; p != end; p = p->next)
        sum = sum * 0.5 + p->key;
    return *out = sum;
}"""


def nodes(source: str, flags: tuple[str, ...], where: Path) -> tuple[Case, Structure]:
    """Two lists in one array, in random order; the last node of the second leads to a record elsewhere (``MARKED``)."""
    case = Case(source, "kernel", (*flags, "-ffp-contract=off"), where)
    random = np.random.default_rng(5)
    data, apart, out = np.zeros((COUNT, 4)), np.zeros(4), np.zeros(1)
    data[:, :2] = random.random((COUNT, 2))
    order = random.permutation(COUNT)
    starts = [order[: COUNT // 2], order[COUNT // 2 :]]
    for half in starts:
        half[...] = half[np.argsort(data[half, 0])]
        data.view(np.int64)[half[:-1], 2] = data.ctypes.data + 32 * half[1:]
    first, second = (data.ctypes.data + 32 * int(half[0]) for half in starts)
    if source in (MARKED, SENTINEL):
        data.view(np.int64)[starts[0][-1], 2] = apart.ctypes.data
    if source is PICKED:
        apart.view(np.int64)[:2] = data.ctypes.data + 32 * 3, data.ctypes.data + 32 * 5
    if source is not MERGED:
        second = apart.ctypes.data
    case.arrays, case.integers = [data, apart, out], [first, second, out.ctypes.data]
    fields = (
        Field("key", 0, 8, "double"), Field("other", 8, 8, "double"), Field("next", 16, 8), Field("back", 24, 8),
    )  # fmt: skip
    shape = Structure("s0", "first", data.ctypes.data, data.nbytes, (Dim(COUNT, 32),), fields)
    case.structures = (shape,)
    case.prepare()
    return case, shape


@pytest.mark.parametrize("flags", [FLAGS["O2"], *slower((FLAGS["O3-avx2"],))], ids=["O2", "O3-avx2"])
@pytest.mark.parametrize("kind", ["soa", *slower(("aosoa",), ("compact",))])
@pytest.mark.parametrize("source", [WALKED, REVERSED, MERGED, MARKED], ids=["walked", "reversed", "merged", "marked"])
def test_links_are_numbers_of_records(source: str, kind: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """Bytes, places and values are those of the original, NULL and pointers to records elsewhere too."""
    case, shape = nodes(source, flags, tmp_path)
    chosen = candidate(relayout(shape, kind))
    made = emit(case.lifted, chosen, case.trace, case.structures)
    assert "la_decode" in made.text
    assert "LA_PIECES(code_" in made.text or kind == "aosoa", "no multiplication by the bytes of a record"
    assert not made.translated
    assert not re.search(r"/ 32\)?;", made.text[made.text.index("kernel_mockup") :].split("la_enter")[0])
    for variant in ("plain", "restrict"):
        assert case.run(chosen, variant, variant=variant)[0] == case.expected
    found, done = case.run(chosen, "check", check=True)  # a wrong map would lead round in circles
    assert (found, done.mismatches) == (case.expected, 0)
    assert done.remapped > 0


@pytest.mark.parametrize("kind", ["compact", "soa"])
def test_a_link_goes_on_beside_a_vector(kind: str, tmp_path: Path) -> None:
    """Both are carried by the same loop, and what a pack's variables are given is written in another way."""
    case, shape = nodes(ABREAST, ("-O3",), tmp_path)
    chosen = candidate(relayout(shape, kind))
    made = emit(case.lifted, chosen, case.trace, case.structures)
    assert "la_decode" in made.text
    assert ("la_f64x2" in made.text) == (kind == "compact")
    assert in_child(lambda: case.run(chosen, "plain")[0], 60) == case.expected


def test_what_could_be_a_number_as_well_as_a_pointer_ends_the_mock_up(tmp_path: Path) -> None:
    """A small number where links are: it would come back as a pointer."""
    case, shape = nodes(WALKED, FLAGS["O2"], tmp_path)
    case.before[0].view(np.int64)[7, 2] = 12
    case.restore()
    with pytest.raises(EndedError):
        in_child(lambda: case.run(candidate(relayout(shape, "soa")), "small")[0], 60)


def test_the_old_pointer_is_worked_out_only_where_it_is_needed(tmp_path: Path) -> None:
    """A loop carries the code alone."""
    case, shape = nodes(WALKED, FLAGS["O2"], tmp_path)
    made = emit(case.lifted, candidate(relayout(shape, "compact")), case.trace, case.structures)
    body = made.text[made.text.index("kernel_mockup") :].split("LA_EXPORT")[0]
    assert re.search(r"code_x\d+ = code_\w+;", body)
    assert not re.search(r"^\s+x\d+ = \w*next\w*;", body, re.MULTILINE)


def test_a_link_to_a_record_of_one_piece_is_its_new_address(tmp_path: Path) -> None:
    """As in a source, nothing is added to what was loaded; arrays that are promised not to overlap have numbers."""
    case, shape = nodes(SENTINEL, FLAGS["O2"], tmp_path)
    chosen = candidate(relayout(shape, "compact"))
    for settings in (EmitSettings("plain"), EmitSettings("restrict")):
        made = emit(case.lifted, chosen, case.trace, case.structures, settings)
        found = re.search(r"uint8_t \*const \w+ = \(uint8_t \*\)code_\w+;", made.text)
        assert (found is not None) == (settings.variant == "plain")
        assert case.run(chosen, settings.variant, variant=settings.variant)[0] == case.expected
    soa = emit(case.lifted, candidate(relayout(shape, "soa")), case.trace, case.structures)
    assert "(uint8_t *)code_" not in soa.text


@pytest.mark.parametrize("kind", ["compact", "soa"])
@pytest.mark.parametrize("source", [CHOSEN, LESSER], ids=["elements", "members"])
def test_what_is_chosen_among_pointers_that_a_call_is_handed_has_the_index_of_one(
    source: str, kind: str, tmp_path: Path
) -> None:
    case, shape = nodes(source, FLAGS["O2"], tmp_path)
    case.integers = [case.integers[0], case.integers[0] + 32 * 3, case.integers[2]]
    case.prepare()
    chosen = candidate(relayout(shape, kind))
    made = emit(case.lifted, chosen, case.trace, case.structures)
    assert "brought_" in made.text
    assert "/ 32" not in made.text[made.text.index("kernel_mockup") :].split("LA_EXPORT")[0]
    assert not made.translated
    for variant in ("plain", "restrict"):
        assert case.run(chosen, variant, variant=variant)[0] == case.expected
    found, done = case.run(chosen, "check", check=True)
    assert (found, done.mismatches) == (case.expected, 0)


def test_indices_that_are_made_once_count_where_a_call_does_little_else(tmp_path: Path) -> None:
    case, shape = nodes(PICKED, FLAGS["O2"], tmp_path)
    chosen = candidate(relayout(shape, "soa"))
    assert case.run(chosen, "plain")[0] == case.expected
    assert emit(case.lifted, chosen, case.trace, case.structures).translated == {"s0"}
    longer = replace(case.trace, accesses=1000)
    assert not emit(case.lifted, chosen, longer, case.structures).translated


@pytest.mark.parametrize("end", ["null", "element", "elsewhere"])
@pytest.mark.parametrize("kind", ["compact", "soa"])
def test_a_link_is_compared_with_what_stays_the_same_by_its_code(kind: str, end: str, tmp_path: Path) -> None:
    """The old pointer is not worked out in the loop for it."""
    case, shape = nodes(SENTINEL, FLAGS["O2"], tmp_path)
    data, apart, _ = case.arrays
    links = data.view(np.int64)[:, 2]
    if end == "null":
        links[links == apart.ctypes.data] = 0
    second = int(links[(case.integers[0] - data.ctypes.data) // 32])
    case.integers[1] = {"null": 0, "element": second, "elsewhere": apart.ctypes.data}[end]
    case.prepare()
    chosen = candidate(relayout(shape, kind))
    made = emit(case.lifted, chosen, case.trace, case.structures)
    body = made.text[made.text.index("kernel_mockup") :].split("LA_EXPORT")[0]
    assert "la_code_of(" in body
    assert not re.search(r"la_decode\([^;]*==", body)
    assert case.run(chosen, "plain")[0] == case.expected
    found, done = case.run(chosen, "check", check=True)
    assert (found, done.mismatches) == (case.expected, 0)


@pytest.mark.parametrize("kind", ["compact", "soa"])
def test_accesses_through_one_pointer_share_the_index_that_a_call_brings_along(kind: str, tmp_path: Path) -> None:
    """bullet's bodies are handed on by reference: each access had an index of its own, and beyond 64 made it in the call."""
    case, shape = nodes(LESSER, FLAGS["O2"], tmp_path)
    case.integers = [case.integers[0], case.integers[0] + 32 * 3, case.integers[2]]
    case.prepare()
    chosen = candidate(relayout(shape, kind))
    made = emit(case.lifted, chosen, case.trace, case.structures)
    starts = set(re.findall(r"context->in\.gpr\[(\d+)\] \+", made.text))
    codes = re.findall(r"entered\[\d+\] = la_code_of", made.text)
    assert f"la_entered = {len(starts) + len(codes)};" in made.text
    assert starts == {"6", "7"}
    assert made.text.count(" = entered[0];") == 1
    assert case.run(chosen, "plain")[0] == case.expected
