"""Printed index maps: evaluated as Python they give the places of the layout."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from layout_advise.layoutalgebra.bridges.printed_maps import map_expression, printed_map
from layout_advise.layoutalgebra.derive.structure import Relayout
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.explore import explore
from tests.support.algebra_structures import chosen_of_blocks, of_sizes


def check(layout: Relayout) -> None:
    numbers = {field.name: number for number, field in enumerate(layout.structure.fields)}
    for part in layout.parts:
        text = printed_map(layout, part)
        match = re.match(r"byte = (.*?) of ", text)
        assert match is not None
        for index in itertools.product(*(range(dim.count) for dim in layout.structure.dims)):
            for k, name in enumerate(part.fields):
                place = layout.fields[numbers[name]]
                if layout.holds(index):
                    values = {**dict(zip("ij", index, strict=False)), "f": k, "at": place.offset}
                    assert eval(match[1], {}, values) == place.place(index), text


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_the_text_is_the_map(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.sampled_from([1, 4, 8, 8]), min_size=1, max_size=6))
    gaps = data.draw(st.lists(st.integers(0, 2), min_size=len(sizes), max_size=len(sizes)))
    counts = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=2))
    for candidate in explore([of_sizes(counts, sizes, gaps, 8)]):
        check(candidate.relayouts[0])


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 3), st.lists(st.integers(0, 2), min_size=9, max_size=14))
def test_of_chosen_elements(block: int, picks: list[int]) -> None:
    cells, walk = chosen_of_blocks(block, picks)
    for candidate in explore([cells], walks={"s0": walk}):
        check(candidate.relayouts[0])


def test_a_legend_names_the_variables() -> None:
    waves = of_sizes([50], [8] * 4, [0] * 4, 8)
    found = {c.families: c.relayouts[0] for c in explore([waves], walks={"s0": Walk(0)})}
    soa, pairs = found["soa",], found["aosoa", "complex", "pad"]
    assert printed_map(soa, soa.parts[0]) == "byte = 8*i of the array of its field; i < 50"
    text = "byte = 128*(i // 4) + 64*(f // 2) + 16*(i % 4) + 8*(f % 2) of t_m0_and_3_more; f: 0 m0, 1 m1, 2 m2, 3 m3; i < 50"
    assert printed_map(pairs, pairs.parts[0]) == text
    expression = map_expression(pairs, pairs.parts[0])
    at = {symbol: {"i": 5, "f": 3}[symbol.name] for symbol in expression.free_symbols}
    assert expression.subs(at) == pairs.fields[3].place((5,))


def test_a_report_needs_neither_sympy_nor_scipy_nor_matplotlib() -> None:
    """They are larger than everything else together, and extras."""
    text = "import sys, layout_advise.cli; sys.exit(bool({'sympy', 'scipy', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0
