"""A run directory that somebody else made is data: nothing in it is executed, loaded or fetched."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from layout_advise.cli import main
from layout_advise.notebook.session import AdviceRun, open_run
from layout_advise.reports.model.contract import read_report
from layout_advise.reports.pages import html
from layout_advise.reports.pages.drawings import drawing
from tests.support.fuzzing import trees
from tests.support.fuzzing.samples import Samples, samples

SCRIPT = "</script><script>window.planted=1</script><img src=x onerror=planted()><!--\"'><svg onload=planted()>"
EVENTS = ("onload", "onerror", "onclick", "onmouseover", "onfocus", "onbegin")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    return samples(tmp_path_factory.mktemp("samples"))


class Elements(HTMLParser):
    """What a browser would make of a page: its elements with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def poisoned(report: dict[str, Any], text: str, exempt: frozenset[str]) -> dict[str, Any]:
    """The report with ``text`` in all its strings that may hold any."""
    changed: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(report))
    for node, key in trees.places(changed):
        if isinstance(node[key], str) and key not in exempt:
            node[key] = f"{node[key]}{text}"
    return changed


@pytest.fixture(scope="module")
def planted(known: Samples, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded run with a script in every text that its model leaves free."""
    run = tmp_path_factory.mktemp("planted")
    words: set[str] = {"schema"}
    while True:  # words of a fixed choice are found by what the model refuses
        (run / "report.json").write_bytes(json.dumps(poisoned(known.report, SCRIPT, frozenset(words))).encode())
        try:
            read_report(run)
            return run
        except Exception as error:
            name = str(error).split("at `$")[1].split("`")[0].split(".")[-1].split("[")[0]
            assert name not in words
            words.add(name)


def check_page(page: str, plain: str) -> None:
    """No element or attribute that runs something beyond those of the plain page, and nothing of another host."""
    found, scripts = Elements(page).found, sum(tag == "script" for tag, _ in Elements(plain).found)
    assert sum(tag == "script" for tag, _ in found) == scripts
    for tag, attributes in found:
        assert tag not in ("img", "iframe", "object", "embed", "base", "link", "foreignobject", "animate", "set", "image")
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert not any("javascript:" in (value or "").lower() for value in attributes.values())


def test_no_text_of_a_report_becomes_a_part_of_its_page(planted: Path, known: Samples) -> None:
    check_page(html.render(read_report(planted)), html.render(read_report(known.run)))


def shown(run: AdviceRun) -> list[str]:
    """What a notebook shows of a run."""
    tables = [run.regions._repr_html_(), run.structures._repr_html_(), run.candidates._repr_html_()]
    return [*tables, *(run.layout(one.id)._repr_html_() for one in run.candidates)]


def test_no_text_of_a_report_becomes_a_part_of_a_notebook(planted: Path, known: Samples) -> None:
    theirs, ours = open_run(planted), open_run(known.run)
    for mine, other in zip(shown(theirs), shown(ours), strict=True):
        check_page(mine, other)
    (frame,) = Elements(theirs._repr_html_()).found
    assert frame[0] == "iframe"
    assert "allow-same-origin" not in (frame[1]["sandbox"] or "")


@pytest.mark.parametrize(
    "svg",
    [
        "<svg onload='planted()'></svg>",
        "<svg><script>planted()</script></svg>",
        "<svg xmlns='http://www.w3.org/2000/svg'><image href='http://other.host/x'/></svg>",
        "<svg><a href='javascript:planted()'><text>x</text></a></svg>",
        "<svg><rect style='background:url(http://other.host)'/></svg>",
        "<svg><rect fill='url(http://other.host)'/></svg>",
        "<svg><foreignObject><p>x</p></foreignObject></svg>",
        "<svg><title><![CDATA[</title><script>planted()</script>]]></title></svg>",
        "<svg></svg><script>planted()</script>",
        "<!DOCTYPE svg [<!ENTITY a 'aaaa'>]><svg>&a;</svg>",
        "<svg><g>" + "<g>" * 5000,
        "<svg><set attributeName='onmouseover' to='planted()'/></svg>",
    ],
)
def test_what_is_no_plain_drawing_is_left_out(svg: str) -> None:
    assert drawing(svg) == ""


def test_the_drawings_of_a_real_run_are_kept(known: Samples) -> None:
    drawings = [node[key] for node, key in trees.places(known.report) if key == "drawing" and node[key]]
    assert len(drawings) > 10
    for one in drawings:
        kept = drawing(one)
        assert kept.count("<rect") == one.count("<rect") > 0
        assert kept.count("<text") == one.count("<text")
        assert kept.count("<path") == one.count("<path")


class Planted:
    """Creates a file where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_nothing_of_a_foreign_run_is_executed_or_loaded(known: Samples, tmp_path: Path) -> None:
    """A run with libraries, sources, scripts and pickles in it that would leave a mark; and links out of it."""
    run, mark = tmp_path / "run", tmp_path / "mark"
    (tmp_path / "copied").mkdir()
    subprocess.run(["cp", "-r", known.run, run], check=True)
    region = run / "regions" / known.region.name
    (region / "mockups").mkdir(exist_ok=True)
    source = f'#include <sys/stat.h>\n__attribute__((constructor)) static void made(void) {{ mkdir("{mark}", 0777); }}\n'
    (region / "mockups" / "c1.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", region / "mockups" / "c1.so", region / "mockups" / "c1.c"], check=True)
    for folder in (run, region, region / "mockups"):
        for name in ("sitecustomize.py", "conftest.py", "numpy.py", "layout_advise.py"):
            (folder / name).write_text(f"import os\nos.mkdir({str(mark)!r})\n")
        for name in ("timings.json", "trace.pickle", "report.pkl", "stages.json"):
            (folder / name).write_bytes(pickle.dumps(Planted(mark)))
    (run / "program.log").symlink_to("/etc/shadow")
    report = msgspec.json.decode((run / "report.json").read_bytes())
    report["hotspots"][0]["candidates"][0]["mockup"] = "../../../../../../etc/passwd"
    report["command"] = [str(region / "mockups" / "c1.so"), "x"]
    (run / "report.json").write_bytes(msgspec.json.encode(report))
    before = sorted((path, path.stat().st_mtime_ns) for path in run.rglob("*") if not path.is_symlink())
    for words in (
        ("report", "run"),
        ("report", "run", "--format", "html"),
        ("report", "run", "--format", "sarif"),
        ("show", "run", "-v"),
        ("emit", "run", "--as", "c"),
        ("compare", "run", str(known.run)),
    ):
        command = [sys.executable, "-P", "-m", "layout_advise", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode in (0, 1, 3), done.stderr
        assert "Traceback" not in done.stderr
        assert "root:" not in done.stdout
        assert not mark.exists(), words
    assert sorted((path, path.stat().st_mtime_ns) for path in run.rglob("*") if not path.is_symlink()) == before


def test_a_report_that_is_no_utf8_is_refused_in_one_line(
    known: Samples, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").write_bytes((known.run / "report.json").read_bytes().replace(b"particle", b"\xff\xferticle"))
    assert main(["report", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
