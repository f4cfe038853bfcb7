"""Run directories that are not as they should be, in every form that a report is shown in: a page that says so, escaped, or
one line and the right exit code; never a traceback."""

from __future__ import annotations

import csv
import html.parser
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import layout_advise as la
from layout_advise.cli import main
from layout_advise.errors import LayoutAdviseError
from layout_advise.reports.model.contract import SCHEMA, Report, encode
from tests.support import slower
from tests.support.sample_report import report

MARKUP = "</script></code></title><script>alert(1)</script><img src=x onerror=alert(2)>\"'><b>"
STEERING = "a\x1b[2J\x07\x9b\u202e\r\x00"
SPELL = "=1+1|`x`](javascript:alert(3))\n::error::pwned\n@@ ${x} %s {0}"
RAW = set("\x1b\x07\x9b\u202e\x00")
FORMS = (
    "text",
    "html",
    "json",
    "md",
    "sarif",
    "csv",
    "parquet",
    "notes",
    "github",
    "figure",
    "quiet",
    "verbose",
    "notebook",
)


def everywhere(hostile: str) -> Report:
    """The sample with ``hostile`` at the end of every text that is no word of the contract."""
    words = {
        "id",
        "structures",
        "candidate",
        "about",
        "action",
        "evidence",
        "kind",
        "kinds",
        "families",
        "variant",
        "region",
    }
    words |= {"status", "schema", "drawing", "clock", "snapshot", "layout", "derivation", "created", "structure", "doubt"}

    def walked(value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: walked(inner, name) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [walked(inner, key) for inner in value]
        return value + hostile if isinstance(value, str) and key not in words else value

    return msgspec.convert(walked(msgspec.to_builtins(report()), ""), Report)


def changed(**changes: Any) -> bytes:
    return encode(msgspec.structs.replace(report(), **changes))


def region(**changes: Any) -> bytes:
    return changed(hotspots=(msgspec.structs.replace(report().hotspots[0], **changes),))


def written(change: Callable[[dict[str, Any]], object]) -> bytes:
    data = json.loads(encode(report()))
    change(data)
    return json.dumps(data).encode()


def sourceless() -> bytes:
    """The files that are named are gone, one has no name, and no line has a text."""
    lines = tuple(msgspec.structs.replace(line, text="", file="/gone/away.c") for line in report().hotspots[0].source)
    return region(file="/gone/away.c", line=None, source=lines)


SHOWN: dict[str, bytes] = {
    "no regions": changed(hotspots=(), profile=()),
    "no candidates": region(candidates=()),
    "no structures": region(structures=()),
    "nothing of a region": region(
        structures=(), candidates=(), source=(), not_lifted=(), file=None, line=None, identity=None, noise=None, trace=None
    ),
    "sources are gone": sourceless(),
    "no command": changed(command=()),
    "interrupted": changed(status="failed"),
    "markup": encode(everywhere(MARKUP)),
    "control characters": encode(everywhere(STEERING)),
    "other syntaxes": encode(everywhere(SPELL)),
    "very long": encode(everywhere("x" * 5000)),
    "not UTF-8 in the program": encode(everywhere("caf\ufffd")),
    "candidates of no structure": region(structures=(), source=()),
    "verdict of no candidate": written(lambda data: data["hotspots"][0]["verdict"].update(candidate="c77", about="c78")),
    "unknown fields": written(lambda data: data.update(later={"a": 1})),
}
"""What has to be shown, by what is wrong with it."""
REFUSED: dict[str, bytes | None] = {
    "no report": None,
    "empty": b"",
    "cut": encode(report())[:700],
    "newer": written(lambda data: data.update(schema="layout-advise.report/99")),
    "older": written(lambda data: data.pop("schema")),
    "foreign": b'{"name": "package", "version": "1.0.0"}',
    "a list": b"[1, 2, 3]",
    "not UTF-8": encode(report()).replace(b"particles", b"part\xff\xfecles"),
    "lone surrogates": encode(report()).replace(b"particles", b"part\\udcffcles"),
    "a number for a text": written(lambda data: data["hotspots"][0].update(symbol=7)),
    "an unknown word": written(lambda data: data["hotspots"][0]["verdict"].update(action="maybe")),
    "nested": b"[" * 100_000,
}
"""What is refused in one line."""


def folder(tmp_path: Path, data: bytes | None) -> Path:
    run = tmp_path / "app.layout"
    run.mkdir()
    if data is not None:
        (run / "report.json").write_bytes(data)
    return run


def words(form: str, run: Path) -> list[str]:
    """The command for a form; ``out`` beside the run is the file where there is one."""
    out = str(run.parent / "out")
    if form == "figure":
        return ["report", str(run), "-q", "--figure", f"{out}.svg"]
    if form in ("quiet", "verbose"):
        return ["report", str(run), f"-{form[0]}"]
    return ["report", str(run), "--format", form, "-o", out]


class Page(html.parser.HTMLParser):
    """The scripts and the attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def held(form: str, text: str) -> None:
    """What each form promises, whatever is in it."""
    assert not set(text) & RAW
    if form == "html":
        page = Page(text)
        assert page.tags.count("script") == 1
        assert "img" not in page.tags
        assert not any(name.startswith("on") or (value or "").startswith("javascript:") for name, value in page.attributes)
        assert "</html>" in text
    elif form in ("json", "sarif"):
        json.loads(text)
    elif form == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert len({len(row) for row in rows}) == 1
        assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)
    elif form == "md":
        assert "<script" not in re.sub(r"^(`{3,}).*?^\1|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    elif form == "github":
        assert all(line.startswith(("::warning ", "::notice ")) for line in text.splitlines())
    elif form == "notes":
        assert not any(line.startswith("::") for line in text.splitlines())


def in_notebook(run: Path) -> str:
    """All that a notebook shows of a run."""
    opened: Any = la.open(run)
    tables = (opened.regions, opened.structures, opened.candidates, opened.plan)
    texts = [repr(opened), str(opened), *map(repr, tables), *(table.to_frame().to_string() for table in tables)]
    assert all(texts)
    layouts = [opened.layout(one.id) for one in opened.candidates]
    assert all(map(repr, layouts))
    return "\n".join(shown._repr_html_() for shown in (opened, *tables, *layouts))


@pytest.mark.parametrize("wrong", list(SHOWN))
@pytest.mark.parametrize(
    ("form", "options"),
    [
        *((form, ()) for form in FORMS),
        ("text", ("--no-source",)),
        *slower(("html", ("--no-source",))),
        ("json", ("--no-source",)),
    ],
)
def test_what_can_be_read_is_shown(
    wrong: str, form: str, options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = folder(tmp_path, SHOWN[wrong])
    if form == "notebook":
        shown = in_notebook(run)
        assert "<script>alert" not in shown
        return
    code = main([*words(form, run), *options])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    out = tmp_path / ("out.svg" if form == "figure" else "out")
    if code:  # no figure of nothing
        assert (code, form, said.err.count("\n")) == (1, "figure", 1)
        assert said.err.startswith("layout-advise: there is no figure to draw")
        return
    assert said.err == ""
    if form == "parquet":
        assert out.read_bytes()[:4] == b"PAR1"
        return
    text = out.read_text() if out.exists() else said.out
    assert form in ("csv", "notes", "github", "quiet") or text.strip()
    if form != "figure":
        held(form, text)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", list(REFUSED))
def test_what_cannot_be_read_is_one_line(wrong: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = folder(tmp_path, REFUSED[wrong])
    if form == "notebook":
        with pytest.raises(LayoutAdviseError) as raised:
            la.open(run)
        assert "\n" not in raised.value.line()
        return
    code = main(words(form, run))
    said = capsys.readouterr()
    assert (code, said.out) == (1, "")
    assert re.fullmatch(r"layout-advise: (no report in|cannot read) [^\n]+\n", said.err)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("wrong", [*SHOWN, *REFUSED])
@pytest.mark.parametrize("command", ["show", "apply", "emit --as c", "views --from", "guard", "compare"])
def test_the_other_commands_that_read_a_run(
    wrong: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {**SHOWN, **REFUSED}[wrong]
    run = folder(tmp_path, data)
    name, *options = command.split()
    more = {"apply": ["-o", str(tmp_path / "p")], "guard": ["-o", str(tmp_path / "g")], "compare": [str(run)]}
    if name == "views":
        (tmp_path / "a.cpp").write_text("int main() { return 0; }\n")
        typed = [name, *options, str(run), str(tmp_path / "a.cpp"), "-o", str(tmp_path / "b.cpp")]
    else:
        typed = [name, str(run), *options, *more.get(name, [])]
    code = main(typed)
    said = capsys.readouterr()
    assert code in (0, 1, 2, 3, 4)
    assert "Traceback" not in said.err
    assert not set(said.out + said.err) & RAW
    if code in (1, 2, 4) and name != "compare":  # whose 4 is an answer: nothing in common
        assert said.err.splitlines()[-1].startswith("layout-advise: ")


def test_a_name_of_a_folder_that_is_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Path(bytes(tmp_path).decode() + "/a\udcffpp.layout")
    run.mkdir()
    assert main(["report", str(run)]) == 1
    assert capsys.readouterr().err.startswith("layout-advise: no report in ")
    (run / "report.json").write_bytes(encode(report()))
    for form in FORMS[:9]:
        capsys.readouterr()
        out = tmp_path / form
        assert main(["report", str(run), "--format", form, "-o", str(out)]) == 0
    assert main(["report", str(run)]) == 0
    assert "app.layout" not in capsys.readouterr().err
    assert len(repr(la.open(run))) > 10


def test_the_schema_is_the_one_that_is_read() -> None:
    assert json.loads(encode(report()))["schema"] == SCHEMA
