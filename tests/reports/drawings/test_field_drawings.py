"""The drawings of which fields are used together: what is drawn, what is told beside it, hostile names."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from itertools import combinations

import msgspec

from layout_advise.reports.model.structure import FieldPair, FieldUse, StructureReport
from layout_advise.reports.pages import html
from layout_advise.reports.pages.field_drawings import MOST_FIELDS, affinity_matrix, drawn_fields, field_graph
from tests.support.sample_report import report


def structure(names: list[str], *, distance: int = 8) -> StructureReport:
    """The sample with these fields, the first ones used most; the affinity of a pair goes by its place."""
    fields = tuple(FieldUse(name, "double", 8 * k, 8, 1000 - k, 0) for k, name in enumerate(names))
    pairs = tuple(FieldPair(min(p), max(p), k / 10 % 1, distance + k) for k, p in enumerate(combinations(names, 2)))
    return msgspec.structs.replace(report().hotspots[0].structures[0], fields=fields, pairs=pairs)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("text")]


def test_the_matrix_has_a_cell_for_each_two_fields() -> None:
    found = affinity_matrix(structure(["x", "y", "z"]))
    assert [text for text in texts(found) if text not in "xyz"] == ["0", ".10", ".20"]
    cells = list(ElementTree.fromstring(found).iter("rect"))
    assert [cell.get("fill-opacity") for cell in cells] == ["0.00", "0.05", "0.10"]


def test_the_graph_joins_what_is_near() -> None:
    near = ElementTree.fromstring(field_graph(structure(["x", "y", "z"])))
    assert [path.get("class") for path in near.iter("path")] == ["plain near"] * 3
    assert [title.text for title in near.iter("title")] == [
        "x and y: 8 bytes",
        "x and z: 9 bytes",
        "y and z: 10 bytes",
    ]
    assert "plain far" in field_graph(structure(["x", "y"], distance=65))
    apart = ElementTree.fromstring(field_graph(structure(["x", "y"], distance=5000)))
    assert not list(apart.iter("path"))
    assert len(list(apart.iter("circle"))) == 2


def test_only_the_fields_used_most_are_drawn_and_that_is_told() -> None:
    many = structure([f"f{k}" for k in range(40)])
    assert [field.name for field in drawn_fields(many)] == [f"f{k}" for k in range(MOST_FIELDS)]
    page = page_with(many)
    assert f"Drawn are the {MOST_FIELDS} fields used most" in page
    assert "680 more in report.json" in page


def test_nothing_is_drawn_without_pairs() -> None:
    alone = msgspec.structs.replace(structure(["x", "y"]), pairs=())
    assert affinity_matrix(alone) == field_graph(alone) == ""
    assert "used together" not in page_with(alone)


def test_a_pair_that_is_missing_has_no_cell() -> None:
    whole = structure(["x", "y", "z"])
    part = msgspec.structs.replace(whole, pairs=whole.pairs[1:])
    assert affinity_matrix(whole).count("<rect") == affinity_matrix(part).count("<rect") + 1


def test_names_are_escaped_and_cut() -> None:
    page = page_with(structure(["<b>&", "a" * 200]))
    assert "<b>" not in affinity_matrix(structure(["<b>&", "y"]))
    assert "&lt;b&gt;&amp;" in page
    assert "a" * 15 + "…" in page


def test_the_page_has_a_table_beside_the_drawings() -> None:
    page = page_with(structure(["x", "y", "z"]))
    assert '<td>x</td><td>z</td><td class="num">0.10</td><td class="num">9</td>' in page
    assert 'aria-label="Affinity of the fields of particles"' in page


def page_with(one: StructureReport) -> str:
    whole = report()
    return html.render(
        msgspec.structs.replace(whole, hotspots=(msgspec.structs.replace(whole.hotspots[0], structures=(one,)),))
    )
