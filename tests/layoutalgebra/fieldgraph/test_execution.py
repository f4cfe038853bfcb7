"""Steps in the order of execution, against a walk over every access; affinity against counting iterations."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.fieldgraph.affinity import affine_clusters, affinities
from layout_advise.layoutalgebra.fieldgraph.clusters import clusterings
from layout_advise.layoutalgebra.fieldgraph.execution import (
    ReferenceFields,
    RunOrder,
    elsewhere,
    reference_fields,
    steps_of,
)
from layout_advise.layoutalgebra.fieldgraph.memory_distance import FieldAccess, Repeat, Step, memory_distances
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point, expand

FIELDS = (Field("a", 0, 4), Field("b", 4, 8), Field("c", 16, 8))
RECORDS = Structure("s0", "p", 1000, 24_000, (Dim(1000, 24),), FIELDS)


def written_out(steps: tuple[Step, ...]) -> list[FieldAccess]:
    found: list[FieldAccess] = []
    for step in steps:
        found.extend([step] if isinstance(step, FieldAccess) else written_out(step.body) * step.times)
    return found


nests = st.recursive(
    st.integers(0, 2).map(lambda number: Point(Affine(number))),
    lambda inner: st.builds(Loop, st.integers(0, 7).map(Affine), st.lists(inner, min_size=1, max_size=3).map(tuple)),
    max_leaves=6,
)
pieces = st.lists(st.sampled_from([(FieldAccess(name, 4),) for name in "abc"]), min_size=1, max_size=4)


@given(st.lists(nests, min_size=1, max_size=3).map(tuple), st.tuples(pieces, pieces, pieces))
def test_steps_are_the_accesses_in_their_order(
    nodes: tuple[Node, ...], given_pieces: tuple[list[tuple[FieldAccess]], ...]
) -> None:
    references = {k: ReferenceFields(tuple(one)) for k, one in enumerate(given_pieces)}
    steps = steps_of(RunOrder(nodes, ((0, 0), (1, 2), (2, 2))), references)
    assert steps is not None
    turn: Counter[int] = Counter()
    wanted: list[FieldAccess] = []
    for piece in expand(nodes):
        for k in ((0,), (1, 2), (2,))[piece]:
            wanted.extend(references[k].pieces[turn[k] % len(references[k].pieces)])
            turn[k] += 1
    assert written_out(steps) == wanted


@given(
    st.lists(st.tuples(st.integers(1, 6), st.sampled_from([0, 4, 8, 12, 24, 48, 72])), min_size=1, max_size=3),
    st.integers(0, 23),
)
def test_the_fields_of_a_stream_are_those_of_its_addresses(levels: list[tuple[int, int]], first: int) -> None:
    node: Node = Point(Affine(1000 + first, tuple(stride for _, stride in levels)))
    count = 1
    for trip, _ in reversed(levels):
        node, count = Loop(Affine(trip), (node,)), count * trip
    found = reference_fields(RECORDS, FoldedStream((node,), count), 4)
    assert found is not None
    for number, address in enumerate(expand((node,))):
        (one, *more) = found.pieces[number % len(found.pieces)]
        place = (address - 1000) % 24
        name = next((f.name for f in FIELDS if f.offset <= place < f.offset + f.bytes), None)
        assert one.field == name
        assert one.bytes + sum(piece.bytes for piece in more) == 4


def test_wide_accesses_reach_several_fields_and_elements() -> None:
    wide = reference_fields(RECORDS, FoldedStream((Point(Affine(1016)),), 1), 16)
    assert wide is not None
    assert wide.pieces == ((FieldAccess("c", 8), FieldAccess("a", 4), FieldAccess("b", 4)),)
    gap = reference_fields(RECORDS, FoldedStream((Point(Affine(1008)),), 1), 16)
    assert gap is not None
    assert gap.pieces == ((FieldAccess("b", 4), FieldAccess(None, 4), FieldAccess("c", 8)),)


def test_what_has_no_known_order_has_no_fields() -> None:
    assert reference_fields(RECORDS, AddressSet(1000, 9000, 8, 50, b""), 8) is None
    gathered = reference_fields(RECORDS, AddressSet(1016, 9000, 48, 50, b""), 8)
    assert gathered == ReferenceFields(((FieldAccess("c", 8),),))
    two = FoldedStream((Point(Affine(1000)), Point(Affine(1016))), 2)
    assert reference_fields(RECORDS, two, 4) is None
    triangle = Loop(Affine(5), (Loop(Affine(1, (1,)), (Point(Affine(1000, (24, 8))),)),))
    assert reference_fields(RECORDS, FoldedStream((triangle,), 15), 4) is None


def test_an_order_that_would_have_to_be_written_out_is_left() -> None:
    many = RunOrder(tuple(Loop(Affine(k), (Point(Affine(0)),)) for k in range(1, 4500)), ((0, 0),))
    assert steps_of(many, {0: elsewhere(8)}) is None


def test_a_billion_accesses_and_the_distances_of_the_paper() -> None:
    order = RunOrder(
        (Loop(Affine(10_000), (Loop(Affine(20_000), (Point(Affine(0)),)), Point(Affine(1)))),), ((0, 3), (4, 4))
    )
    named = {k: ReferenceFields(((FieldAccess(name, 4),),)) for k, name in enumerate("abdde")}
    steps = steps_of(order, named)
    assert steps is not None
    assert sum(step.total for step in steps) == 4 * (10_000 * (4 * 20_000 + 1))
    assert memory_distances(steps)["a", "b"] == 4
    # Kofler et al.: a and b in turn in a loop of 32, c once behind it
    short = RunOrder((Loop(Affine(32), (Point(Affine(0)),)), Point(Affine(1))), ((0, 1), (2, 2)))
    steps = steps_of(short, {k: ReferenceFields(((FieldAccess(name, 4),),)) for k, name in enumerate("abc")})
    assert steps is not None
    distances = memory_distances(steps)
    assert distances == {("a", "b"): 4, ("b", "c"): 252, ("a", "c"): 256}
    assert clusterings("abc", distances) == (((0,), (1,), (2,)), ((0, 1), (2,)), ((0, 1, 2),))


@given(st.lists(st.tuples(st.integers(1, 9), st.sets(st.sampled_from("abcd"), min_size=1)), min_size=1, max_size=4))
def test_affinity_is_the_part_of_the_iterations_in_common(loops: list[tuple[int, set[str]]]) -> None:
    steps = tuple(Repeat(times, tuple(FieldAccess(name, 8) for name in sorted(names))) for times, names in loops)
    iterations = [names for times, names in loops for _ in range(times)]
    for (a, b), affinity in affinities(steps).items():
        either = sum(a in names or b in names for names in iterations)
        assert affinity == sum({a, b} <= names for names in iterations) / either > 0


def test_clusters_by_affinity_fit_into_a_line() -> None:
    fields = tuple(
        Field(name, 8 * k, 8, None, reads) for k, (name, reads) in enumerate(zip("abcd", (9, 9, 5, 1), strict=True))
    )
    affinity = {("a", "b"): 1.0, ("a", "c"): 0.6, ("b", "c"): 0.6, ("c", "d"): 0.4}
    assert affine_clusters(fields, affinity) == ((0, 1, 2), (3,))
    assert affine_clusters(fields, affinity, line=16) == ((0, 1), (2,), (3,))
    assert affine_clusters(tuple(replace(f, bytes=64) for f in fields), affinity) == ((0,), (1,), (2,), (3,))
