"""The laws, on every offset of all small terms and on random ones; what a term shows in Jupyter; what an import costs."""

import itertools
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layout_advise.layoutalgebra import A, S, parse
from layout_advise.layoutalgebra.terms.laws import LAWS, Law, differ
from layout_advise.layoutalgebra.terms.term import Leaf, Term

SMALL = [
    S(chosen, n) for n in (1, 2, 3) for k in range(1, n + 1) for chosen in itertools.combinations(range(n), k)
]  # every leaf of up to three places: 11 of them


def fits(law: Law, terms: tuple[Term, ...]) -> bool:
    return len({terms[k].size for k in law.same_size}) <= 1


def by_definition(term: Term) -> list[int]:
    """The values one by one, by the characteristic function alone."""
    return [term(x) for x in range(term.size)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_laws_hold_at_every_offset_of_all_small_leaves(law: Law) -> None:
    tried = 0
    for terms in itertools.product(SMALL, repeat=law.arity):
        if fits(law, terms):
            left, right = law.sides(*terms)
            assert by_definition(left) == by_definition(right), terms
            assert differ(left, right) is None
            tried += 1
    assert tried >= 11
    assert "=" in law.statement


@st.composite
def leaf(draw: st.DrawFn, size: int) -> Leaf:
    return S(draw(st.sets(st.integers(0, size - 1), min_size=1)), size)


@st.composite
def term(draw: st.DrawFn, size: int) -> Term:
    """A random term of ``size`` places: a leaf, a product or a sum."""
    small = [d for d in range(2, size) if size % d == 0]
    kind = draw(st.sampled_from(["leaf", "product", "sum"] if small else ["leaf", "sum"]))
    if kind == "product":
        cut = draw(st.sampled_from(small))
        return draw(term(size // cut)) @ draw(term(cut))
    if kind == "sum":
        return draw(leaf(size)) + draw(leaf(size))
    return draw(leaf(size))


@given(st.data(), st.sampled_from(LAWS))
def test_laws_hold_for_random_terms(data: st.DataObject, law: Law) -> None:
    common = data.draw(st.sampled_from([1, 2, 4, 6, 8, 12]))
    sizes = [common if k in law.same_size else data.draw(st.sampled_from([1, 2, 3, 4, 6])) for k in range(law.arity)]
    strategy = leaf if law.name.startswith("common") else term
    operands = [data.draw((strategy if k < 2 else term)(n)) for k, n in enumerate(sizes)]
    left, right = law.sides(*operands)
    assert by_definition(left) == by_definition(right)


@given(st.data())
def test_sizes_and_counts(data: st.DataObject) -> None:
    left, right = (data.draw(term(data.draw(st.sampled_from([2, 4, 6])))) for _ in range(2))
    both = left @ right
    assert (both.size, both.count) == (left.size * right.size, left.count * right.count)
    if left.size == right.size:
        common = len(set(left.offsets()) & set(right.offsets()))
        assert (left + right).count == left.count + right.count - common


@given(st.data())
def test_differ_finds_the_first_difference(data: st.DataObject) -> None:
    left, right = data.draw(term(12)), data.draw(term(12))
    different = [x for x in range(12) if left(x) != right(x)]
    assume(different)
    assert differ(left, right) == different[0]
    assert differ(A(4), A(6)) == 4


def test_a_broken_law_is_found() -> None:
    assert differ(A(2) @ S([0], 2), S([0], 2) @ A(2)) == 1  # ⊗ does not commute


def svg(term: Term) -> tuple[list[str], str]:
    """The titles of the drawn places, and all text."""
    text = term._repr_svg_()
    assert text is not None
    name = "{http://www.w3.org/2000/svg}"
    root = ET.fromstring(text)
    assert root.tag == f"{name}svg"
    assert text.replace("http://www.w3.org/2000/svg", "").count("://") == 0
    return [r.findtext(f"{name}title", "") for r in root.iter(f"{name}rect")], "".join(root.itertext())


def test_the_drawing_of_a_small_term_shows_every_place() -> None:
    small = A(3) @ S([0, 2], 4)
    places, _ = svg(small)
    assert places == [f"offset {x}: {f'member {x % 4}' if small(x) else 'unused'}" for x in range(12)]


BIG = [
    "A_1000000000",
    "A_5 ⊗ A_7 ⊗ A_1000 ⊗ S_{0,1,5;9} ⊗ A_100000",
    "S_{0:1000000000:2;1000000000}",
    "(S_{0;2} ⊗ A_256 ⊗ S_{0,1;4}) ⊕ (S_{1;2} ⊗ A_256 ⊗ S_{2,3;4})",
    "S_{0;6} ⊕ (A_2 ⊗ S_{1;3})",
]


@pytest.mark.parametrize("text", BIG)
def test_the_drawing_of_a_big_term_stays_small_and_true(text: str) -> None:
    big = parse(text)
    places, words = svg(big)
    assert 4 <= len(places) <= 80
    assert len(big._repr_svg_() or "") < 40_000
    for place in places:
        offset, what = place.removeprefix("offset ").replace(",", "").split(": ")
        assert (what != "unused") == bool(big(int(offset)))
    assert text[:40] in words


def test_what_jupyter_shows_is_latex() -> None:
    assert (A(256) @ S([0, 1], 4))._repr_latex_() == r"$A_{256} \otimes S_{\{0,1\};4}$"


def test_the_package_is_imported_without_sympy_and_numpy() -> None:
    code = "import sys, layout_advise.layoutalgebra; assert not {'sympy', 'numpy', 'networkx'} & set(sys.modules)"
    subprocess.run([sys.executable, "-P", "-c", code], cwd="/", check=True)
