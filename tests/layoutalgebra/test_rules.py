"""Every rule's index map is a bijection on the accessed offsets, composes, inverts, and prints as sympy and C."""

import ctypes
import subprocess
from pathlib import Path

import pytest
import sympy
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.rules.index_map import IndexMap
from layout_advise.layoutalgebra.rules.map_printing import to_c, to_sympy
from layout_advise.layoutalgebra.rules.rewriting import Rewrite, Rule
from layout_advise.layoutalgebra.rules.rules import (
    Compact,
    CutBlocks,
    CutPeriods,
    CutStride,
    Divide,
    Fuse,
    Pad,
    Permute,
    SplitArray,
    divide,
    rewrite,
)
from layout_advise.layoutalgebra.sets.index_set import index_set
from layout_advise.layoutalgebra.terms.term import A, S, Term, factors_of, product, terms_of, union
from layout_advise.layoutalgebra.terms.text import parse
from tests.support import slower


@st.composite
def sums(draw: st.DrawFn) -> Term:
    shape = draw(st.lists(st.sampled_from([2, 3, 4, 6]), min_size=2, max_size=3))
    rows = [
        product(S(draw(st.sets(st.integers(0, n - 1), min_size=1)), n) for n in shape)
        for _ in range(draw(st.integers(1, 3)))
    ]
    return union(rows)


rules = st.one_of(
    st.builds(CutBlocks, st.integers(0, 2), st.integers(2, 3)),
    st.builds(CutPeriods, st.integers(0, 2), st.integers(2, 3)),
    st.builds(CutStride, st.integers(0, 2), st.integers(2, 3)),
    st.builds(Permute, st.integers(0, 1)),
    st.builds(SplitArray, st.integers(0, 2), st.integers(2, 3)),
    st.builds(Fuse, st.integers(0, 1)),
    st.builds(Compact, st.integers(0, 2)),
    st.builds(Pad, st.integers(0, 2), st.integers(2, 8)),
    st.builds(Divide, st.integers(0, 2), st.sets(st.integers(0, 5), min_size=1).map(index_set)),
)


def applied(term: Term, steps: list[Rule]) -> Rewrite:
    """The rules one after the other; those that do not apply say so and are left out."""
    done, refused = rewrite(term, []), list[tuple[Rule, AlgebraError]]()
    for rule in steps:
        try:
            done = rewrite(done.new, [rule]) if not done.number else done.then(rule)
        except AlgebraError as error:
            refused.append((rule, error))
    for rule, refusal in refused:
        assert refusal.what.startswith(f"rule {rule.number} does not apply at factor")
        assert refusal.why
        assert refusal.hint
    return done


@given(sums(), rules)
def test_a_rewriting_is_a_bijection_on_what_is_accessed(term: Term, rule: Rule) -> None:
    done, old = applied(term, [rule]), term.offsets()
    assert sorted(map(done.place, old)) == done.new.offsets()
    if rule.number in ("1", "2", "3", "5", "6", "8") and rule.position == 0:
        assert [done.place(x) for x in old] == old


def place_by_definition(rule: Rule, before: Term, offset: int) -> int:
    """Where rules 4, 7, 8 and 9 put an offset, from the sizes and indices of the factors alone."""
    row = next(factors_of(part) for part in terms_of(before) if part(offset))
    digits, rest = list[int](), offset
    for factor in reversed(row):
        rest, digit = divmod(rest, factor.size)
        digits.insert(0, digit)
    sizes, k = [f.size for f in row], rule.position
    if isinstance(rule, Permute):
        for values in (digits, sizes):
            values[k], values[k + 1] = values[k + 1], values[k]
    elif isinstance(rule, Compact):
        used = row[k].offsets()
        digits[k], sizes[k] = used.index(digits[k]), len(used)
    elif isinstance(rule, Pad):
        sizes[k] = rule.d
    elif isinstance(rule, Divide):
        return offset + (0 if digits[k] in rule.chosen else before.size)
    total = 0
    for digit, size in zip(digits, sizes, strict=True):
        total = total * size + digit
    return total


@given(sums(), rules)
def test_places_are_those_of_the_definition(term: Term, rule: Rule) -> None:
    done = applied(term, [rule])
    if done.number:
        for offset in term.offsets():
            assert done.place(offset) == place_by_definition(rule, term, offset)


