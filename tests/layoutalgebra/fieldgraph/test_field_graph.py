"""The field graph: memory distances against a walk over every access, and the partitions that they give."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.fieldgraph.clusters import clusterings
from layout_advise.layoutalgebra.fieldgraph.memory_distance import FieldAccess, Repeat, Step, memory_distances

A, B, C = (FieldAccess(name, 4) for name in "abc")


def walked(steps: tuple[Step, ...]) -> list[tuple[int, str | None, int]]:
    """Every access in order: the bytes accessed before it, its field, its bytes."""
    found: list[tuple[int, str | None, int]] = []

    def go(step: Step, start: int) -> int:
        if isinstance(step, FieldAccess):
            found.append((start, step.field, step.bytes))
            return start + step.bytes
        for _ in range(step.times):
            for inner in step.body:
                start = go(inner, start)
        return start

    start = 0
    for step in steps:
        start = go(step, start)
    return found


def by_definition(steps: tuple[Step, ...]) -> dict[tuple[str, str], float]:
    places: dict[str, list[int]] = {}
    for start, name, _ in walked(steps):
        if name is not None:
            places.setdefault(name, []).append(start)

    def toward(one: str, other: str) -> int:
        return max(min(abs(p - q) for q in places[other]) for p in places[one])

    return {(a, b): max(toward(a, b), toward(b, a)) for a, b in combinations(sorted(places), 2)}


accesses = st.builds(FieldAccess, st.sampled_from(["a", "b", "c", "d", None]), st.sampled_from([1, 4, 8]))
nests = st.recursive(
    accesses,
    lambda inner: st.builds(Repeat, st.integers(1, 5), st.lists(inner, min_size=1, max_size=4).map(tuple)),
    max_leaves=8,
)


@given(st.lists(nests, min_size=1, max_size=4).map(tuple))
def test_distances_are_those_of_every_access(steps: tuple[Step, ...]) -> None:
    assert memory_distances(steps) == by_definition(steps)


def test_a_pair_in_a_loop_and_a_field_behind_it() -> None:
    """The weights of the example in the paper of Kofler et al.; the code that gives them here is ours."""
    distances = memory_distances((Repeat(32, (A, B)), C))
    assert distances == {("a", "b"): 4, ("a", "c"): 256, ("b", "c"): 252}


def test_a_thousand_million_accesses_are_not_gone_through() -> None:
    nest = (Repeat(1000, (Repeat(1000, (Repeat(500, (A, B)), C)),)),)
    distances = memory_distances(nest)  # a walk would not end within the time that a test has
    assert distances == {("a", "b"): 4, ("a", "c"): 4000, ("b", "c"): 3996}


def test_clusters_grow_with_the_length() -> None:
    distances = memory_distances((Repeat(32, (A, B)), C))
    assert clusterings("abcd", distances) == (((0,), (1,), (2,), (3,)), ((0, 1), (2,), (3,)), ((0, 1, 2), (3,)))


def test_twelve_fields_give_a_handful() -> None:
    """The three sections of the example sampo: groups of two, six and four of its fields."""
    names = "abcdefghijkl"
    loops = [Repeat(1000, tuple(FieldAccess(n, 4) for n in group)) for group in ("ab", "cdefgh", "ijkl")]
    found = clusterings(names, memory_distances(tuple(loops)))
    assert ((0, 1), (2, 3, 4, 5, 6, 7), (8, 9, 10, 11)) in found
    assert len(found) <= 12
