"""The report: the contract, the terminal, the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest

from layout_advise.errors import RunDirError
from layout_advise.reports import html, model, terminal, wording
from tests.sample_report import report

SCHEMA_FILE = Path(__file__).parent.parent / "docs" / "report.schema.json"


def test_json_round_trip_and_schema() -> None:
    data = model.encode(report())
    assert model.decode(data) == report()
    jsonschema.validate(json.loads(data), model.schema())


def test_the_committed_schema_is_the_code_s() -> None:
    assert json.loads(SCHEMA_FILE.read_text()) == json.loads(json.dumps(model.schema()))


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"{", "damaged"),
        (b'{"schema": "layout-advise.report/9"}', "report/9"),
        (b"[]", "None"),
        (msgspec.json.encode({"schema": model.SCHEMA}), "damaged"),
    ],
)
def test_foreign_and_damaged_reports_are_refused_by_name(data: bytes, word: str) -> None:
    with pytest.raises(RunDirError, match=word):
        model.decode(data)


def test_terminal_begins_with_the_verdict() -> None:
    text = terminal.render(report())
    first = text.splitlines()[0]
    assert first == "Change it: c1 <SoA> is 3.61 times as fast."
    assert text.index("→ c1") < text.index("c2")
    assert "3.61× [3.50, 3.70]" in text
    assert "not lifted: vpshufb xmm0, xmm1 at main.c:71: unknown shuffle" in text
    assert "\x1b[" not in text
    assert "\x1b[" in terminal.render(report(), colour=True)


def test_the_page_is_one_file_without_urls_and_escapes_what_the_program_says() -> None:
    page = html.render(report())
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert "url(" not in page.replace("url(#", "")
    assert "&lt;/code&gt;" in page
    assert "v&lt;x&gt;" in page
    assert "struct &lt;new&gt;" in page
    assert "<svg" in page


def test_the_page_says_what_is_not_advised() -> None:
    page = html.render(report(model.Verdict("keep", None, None, "no-gain", "Keep it.")))
    assert "not advised" in page


@pytest.mark.parametrize(
    ("value", "text"), [(1, "1 B"), (80000, "78.1 KiB"), (100_000_000, "95.4 MiB"), (1 << 32, "4.0 GiB")]
)
def test_sizes(value: int, text: str) -> None:
    assert wording.size(value) == text


@pytest.mark.parametrize(("value", "text"), [(None, "–"), (3.2, "3 ns"), (4.2e6, "4.2 ms"), (25_000, "25 µs"), (2e9, "2 s")])
def test_durations(value: float | None, text: str) -> None:
    assert wording.nanoseconds(value) == text