@pytest.mark.parametrize("examples", [25, *slower((100,))])
def test_maps_compose_and_invert(examples: int) -> None:
    @settings(max_examples=examples)
    @given(sums(), st.lists(rules, min_size=2, max_size=6))
    def hold(term: Term, steps: list[Rule]) -> None:
        done, old = applied(term, steps), term.offsets()
        moved = [done.place(x) for x in old]
        assert sorted(moved) == done.new.offsets()
        assert [done.map.inverse()(y) for y in moved] == old
        again = done.map.then(done.map.inverse())
        assert [again(x) for x in old] == old
        assert [done.map.inverse().inverse()(x) for x in old] == moved

    hold()


@given(sums(), st.lists(rules, min_size=1, max_size=4))
def test_linear_forms_are_the_map(term: Term, steps: list[Rule]) -> None:
    done = applied(term, steps)
    form = done.map.linear()
    sizes = [f.size for f in factors_of(terms_of(term)[0])]
    for offset in term.offsets() if form else []:
        rest, indices = offset, {}
        for k in reversed(range(len(sizes))):
            rest, indices[f"i{k}"] = divmod(rest, sizes[k])
        assert form is not None
        assert form(**indices) == done.place(offset)


def test_the_linear_form_of_blocks_shows_the_split_dimension() -> None:
    done = rewrite(A(256) @ S([0, 2], 4), [SplitArray(0, 8), Permute(1), Compact(1)])
    assert str(done.new) == "A_32 ⊗ A_2 ⊗ A_8"
    assert done.number == "5,4,7"
    form = done.map.linear("i", "f")
    assert form is not None
    assert set(form.terms) == {(16, "i", 8, 0), (1, "i", 1, 8), (8, "f", 2, 0)}
    assert str(rewrite(A(256) @ S([0, 2], 4), [Permute(0), Compact(0)]).map) == "x -> 256*(x // 2 % 2) + x // 4"
    assert rewrite(A(4) @ S([0, 1, 3, 7], 9), [Compact(1)]).map.linear() is None  # a rank in an irregular set


@settings(max_examples=10)  # sympy takes half a second for one
@given(sums(), st.lists(rules, min_size=1, max_size=3))
def test_sympy_says_the_same(term: Term, steps: list[Rule]) -> None:
    done = applied(term, steps)
    expr = to_sympy(done.map)
    x = sympy.Symbol("x", integer=True, nonnegative=True)
    for offset in term.offsets()[::5]:
        assert expr.subs(x, offset) == done.place(offset)
    back = to_sympy(done.map.inverse())
    for offset in done.new.offsets()[::7]:
        assert back.subs(x, offset) == done.map.inverse()(offset)


def test_a_map_to_one_place_is_a_sympy_expression_too() -> None:
    """A plain 0 came out, which cannot be asked like other expressions."""
    term = parse("S_{0;2} ⊗ S_{0;2}")
    done = applied(term, [Fuse(0), Compact(0)])
    x = sympy.Symbol("x", integer=True, nonnegative=True)
    assert to_sympy(done.map).subs(x, 0) == 0
    assert to_sympy(done.map.inverse()).subs(x, 0) == 0


def test_c_says_the_same(tmp_path: Path) -> None:
    """A hundred random chains and their inverses, compiled together and called on every accessed offset."""
    cases: list[IndexMap] = []

    @seed(4)
    @settings(max_examples=100, database=None)
    @given(sums(), st.lists(rules, min_size=1, max_size=4))
    def collect(term: Term, steps: list[Rule]) -> None:
        done = applied(term, steps)
        cases.extend([done.map, done.map.inverse()])

    collect()
    units = []
    for number, case in enumerate(cases):
        text = to_c(case, f"f{number}").replace("below(", f"below{number}(").replace("among(", f"among{number}(")
        units.append(text.replace("static inline uint64_t f", "uint64_t f").replace("#include <stdint.h>\n", ""))
    source = tmp_path / "maps.c"
    source.write_text("#include <stdint.h>\n" + "\n".join(units))
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-shared", "-fPIC"]
    library = tmp_path / "maps.so"
    subprocess.run(["gcc", *flags, "-o", str(library), str(source)], check=True)
    loaded = ctypes.CDLL(str(library))
    for number, case in enumerate(cases):
        function = loaded[f"f{number}"]
        function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
        for offset in case.old.offsets():
            assert function(offset) == case(offset), to_c(case)


def test_maps_that_do_not_meet_are_refused() -> None:
    one, other = rewrite(A(4) @ A(2), [Permute(0)]).map, rewrite(A(3), [Pad(0, 4)]).map
    with pytest.raises(AlgebraError, match="do not meet"):
        one.then(other)
    with pytest.raises(AlgebraError, match="offset 3 is not accessed"):
        other(3)


