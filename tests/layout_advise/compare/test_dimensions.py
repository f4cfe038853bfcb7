"""``trace --baseline``: plain arrays whose dimensions were put in another order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from layout_advise.compare.confirm import confirmed
from layout_advise.compare.dimensions import reordered
from layout_advise.reports.model.candidate import CandidateReport, PartReport
from layout_advise.reports.model.structure import StructureReport
from tests.support.changed.compared_runs import after, before, region, structure, tried, with_region

USED, UNUSED = "[0][0] [0][1] [1][0] [1][1]", "[2][0] [2][1]"
LEGEND = "; i < 50; j < 40"


def part(fields: str, place: str, name: str = "s_a") -> PartReport:
    return PartReport(name, tuple(fields.split()), 8, "", f"byte = {place}")


def layout(name: str, arrays: str, *parts: PartReport, **changes: Any) -> CandidateReport:
    return tried(name, 2.0, arrays, parts=parts, **changes)


OWN = layout("own", " | ".join(USED.split()), part(USED, f"320*i + 8*j of the array of its field{LEGEND}"))
TURNED = layout("turned", " | ".join(USED.split()), part(USED, f"8*i + 400*j of the array of its field{LEGEND}"))
ROWS = layout("rows", USED, part(USED, f"1280*i + 320*f + 8*j of a_4; f: 0 [0][0], 1 [0][1], 2 [1][0], 3 [1][1]{LEGEND}"))
PAIRS = layout(
    "pairs",
    "[0][0] [0][1] | [1][0] [1][1]",
    part("[0][0] [0][1]", f"640*i + 16*j + 8*f of a_0; f: 0 [0][0], 1 [0][1]{LEGEND}"),
    part("[1][0] [1][1]", f"640*i + 16*j + 8*f of a_1; f: 0 [1][0], 1 [1][1]{LEGEND}"),
)
BLOCKS = layout("blocks", USED, part(USED, f"1280*i + 256*(j // 8) + 64*f + 8*(j % 8) of a_4; f: 0{LEGEND}"), block=8)
COMPACT = layout("compact", USED, part(USED, f"1280*i + 32*j + 8*f of a_4; f: 0 [0][0], 1 [0][1], 2 [1][0]{LEGEND}"))
ALL = (OWN, TURNED, ROWS, PAIRS, BLOCKS, COMPACT)
BEFORE = structure("a", USED, UNUSED, dimensions=(50, 40))


def now(*lengths: int, cells: str = "value", name: str = "a") -> StructureReport:
    return structure(name, cells, type="double", dimensions=lengths)


@pytest.mark.parametrize(
    ("structures", "names", "rest"),
    [
        ((now(3, 2, 50, 40),), ["own"], ()),
        ((now(2, 3, 50, 40),), ["own"], ()),
        ((now(3, 2, 40, 50),), ["turned"], ()),
        ((now(50, 3, 2, 40),), ["rows"], ("[2][0]", "[2][1]")),
        ((now(50, 2, 3, 40),), [], ()),
        ((now(3, 50, 40, 2),), ["pairs"], ()),
        ((now(3, 50, 40, cells="[0] [1]"),), ["pairs"], ()),
        ((now(3, 50, 2, 40),), [], ()),
        ((now(50, 40, 3, 2),), [], ()),
        ((now(50, 40, cells=f"{USED} {UNUSED}"),), [], ()),
        ((now(3, 2, 50, 41),), [], ()),
        ((now(3, 2, 2000),), [], ()),
        ((now(3, 2, 50, 40, name="b"),), [], ()),
        ((now(3, 2, 50, 40), now(3, 2, 50, 40)), [], ()),
        ((structure("a", "x y", dimensions=(3, 2, 50, 40)),), [], ()),
        ((now(),), [], ()),
        ((), [], ()),
    ],
)
def test_orders_of_dimensions(structures: tuple[StructureReport, ...], names: list[str], rest: tuple[str, ...]) -> None:
    found = {one.id: left for one in ALL if (left := reordered(one, (BEFORE,), structures)) is not None}
    assert found == dict.fromkeys(names, rest)


def test_dimensions_of_one_length_are_taken_in_their_old_order() -> None:
    square = replace(BEFORE, dimensions=(50, 50))
    own, turned = (
        replace(one, parts=(replace(one.parts[0], index_map=one.parts[0].index_map.replace("40", "50")),))
        for one in (OWN, TURNED)
    )
    assert reordered(own, (square,), (now(3, 2, 50, 50),)) == ()
    assert reordered(turned, (square,), (now(3, 2, 50, 50),)) is None


def test_an_array_of_numbers_that_is_turned() -> None:
    """Without cells of its own: only the elements' dimensions change places."""
    turned = layout("c1", "value", part("value", f"8*i + 400*j of a{LEGEND}"))
    old = structure("a", "value", dimensions=(50, 40))
    assert reordered(turned, (old,), (now(40, 50),)) == ()
    assert reordered(turned, (old,), (now(50, 40),)) is None


def test_all_arrays_of_a_layout_have_to_be_in_its_order() -> None:
    both = layout(
        "c1", "value | value", part("value", f"8*i + 400*j of a{LEGEND}"), part("value", f"8*i + 400*j of b{LEGEND}", "s_b")
    )
    old = tuple(structure(name, "value", dimensions=(50, 40)) for name in "ab")
    assert reordered(both, old, (now(40, 50), now(40, 50, name="b"))) == ()
    assert reordered(both, old, (now(40, 50), now(50, 40, name="b"))) is None


def test_the_report_says_so() -> None:
    earlier = with_region(
        before(), structures=(BEFORE,), candidates=ALL, verdict=replace(region(before()).verdict, candidate="own", peers=())
    )
    one = region(confirmed(after((now(3, 2, 50, 40),), 100.0), earlier, Path("before.layout")))
    assert one.baseline is not None
    assert (one.baseline.candidate, one.baseline.advised) == ("own", True)
    assert (one.verdict.action, one.verdict.reason) == ("keep", "advised-layout")
    rows = region(confirmed(after((now(50, 3, 2, 40),), 100.0), earlier, Path("before.layout")))
    assert "a layout tried in before.layout (rows: " in rows.verdict.text
    assert "), but with [2][0], [2][1] between them." in rows.verdict.text
