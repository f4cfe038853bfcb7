"""Derivation to a normal form: exact always, the same from every order of steps, and as cheap for 1e9 places as for 1e3."""

import itertools
import math
import random
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra import A, S, derive, parse
from layout_advise.layoutalgebra import derive as derive_function
from layout_advise.layoutalgebra.rules.rules import CutBlocks, CutPeriods, CutStride
from layout_advise.layoutalgebra.sets.index_set import IndexSet, index_set
from layout_advise.layoutalgebra.sets.nests import AddressSet, Affine, FoldedStream, Loop, Node, Point
from layout_advise.layoutalgebra.sets.set_operations import difference, nested, quotients, remainders, subset
from layout_advise.layoutalgebra.terms.laws import differ
from layout_advise.layoutalgebra.terms.normal_form import normal_form
from layout_advise.layoutalgebra.terms.term import Leaf, Term, factors_of, product, terms_of, union
from layout_advise.tracer.folding.fold import fold

MODULE = sys.modules["layout_advise.layoutalgebra.derive.exact_terms"]

# --- operations on index sets ------------------------------------------------------------------------------------------

sets = st.lists(
    st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(1, 9)).map(
        lambda t: range(t[0], t[0] + t[1] * t[2], t[2])
    ),
    min_size=1,
    max_size=3,
).map(index_set)


