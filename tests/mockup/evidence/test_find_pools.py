"""Which blocks belong together: against blocks whose elements were dealt out at random."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.declared import Declared, Member
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.mockup.evidence.find_pools import FEWEST_ELEMENTS, find_pools
from layout_advise.tracer.objects.attribution import Attribution, ObjectTouch
from layout_advise.tracer.objects.memory_object import MemoryObject

NODE = Declared("node", 24, (Member("x", 0, 8, "double"), Member("next", 8, 8, "node *")), (), 24)
OTHER = Declared("other", 24, (Member("y", 0, 8, "double"), Member("z", 8, 8, "double")), (), 24)
NUMBER = Declared("double", 8, (Member("", 0, 8, "double"),), (), 8)


def attribution(objects: list[MemoryObject], *touches: tuple[int, ...]) -> Attribution:
    """Objects that references touch, each those of these numbers."""
    return Attribution(
        tuple(objects), tuple(tuple(ObjectTouch(n, 1) for n in one) for one in touches), (None,) * len(touches)
    )


def blocks(sizes: list[int], kind: Declared | None, element: int = 24) -> list[MemoryObject]:
    return [MemoryObject("heap", f"b{k}", 0x1000 * (k + 1), n * element, kind) for k, n in enumerate(sizes)]


@given(st.lists(st.integers(1, 9), min_size=2, max_size=20), st.randoms())
def test_elements_are_numbered_by_their_addresses(sizes: list[int], random: object) -> None:
    objects = blocks(sizes, NODE)
    random.shuffle(objects)  # type: ignore[attr-defined]
    found = list(find_pools(attribution(objects, tuple(range(len(objects)))), (), frozenset()))
    if max(sizes) > 7 / 8 * sum(sizes) or sum(sizes) < FEWEST_ELEMENTS:
        assert not found
        return
    (pool,) = found
    assert pool.element == 24
    assert sorted(pool.objects) == list(range(len(objects)))
    assert [b.address for b in pool.blocks] == [0x1000 * (k + 1) for k in range(len(sizes))]
    assert [b.count for b in pool.blocks] == sizes
    assert [b.first for b in pool.blocks] == [sum(sizes[:k]) for k in range(len(sizes))]


def test_only_what_one_reference_reaches_in_turn_belongs_together() -> None:
    objects = blocks([2, 2, 2, 2, 2], NODE)
    pools = list(find_pools(attribution(objects, (0, 1), (1, 2), (3,), (4,)), (), frozenset()))
    assert [pool.objects for pool in pools] == [(0, 1, 2)]


def test_types_are_kept_apart() -> None:
    objects = [*blocks([2, 2], NODE), *blocks([2, 2], OTHER)]
    pools = list(find_pools(attribution(objects, (0, 1, 2, 3)), (), frozenset()))
    assert sorted(pool.objects for pool in pools) == [(0, 1), (2, 3)]


def test_blocks_of_no_type_are_elements_where_all_are_as_large() -> None:
    alike, unlike = blocks([1, 1, 1, 1], None), blocks([1, 1, 1, 2], None)
    (pool,) = find_pools(attribution(alike, (0, 1, 2, 3)), (), frozenset())
    assert (pool.element, [b.count for b in pool.blocks]) == (24, [1, 1, 1, 1])
    assert not list(find_pools(attribution(unlike, (0, 1, 2, 3)), (), frozenset()))


def test_an_array_among_blocks_tells_the_element() -> None:
    objects = blocks([4, 3, 2], None)
    array = Structure("s0", "b0", 0x1000, 96, (Dim(4, 24),), (Field("f0", 0, 8),), block_base=0x1000)
    (pool,) = find_pools(attribution(objects, (0, 1, 2)), (array,), frozenset())
    assert (pool.element, [b.count for b in pool.blocks]) == (24, [4, 3, 2])


def test_numbers_rows_and_what_comes_and_goes_are_no_pool() -> None:
    numbers = blocks([8, 8], NUMBER, 8)
    assert not list(find_pools(attribution(numbers, (0, 1)), (), frozenset()))
    grid = Structure("s0", "b0", 0x1000, 96, (Dim(2, 48), Dim(2, 24)), (Field("f0", 0, 8),), block_base=0x1000)
    assert not list(find_pools(attribution(blocks([4, 4], NODE), (0, 1)), (grid,), frozenset()))
    born = [MemoryObject("heap", "b", 0x1000, 48, NODE, life="born"), *blocks([2, 2], NODE)[1:]]
    assert not list(find_pools(attribution(born, (0, 1)), (), frozenset()))
    assert not list(find_pools(attribution(blocks([2, 2], NODE), (0, 1)), (), frozenset({0x1000})))
