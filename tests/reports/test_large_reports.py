"""Large reports: the page of a real run with many more regions, layouts and structures stays a file that opens at once."""

from __future__ import annotations

import re

import msgspec
import pytest

from layout_advise.reports.pages import html, terminal
from tests.support.benchmark_scripts import script

reports = script("reports")
LARGEST = 2_000_000
"""Bytes of a page."""


@pytest.mark.parametrize(("regions", "layouts", "structures"), reports.SIZES)
def test_the_page_stays_small(regions: int, layouts: int, structures: int) -> None:
    report = reports.grown(reports.recorded(), regions, layouts, structures)
    assert [(len(h.candidates), len(h.structures)) for h in report.hotspots] == [(layouts, structures)] * regions
    page = html.render(report)
    assert len(page.encode()) < LARGEST
    assert page.count("<section ") == regions + 1
    assert len(terminal.render(report).splitlines()) < 50 + regions * (terminal.FIRST_LINES + 3) + structures * 8


def test_what_the_words_mean_stands_there_once() -> None:
    report = reports.grown(reports.recorded(), 3, 5, 1)
    page = html.render(report)
    assert page.count('id="words"') == 1
    assert page.count('href="#words"') == 2
    bare = msgspec.structs.replace(report.hotspots[0], candidates=())
    page = html.render(msgspec.structs.replace(report, hotspots=(bare, *report.hotspots[1:])))
    assert (page.count('id="words"'), page.count('href="#words"')) == (1, 1)


def test_long_drawings_are_left_out_of_pages_of_many_regions() -> None:
    one = html.render(reports.grown(reports.recorded(), 1, 5, 1))
    many = html.render(reports.grown(reports.recorded(), 50, 5, 1))
    assert "The drawing is left out" not in one
    assert many.count("The drawing is left out, as the page has many regions; report.json has it.") >= 50
    assert re.search(r'class="drawing"[^>]*><svg', one)