@given(sets, sets, st.integers(1, 12))
def test_operations_on_index_sets(a: IndexSet, b: IndexSet, by: int) -> None:
    assert list(difference(a, b) or []) == sorted(set(a) - set(b))
    assert subset(a, b) == (set(a) <= set(b))
    assert list(quotients(a, by)) == sorted({i // by for i in a})
    assert list(remainders(a, by)) == sorted({i % by for i in a})
    inner = remainders(b, by)
    assert list(nested(a, by, inner)) == sorted(i * by + j for i in a for j in inner)


def test_operations_on_huge_sets_are_arithmetic() -> None:
    even, big = index_set([range(0, 10**15, 2)]), index_set([range(10**15)])
    assert difference(big, even) == index_set([range(1, 10**15, 2)])
    assert quotients(even, 1000) == index_set([range(10**12)])
    assert remainders(even, 1000) == index_set([range(0, 1000, 2)])


# --- the normal form -------------------------------------------------------------------------------------------------

SHAPES = [(4,), (2, 3), (4, 4), (2, 3, 4), (3, 2, 2, 2), (6, 4)]


@st.composite
def shaped(draw: st.DrawFn) -> tuple[Term, tuple[int, ...]]:
    shape = draw(st.sampled_from(SHAPES))
    rows = [
        product(S(draw(st.sets(st.integers(0, n - 1), min_size=1)), n) for n in shape)
        for _ in range(draw(st.integers(1, 5)))
    ]
    return union(rows), shape


def by_definition(chosen: set[tuple[int, ...]]) -> set[tuple[frozenset[int], ...]]:
    """The normal form of a set of index tuples: rows with equal sets in the last place are one, and so on."""
    if len(next(iter(chosen))) == 1:
        return {(frozenset(t[0] for t in chosen),)}
    rows: dict[tuple[int, ...], set[int]] = {}
    for *head, last in chosen:
        rows.setdefault(tuple(head), set()).add(last)
    groups: dict[frozenset[int], set[tuple[int, ...]]] = {}
    for prefix, row in rows.items():
        groups.setdefault(frozenset(row), set()).add(prefix)
    return {(*outer, row) for row, prefixes in groups.items() for outer in by_definition(prefixes)}


def digits(offset: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    found = []
    for size in reversed(shape):
        offset, digit = divmod(offset, size)
        found.append(digit)
    return tuple(reversed(found))


@given(shaped())
def test_the_normal_form_is_its_definition(case: tuple[Term, tuple[int, ...]]) -> None:
    term, shape = case
    found = normal_form(term, shape)
    truth = by_definition({digits(x, shape) for x in term.offsets()})
    assert {tuple(frozenset(f.offsets()) for f in factors_of(row)) for row in terms_of(found)} == truth
    assert len(terms_of(found)) == len(truth)
    assert differ(found, term) is None


def random_steps(flat: Leaf, cuts: list[int], rng: random.Random) -> Term:
    """A flat set cut at ``cuts`` (sizes of inner parts) in random order, by rules 1 to 3 where they apply."""
    rows: list[list[tuple[Leaf, int]]] = [[(flat, 1)]]  # factors with what lies to their right
    for size in rng.sample(cuts, len(cuts)):
        following = []
        for row in rows:
            place = next(k for k, (leaf, inner) in enumerate(row) if inner < size < inner * leaf.size)
            leaf, inner = row[place]
            for outer, within in cut_once(leaf, size // inner, rng):
                following.append([*row[:place], (outer, size), (within, inner), *row[place + 1 :]])
        rows = following
    rng.shuffle(rows)
    return union(product(leaf for leaf, _ in row) for row in rows)


def cut_once(leaf: Leaf, by: int, rng: random.Random) -> list[tuple[Leaf, Leaf]]:
    for rule in rng.sample([CutBlocks(0, by), CutPeriods(0, by), CutStride(0, by)], 3):
        try:
            old = rule.leaves((leaf,))
        except AlgebraError:
            continue
        return [(old[0], old[1])]
    parts = list(leaf.indices)  # no rule applies: apart into two sets at random, each cut on its own
    rng.shuffle(parts)
    middle = rng.randint(1, len(parts) - 1)
    return [pair for some in (parts[:middle], parts[middle:]) for pair in cut_once(S(some, leaf.size), by, rng)]


@given(st.data())
def test_every_order_of_rules_ends_in_the_normal_form(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(2, 3, 4), (4, 2, 3), (2, 2, 2, 3), (6, 4)]))
    size = math.prod(shape)
    flat = S(data.draw(st.sets(st.integers(0, size - 1), min_size=1)), size)
    cuts = [math.prod(shape[k:]) for k in range(1, len(shape))]
    goal = normal_form(flat, shape)
    for _ in range(3):
        done = random_steps(flat, cuts, random.Random(data.draw(st.integers(0, 10**6))))
        assert done.offsets() == flat.offsets()
        assert normal_form(done, shape) == goal


def test_the_papers_rules_alone_are_not_confluent() -> None:
    flat = S([0], 6)
    one, other = CutStride(0, 3).apply(flat).new, CutStride(0, 2).apply(flat).new
    assert (str(one), str(other)) == ("S_{0;2} ⊗ S_{0;3}", "S_{0;3} ⊗ S_{0;2}")  # two ends, no rule 1-3 applies to either
    for stuck in (one, other):
        for place, rule in itertools.product((0, 1), (CutBlocks, CutPeriods, CutStride)):
            for p in (2, 3):
                with pytest.raises(AlgebraError, match="does not apply"):
                    rule(place, p).apply(stuck)


def test_the_papers_rules_alone_shred_a_field() -> None:
    step = CutStride(0, 4).apply(S([5], 8)).new
    assert str(CutStride(1, 2).apply(step).new) == "S_{1;2} ⊗ S_{0;2} ⊗ S_{1;2}"
    assert str(derive([walk(40, (64, 100))], base=0, bytes=6400)) == "A_100 ⊗ S_{5;8}"  # cut at the stride only


def test_merging_alone_is_not_confluent() -> None:
    """Three of four places: two ways to unite two of them, and neither result can be made smaller."""
    a = parse("(S_{0;2} ⊗ A_2) ⊕ (S_{1;2} ⊗ S_{0;2})")
    b = parse("(A_2 ⊗ S_{0;2}) ⊕ (S_{0;2} ⊗ S_{1;2})")
    assert differ(a, b) is None
    assert a != b
    assert normal_form(a) == normal_form(b) == a


def test_normal_forms_refuse_sizes_that_do_not_fit() -> None:
    with pytest.raises(AlgebraError, match="product is not 12"):
        normal_form(A(12), (5, 2))
    with pytest.raises(AlgebraError, match="refine"):
        normal_form(A(4) @ A(3), (3, 4))
    with pytest.raises(AlgebraError, match="give the sizes"):
        normal_form(parse("S_{0;6} ⊕ (A_2 ⊗ S_{1;3})"))
    assert str(normal_form(parse("S_{0;6} ⊕ (A_2 ⊗ S_{1;3})"), (2, 3))) == "(S_{0;2} ⊗ S_{0,1;3}) ⊕ (S_{1;2} ⊗ S_{1;3})"


# --- from streams ------------------------------------------------------------------------------------------------------


def walk(start: int, *levels: tuple[int, int]) -> FoldedStream:
    """``levels`` are (stride, trip), outermost first."""
    node: Node = Point(Affine(start, tuple(s for s, _ in levels)))
    for _, trip in reversed(levels):
        node = Loop(Affine(trip), (node,))
    return FoldedStream((node,), math.prod(t for _, t in levels))


@st.composite
def stream_lists(draw: st.DrawFn) -> tuple[list[FoldedStream], int]:
    """Nests over a grid of at most 3 dimensions: any start, steps, directions, triangles, walks that cross rows."""
    dims = draw(st.lists(st.integers(2, 6), min_size=1, max_size=3))
    strides = [8 * math.prod(dims[k + 1 :]) for k in range(len(dims))]
    size, found = 8 * math.prod(dims), []
    for _ in range(draw(st.integers(1, 4))):
        levels = []
        for count, stride in zip(dims, strides, strict=True):
            step = draw(st.sampled_from([1, 1, 2, 3]))
            levels.append((stride * step, draw(st.integers(1, -(-count // step)))))
        if draw(st.booleans()):  # on into the following rows
            levels = [(strides[-1] * draw(st.integers(1, 3)), draw(st.integers(1, dims[-1] * 2)))]
        room = size // 8 - 1 - sum(s // 8 * (t - 1) for s, t in levels)
        if room < 0:
            continue
        start = 8 * draw(st.integers(0, room))
        if draw(st.booleans()):
            start += sum(s * (t - 1) for s, t in levels)
            levels = [(-s, t) for s, t in levels]
        found.append(walk(start, *levels))
    if len(dims) == 2 and draw(st.booleans()):
        most = min(dims)
        rows = draw(st.integers(1, most))
        nest = Loop(Affine(rows), (Loop(Affine(1, (1,)), (Point(Affine(0, (strides[0], strides[1]))),)),))
        found.append(FoldedStream((nest,), rows * (rows + 1) // 2))
    return found or [walk(0, (8, 2))], size


@settings(max_examples=300)
@given(stream_lists(), st.booleans())
def test_the_term_is_the_traced_set_both_ways(case: tuple[list[FoldedStream], int], by_arithmetic: bool) -> None:
    streams, size = case
    with pytest.MonkeyPatch.context() as patch:
        if by_arithmetic:
            patch.setattr(MODULE, "SMALL", 0)
        term = derive(streams, base=0, bytes=size)
    truth = sorted({a for s in streams for a in s.expand()})
    assert [8 * x for x in term.offsets()] == truth


@given(stream_lists(), st.randoms(use_true_random=False))
def test_arithmetic_and_writing_out_agree_in_every_order(case: tuple[list[FoldedStream], int], rng: random.Random) -> None:
    streams, size = case
    term = derive(streams, base=0, bytes=size)
    shuffled = rng.sample(streams, len(streams))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE, "SMALL", 0)
        assert derive(shuffled, base=0, bytes=size) == term


def board(n: int, d: int, pad: int = 0) -> list[int]:
    """The addresses of the even places of an n^d grid of doubles, in program order; ``pad`` unused ones on every side."""
    m = n + 2 * pad
    weights = [8 * m ** (d - 1 - k) for k in range(d)]
    return [
        sum((i + pad) * w for i, w in zip(index, weights, strict=True))
        for index in itertools.product(range(n), repeat=d)
        if sum(index) % 2 == 0
    ]


@pytest.mark.parametrize(("n", "d", "pad"), [(12, 2, 0), (12, 2, 1), (24, 3, 0), (10, 3, 1), (24, 4, 0), (8, 4, 1)])
def test_checkerboards_are_recovered_from_real_folded_traces(n: int, d: int, pad: int) -> None:
    addresses, m = board(n, d, pad), n + 2 * pad
    stream = fold(addresses)
    assert isinstance(stream, FoldedStream)
    term = derive([stream], base=0, bytes=8 * m**d)
    assert [8 * x for x in term.offsets()] == addresses
    assert len(terms_of(term)) == 2 ** (d - 1)
    assert all([f.size for f in factors_of(row)] == [m] * d for row in terms_of(term))


def test_an_even_lattice_behind_an_index_table_is_recovered() -> None:
    """No order at all: the set of touched sites of structures of 18 doubles, of which two are used."""
    n, sites = 8, [x // 8 for x in board(8, 3)]
    random.Random(3).shuffle(sites)
    assert isinstance(fold([144 * s for s in sites] * 3), AddressSet | FoldedStream)
    bits, streams = bytearray(n**3), list[AddressSet]()
    for s in sites:
        bits[s // 8] |= 1 << s % 8
    for member in (0, 5):
        streams.append(AddressSet(8 * member, 8 * member + 144 * max(sites), 144, len(sites), bytes(bits)))
    term = derive(streams, base=0, bytes=144 * n**3)
    assert term.offsets() == sorted(18 * s + k for s in sites for k in (0, 5))


def big_board(n: int) -> FoldedStream:
    """What folding makes of a 4-D checkerboard of n^4 places: a nest over pairs with two nests for each pair."""
    w = [8 * n**k for k in (3, 2, 1, 0)]

    def nest(parity: tuple[int, ...]) -> Loop:
        if len(parity) == 3:
            start = sum(p * x for p, x in zip((*parity, sum(parity) % 2), w, strict=True))
            return Loop(Affine(n // 2), (Point(Affine(start, tuple(2 * x for x in w))),))
        return Loop(Affine(n // 2), (nest((*parity, 0)), nest((*parity, 1))))

    return FoldedStream((nest(()),), n**4 // 2)


def test_a_checkerboard_of_a_billion_points() -> None:
    small = derive([big_board(8)], base=0, bytes=8 * 8**4)
    assert [8 * x for x in small.offsets()] == board(8, 4)
    term = derive([big_board(212)], base=0, bytes=8 * 212**4)
    assert term.count == 212**4 // 2 == 1_009_981_568
    assert str(term) == str(small).replace("0:8:2;8", "0:212:2;212").replace("1:8:2;8", "1:212:2;212")


def test_huge_regular_walks_need_no_memory() -> None:
    aos = derive([walk(8 * k, (80, 10**9)) for k in (0, 3, 4)], base=0, bytes=80 * 10**9)
    assert str(aos) == "A_1000000000 ⊗ S_{0,3,4;10}"
    backwards = derive([walk(8 * (10**9 - 1), (-8, 10**9))], base=0, bytes=8 * 10**9)
    assert str(backwards) == "A_1000000000"
    inner = derive([walk(8 * (1000**2 + 1001), (8 * 1000**2, 998), (8000, 998), (8, 998))], base=0, bytes=8 * 1000**3)
    assert str(inner) == "S_{1:999;1000} ⊗ S_{1:999;1000} ⊗ S_{1:999;1000}"


def test_sets_without_a_pattern_are_one_flat_set_or_an_error_with_figures() -> None:
    rng = random.Random(5)
    chosen = sorted(rng.sample(range(5000), 900))
    flat = derive_function([fold([8 * x for x in chosen])], base=0, bytes=40000)
    assert isinstance(flat, Leaf)
    assert flat.offsets() == chosen
    triangle = Loop(Affine(300), (Loop(Affine(1, (1,)), (Point(Affine(0, (2400, 8))),)),))
    found = derive([FoldedStream((triangle,), 45150)], base=0, bytes=8 * 300 * 300)
    assert found.offsets() == sorted({300 * i + j for i in range(300) for j in range(i + 1)})
    noise = [rng.randrange(1 << 24) for _ in range(60_000)]
    with pytest.raises(AlgebraError, match=r"irregular: 60000 accesses over \d+ bytes"):
        derive([fold([8 * x for x in noise])], base=0, bytes=8 << 24)


def test_what_cannot_be_derived_says_why() -> None:
    unknown = AddressSet(0, 8000, 8, 50, None)
    for streams, arguments, why in (
        ([], {}, "not known exactly"),
        ([unknown], {}, "not known exactly"),
        ([walk(0, (8, 4))], {"access_bytes": 0}, "at least one byte"),
        ([walk(64, (8, 4))], {"base": 0, "bytes": 8}, "leaves the memory object"),
        ([walk(64, (8, 4))], {"base": 0, "bytes": -8}, "at least one byte"),
        ([walk(0, (8, 0))], {}, "touches nothing"),
    ):
        with pytest.raises(AlgebraError, match=why):
            derive(streams, **arguments)  # type: ignore[arg-type]