def test_maps_of_huge_terms_cost_nothing() -> None:
    term = A(10**6) @ A(10**6) @ S([range(0, 1000, 2)], 1000)
    done = rewrite(term, [SplitArray(1, 8), Permute(2), Compact(2), Permute(0)])
    assert str(done.new) == "A_125000 ⊗ A_1000000 ⊗ A_500 ⊗ A_8"
    for offset in (0, 2, 10**15 - 2, 123_456_789_012_346):
        assert done.map.inverse()(done.place(offset)) == offset
    assert CutBlocks(0, 10**3).apply(S([range(10**6, 10**9)], 10**10)).new == S([range(10**3, 10**6)], 10**7) @ A(10**3)
    assert str(CutStride(0, 2).apply(S([range(0, 10**9, 2)], 10**9)).new) == "A_500000000 ⊗ S_{0;2}"


EXAMPLE = parse("(S_{0;2} ⊗ A_256 ⊗ S_{0,1;4}) ⊕ (S_{1;2} ⊗ A_256 ⊗ S_{2,3;4})")


def test_compaction_of_the_papers_example_once_but_not_twice() -> None:
    once = Compact(2).apply(EXAMPLE)
    assert str(once.new) == "(S_{0;2} ⊗ A_256 ⊗ A_2) ⊕ (S_{1;2} ⊗ A_256 ⊗ A_2)"
    assert sorted(map(once.place, EXAMPLE.offsets())) == list(range(1024))
    with pytest.raises(AlgebraError, match="1024 accessed offsets would share 512 places"):
        Compact(0).apply(once.new)


def test_structure_of_arrays_by_rules() -> None:
    term = A(100) @ S([5], 8)
    soa = Permute(0).apply(term)
    done = Compact(0).apply(soa.new)
    assert done.new == A(100)
    assert [done.place(soa.place(8 * k + 5)) for k in range(100)] == list(range(100))


def test_refusals_say_which_condition_failed() -> None:
    for rule, term, why in (
        (Compact(0), A(4), "is an array"),
        (Fuse(0), A(4) @ S([0], 2), "is an array"),
        (SplitArray(0, 4), A(10), "pad to 12 first"),
        (SplitArray(0, 2), S([0], 4), "not an array"),
        (CutBlocks(0, 2), S([0, 3], 4), "whole blocks of 2"),
        (CutPeriods(0, 2), S([0, 3], 4), "repeat every 2"),
        (CutStride(0, 2), S([0, 3], 4), "2 remainders"),
        (Pad(0, 3), A(4), "smaller than 4"),
        (Permute(3), A(4) @ A(2), "there are 2 factors; choose a position from 0 to 0"),
        (Permute(-1), A(4) @ A(2), "choose a position from 0 to 0"),
        (Permute(0), A(4), "it takes 2 factors; there are 1 factors; cut a factor first"),
        (SplitArray(0, 0), A(4), "choose a block from 2 to 3"),
        (CutBlocks(0, 5), S([0, 3], 12), "divisors of 12: 2, 3, 4, 6"),
        (CutBlocks(0, 2), S([0, 3], 7), "pad it first"),
        (Pad(0, -1), A(4), "pad to 4 or more"),
        (Pad(0, 2**62), A(4) @ A(4), "is beyond 2\\^63"),
        (Divide(0, index_set([0, 1])), S([0, 1], 4), "would be empty; no index outside"),
        (Divide(0, index_set([2])), S([0, 1], 4), "would be empty; no index in"),
        (Permute(0), parse("S_{0;6} ⊕ (A_2 ⊗ S_{1;3})"), "cut them to common sizes first"),
        (Compact(0), (A(2) + S([0], 2)) @ A(3), "multiplies it out"),
        (Compact(1), parse("(A_2 ⊗ S_{0;4}) ⊕ (A_2 ⊗ S_{0,1;4})"), "different sizes; rewrite terms"),
    ):
        with pytest.raises(AlgebraError, match=why):
            rule.apply(term)


@given(sums(), st.integers(0, 1), st.sets(st.integers(0, 5), min_size=1))
def test_dividing_keeps_every_offset_once(term: Term, position: int, chosen: set[int]) -> None:
    try:
        left, right = divide(term, position, index_set(chosen))
    except AlgebraError:
        return
    assert sorted(left.offsets() + right.offsets()) == term.offsets()
