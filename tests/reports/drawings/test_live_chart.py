"""The drawing of the calls of a trial in the running program, from data as a run has them and as a damaged file may."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import jsonschema
import msgspec
import pytest

from layout_advise.reports.model import contract
from layout_advise.reports.model.candidate import LiveReport
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.pages import html
from layout_advise.reports.pages.live_chart import MOST_STRETCHES, drawn_trial, live_part
from tests.support.sample_report import candidate, live, report

NAME = "Calls in the running program, in their order"
ROOMY = 100_000


def tried(one: LiveReport | None, name: str = "c1") -> Report:
    """The sample with a candidate that was tried in the running program."""
    whole = report()
    (hotspot,) = whole.hotspots
    rows = tuple(msgspec.structs.replace(c, live=one) if c.id == name else c for c in hotspot.candidates)
    return msgspec.structs.replace(whole, hotspots=(msgspec.structs.replace(hotspot, candidates=rows),))


def drawn(**changes: object) -> tuple[ElementTree.Element, str]:
    """The drawing, well-formed, with what stands below it."""
    (hotspot,) = tried(live(**changes)).hotspots
    part = live_part(hotspot, ROOMY)
    return ElementTree.fromstring(part.figure), part.caption


def spots(figure: ElementTree.Element, kind: str) -> list[tuple[float, float]]:
    """The corners of the line of a kind."""
    paths = [str(node.get("d")) for node in figure.iter("path") if node.get("class") == f"{kind} line"]
    words = " ".join(paths).replace("M", " ").replace("L", " ").split()
    return list(zip(map(float, words[::2]), map(float, words[1::2]), strict=True))


def texts(figure: ElementTree.Element) -> list[str]:
    return [node.text or "" for node in figure.iter("text")]


def test_each_stretch_is_at_its_height() -> None:
    figure, _ = drawn()
    original, layout = spots(figure, "plain"), spots(figure, "gain")
    assert (len(original), len(layout)) == (120, 110)
    bottom = max(float(str(n.get("d")).split()[1].split("H")[0]) for n in figure.iter("path") if n.get("class") == "grid")
    bottom -= 46  # the strip of the copies
    ratios = [(bottom - own) / (bottom - new) for (_, own), (_, new) in zip(original[:30], layout[:30], strict=True)]
    expected = [(8e6 + 1e4 * (k % 9)) / (2.4e6 + 1e4 * (k % 7)) for k in range(30)]
    assert ratios == pytest.approx(expected, rel=0.01)
    assert original[0][0] == layout[0][0] < original[-1][0] == layout[-1][0]


def test_it_is_told_what_is_drawn() -> None:
    figure, caption = drawn()
    assert figure.get("role") == "img"
    assert figure.get("aria-label") == figure[0].text == NAME
    assert figure[1].tag == "desc"
    about = (
        "A call takes, by stretch: original 8 ms to 8.08 ms, new layout 2.4 ms to 2.46 ms; copies of the data up to 800 µs."
    )
    assert figure[1].text == about
    assert {"original", "new layout", "copies ≤ 800 µs", "number of the call; ms each", "100", "200", "300"} <= set(
        texts(figure)
    )
    assert "A point is the median of 3 calls" in caption
    assert "Bars, with a scale of their own: copies" in caption
    assert "Grey: calls left to the original" in caption
    assert "upper edge" not in caption


def test_what_is_not_there_is_not_named() -> None:
    figure, caption = drawn(stretch=1, copying_ns=(0.0,) * 120, left_out=(0,) * 120)
    assert not [text for text in texts(figure) if text.startswith("copies")]
    assert "Bars" not in caption
    assert "Grey" not in caption
    assert "A point is a call" in caption
    assert not list(figure.iter("rect"))


def test_calls_left_to_the_original_are_a_band() -> None:
    figure, _ = drawn()
    (band,) = figure.iter("rect")
    across = [x for x, _ in spots(figure, "plain")]
    start, end = float(str(band.get("x"))), float(str(band.get("x"))) + float(str(band.get("width")))
    assert [k for k, x in enumerate(across) if start < x < end] == list(range(30, 40))


def test_copies_have_a_strip_of_their_own() -> None:
    """However long they take: what they are compared with stays readable."""
    for copying in ((1.0,) * 120, (9e9,) * 120, tuple(float(k) for k in range(120))):
        figure, _ = drawn(copying_ns=copying)
        assert spots(figure, "plain") == spots(drawn(copying_ns=(0.0,) * 120)[0], "plain")
        (bars,) = [str(node.get("d")) for node in figure.iter("path") if node.get("class") == "copies line"]
        tops = [float(bar.split("V")[1]) for bar in bars.split("M")[1:]]
        assert len(tops) == sum(value > 0 for value in copying)
        assert 170 < min(tops) <= max(tops) <= 216
        assert tops == sorted(tops, reverse=True)


def test_a_rare_long_call_does_not_press_the_others_down() -> None:
    usual = tuple(8e6 + 1e4 * (k % 9) for k in range(120))
    figure, caption = drawn(original_ns=(*usual[:60], 5e9, *usual[61:]))
    assert min(y for _, y in spots(figure, "plain")) == 10  # the upper edge
    assert spots(figure, "plain")[0][1] < 110
    assert "Of 1 points the value is above the upper edge; the greatest is 5 s." in caption
    half = tuple(8e6 if k % 8 else 6e7 for k in range(120))
    assert "upper edge" not in drawn(original_ns=half)[1]


def test_a_single_stretch_between_others_is_a_dot() -> None:
    figure, _ = drawn(layout_ns=(None, 2e6, None, 2e6, 2e6, *(None,) * 115))
    assert len([node for node in figure.iter("circle") if node.get("class") == "gain dot"]) == 1
    assert len(spots(figure, "gain")) == 2


def test_names_do_not_lie_on_each_other() -> None:
    figure, _ = drawn(layout_ns=tuple(7.9e6 for _ in range(120)))
    heights = sorted(float(str(n.get("y"))) for n in figure.iter("text") if n.get("text-anchor") == "start")
    assert len(heights) == 3  # the third is that of the copies, in their strip
    assert min(b - a for a, b in pairwise(heights)) >= 15


def test_that_of_the_verdict_is_drawn() -> None:
    (hotspot,) = tried(live()).hotspots
    other = msgspec.structs.replace(candidate(3, None), live=live())

    def name(one: HotspotReport) -> str | None:
        found = drawn_trial(one)
        return found.id if found is not None else None

    both = msgspec.structs.replace(hotspot, candidates=(other, *hotspot.candidates))
    assert name(both) == "c1"
    about = msgspec.structs.replace(hotspot.verdict, action="keep", candidate=None, about="c3")
    assert name(msgspec.structs.replace(both, verdict=about)) == "c3"
    assert name(msgspec.structs.replace(both, candidates=(other,))) == "c3"
    assert name(report().hotspots[0]) is None


def test_the_page_has_it_and_runs_without_have_not() -> None:
    page = html.render(tried(live()))
    assert page.count(f"<title>{NAME}</title>") == 1
    older = html.render(tried(msgspec.structs.replace(live(), course=None)))
    assert NAME not in older
    assert "In the running program" in older
    assert NAME not in html.render(report())


def test_a_report_of_an_older_version_is_read() -> None:
    data = json.loads(contract.encode(tried(live())))
    for one in data["hotspots"][0]["candidates"]:
        (one["live"] or {}).pop("course", None)
    jsonschema.validate(data, contract.schema())
    found = contract.decode(json.dumps(data).encode())
    assert found == tried(msgspec.structs.replace(live(), course=None))


def test_it_is_part_of_the_schema() -> None:
    data = contract.encode(tried(live()))
    assert contract.decode(data) == tried(live())
    jsonschema.validate(json.loads(data), contract.schema())
    wrong = json.loads(data)
    wrong["hotspots"][0]["candidates"][1]["live"]["course"]["original_ns"][0] = "soon"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, contract.schema())


BAD: dict[str, dict[str, object]] = {
    "empty": {"original_ns": (), "layout_ns": (), "copying_ns": (), "left_out": ()},
    "none": {"original_ns": (None,) * 120},
    "negative": {"layout_ns": (-1.0, 0.0) * 60},
    "endless": {"original_ns": (1e308,) * 120, "layout_ns": (1e308,) * 120, "copying_ns": (1e308,) * 120},
    "no stretch": {"stretch": 0},
    "backwards": {"stretch": -3, "calls": -1},
}


@pytest.mark.parametrize("changes", BAD.values(), ids=BAD)
def test_nothing_is_drawn_of_nothing(changes: dict[str, object]) -> None:
    assert NAME not in html.render(tried(live(**changes)))


ODD: dict[str, dict[str, object]] = {
    "unequal": {"original_ns": (8e6,) * 7, "copying_ns": (), "left_out": (1,)},
    "one": {"original_ns": (8e6,), "layout_ns": (2e6,), "copying_ns": (None,), "left_out": (9,)},
    "many": dict.fromkeys(("original_ns", "layout_ns", "copying_ns"), (5.0,) * 50_000),
    "far": {"first": 10**15, "stretch": 10**12},
    "below zero": {"first": -(10**15), "left_out": (-5,) * 120},
    "tiny": {"original_ns": (1e-300,) * 120, "layout_ns": (1e-300,) * 120, "copying_ns": (0.0,) * 120},
    "copies alone": {"copying_ns": (1e14,) * 120},
    "long": {"original_ns": (9e14,) * 120},
}


@pytest.mark.parametrize("changes", ODD.values(), ids=ODD)
def test_odd_data_make_a_small_drawing_all_the_same(changes: dict[str, object]) -> None:
    figure, _ = drawn(**changes)
    text = ElementTree.tostring(figure, encoding="unicode")
    assert len(text) < 40_000
    assert "nan" not in text
    assert "inf" not in text.replace("info", "")
    assert len(spots(figure, "plain")) <= MOST_STRETCHES
    assert len(texts(figure)) < 30
    for node in figure.iter("circle"):
        assert 0 <= float(str(node.get("cy"))) <= 200
    assert all(0 <= x <= 700 and 0 <= y <= 200 for kind in ("plain", "gain") for x, y in spots(figure, kind))


def test_where_regions_are_many_a_sentence_stands_for_it() -> None:
    (hotspot,) = tried(live()).hotspots
    part = live_part(hotspot, 1000)
    assert part.figure == ""
    assert part.caption == "The drawing of its calls is left out, as the page has many regions; report.json has it."
    many = msgspec.structs.replace(tried(live()), hotspots=(hotspot,) * 60)
    page = html.render(many)
    assert NAME not in page
    assert page.count("The drawing of its calls is left out") == 60
