"""Arrays in the elements of a structure that are one field: one access reaches many of their numbers, or all of a word."""

from __future__ import annotations

import pytest

from layout_advise.layoutalgebra.bridges.declarations import declare_structure
from layout_advise.layoutalgebra.derive.accesses import Access, Derived, MemoryObjectShape
from layout_advise.layoutalgebra.derive.atoms import MOST_APART
from layout_advise.layoutalgebra.derive.declared import Declared, Member
from layout_advise.layoutalgebra.derive.derive import derive_structure
from layout_advise.layoutalgebra.derive.structure import Field
from tests.support.streams import BLOCK_AT, check_exact, stream

COUNT, NUMBERS, SIZE = 20, 100, 416
SIDE = Declared(
    "side",
    SIZE,
    (
        Member("used", 0, 4, "int"),
        *(Member(f"coef[{k}]", 4 + 4 * k, 4, "float") for k in range(NUMBERS)),
        Member("kind", 404, 4, "int"),
        Member("sum", 408, 8, "double"),
    ),
    (),
    SIZE,
)
USED = Access(stream(BLOCK_AT, (SIZE, COUNT)), 4)


def derived(accesses: list[Access], declared: Declared | None = SIDE) -> Derived:
    found = derive_structure(MemoryObjectShape("s0", "sides", BLOCK_AT, COUNT * SIZE), accesses, declared, record=SIZE)
    check_exact(found, accesses)
    assert found.structure.element_bytes == SIZE
    return found


def reaching(numbers: int, first: int = 3) -> Access:
    """An access to so many numbers of each record's array."""
    return Access(stream(BLOCK_AT + 4 + 4 * first, (SIZE, COUNT), (4, numbers)), 4)


def test_an_array_that_a_loop_goes_over_is_one_field() -> None:
    first, array = derived([USED, reaching(MOST_APART + 1)]).structure.fields
    assert first.name == "used"
    assert (array.name, array.offset, array.bytes, array.type) == ("coef", 4, 4 * NUMBERS, f"float[{NUMBERS}]")
    assert array.reads == COUNT * (MOST_APART + 1)


def test_few_numbers_are_fields_of_their_own() -> None:
    _, *array = derived([USED, reaching(MOST_APART)]).structure.fields
    assert [f.name for f in array] == [f"coef[{k}]" for k in range(3, 3 + MOST_APART)]


def test_what_goes_over_several_members_makes_no_array_of_them() -> None:
    """``memcpy`` of whole records."""
    copied = Access(stream(BLOCK_AT, (SIZE, COUNT), (4, SIZE // 4)), 4)
    assert len(derived([USED, copied, reaching(10)]).structure.fields) == NUMBERS + 3


def test_undeclared_numbers_are_one_field_as_far_as_they_are_reached() -> None:
    fields = derived([USED, reaching(MOST_APART + 1)], None).structure.fields
    assert [(f.name, f.offset, f.bytes) for f in fields] == [("f0", 0, 4), ("f16", 16, 4 * (MOST_APART + 1))]


@pytest.mark.parametrize(("dims", "name"), [("[2][3]", "m[2][3].v"), ("", "v")])
def test_the_array_is_the_innermost_that_holds_all_of_it(dims: str, name: str) -> None:
    path = f"m{dims}." if dims else ""
    numbers = tuple(Member(f"{path}v[{k}]", 4 + 4 * k, 4, "int") for k in range(NUMBERS))
    declared = Declared("side", SIZE, (Member("used", 0, 4, "int"), *numbers, Member("sum", 408, 8, "double")), (), SIZE)
    assert [f.name for f in derived([USED, reaching(80)], declared).structure.fields] == ["used", name]


def test_its_declaration_is_that_of_an_array() -> None:
    structure = derived([USED, reaching(80)]).structure
    assert f"float coef[{NUMBERS}];" in declare_structure(structure)
    assert Field("coef", 4, 400, "float[100]").place == range(4, 404)


BLOCKS = Declared("block", 16, (*(Member(f"room[{k}]", k, 1, "char") for k in range(16)),), (), 16)


@pytest.mark.parametrize(
    ("accesses", "fields"),
    [
        ([(0, 8), (8, 8)], [("room[0..7]", 0, 8), ("room[8..15]", 8, 8)]),
        ([(0, 8), (8, 4)], [("room[0..7]", 0, 8), ("room[8..11]", 8, 4)]),
        ([(0, 8), (8, 1), (9, 1)], [("room[0..7]", 0, 8), ("room[8]", 8, 1), ("room[9]", 9, 1)]),
        ([(0, 8), (4, 8)], [("room[0..3]", 0, 4), ("room[4..7]", 4, 4), ("room[8..11]", 8, 4)]),
        ([(0, 16)], [(f"room[{k}]", k, 1) for k in range(16)]),
    ],
    ids=["words", "a shorter one", "bytes beside", "overlapping", "a vector"],
)
def test_declared_bytes_that_are_accessed_as_words_are_no_fields_of_their_own(
    accesses: list[tuple[int, int]], fields: list[tuple[str, int, int]]
) -> None:
    """mawk's pool of blocks (``char dummy[8]``) has pointers in it, and layouts that took these apart were measured."""
    shape = MemoryObjectShape("s0", "pool", BLOCK_AT, 640, type="block")
    uses = [Access(stream(BLOCK_AT + at, (16, 40)), size) for at, size in accesses]
    found = derive_structure(shape, uses, BLOCKS, record=16)
    check_exact(found, uses)
    assert [(f.name, f.offset, f.bytes) for f in found.structure.fields] == fields
