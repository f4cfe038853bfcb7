"""The page in a browser: the first screen fits, nothing is cut off on a phone, dark and print, no serious fault by axe."""

from __future__ import annotations

import html as markup
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from layout_advise.reports.model.candidate import Interval
from layout_advise.reports.model.hotspot import Verdict
from layout_advise.reports.model.structure import ThreadUse
from layout_advise.reports.pages import html
from tests.support.sample_report import candidate, live, report

NEEDS_BROWSER = pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
NEEDS_NPM = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
NARROWEST = 500
"""Pixels of a window."""
OPEN = Interval(1.2, 0.9, 1.6)
VERDICTS = {
    "change": None,
    "keep": Verdict("keep", None, None, "no-gain", "Keep it: none gains.", interval=OPEN, about="c1"),
    "undecided": Verdict("undecided", None, None, "within-noise", "Undecided: so.", interval=OPEN, about="c1", doubt="form"),
}
CHANGE = "".join(f"{mark}    double field_{k}[1300000];\n" for k, mark in enumerate("- - + - + + - - - + + + + + + + + +"))


def page(action: str = "change") -> str:
    """The sample with a long change, another verdict, accesses of two threads, and a trial in the running program."""
    shown = report(VERDICTS[action])
    (hotspot,) = shown.hotspots
    fields = tuple(
        msgspec.structs.replace(f, threads=(ThreadUse(0, f.reads, 0), ThreadUse(1, 10, f.writes)))
        for f in hotspot.structures[0].fields
    )
    structure = msgspec.structs.replace(hotspot.structures[0], fields=fields)
    tried = tuple(msgspec.structs.replace(c, live=live()) if c.id == "c1" else c for c in hotspot.candidates)
    hotspot = msgspec.structs.replace(hotspot, structures=(structure,), candidates=tried)
    shown = msgspec.structs.replace(shown, hotspots=(hotspot,))
    made = candidate(1, Interval(3.61, 3.5, 3.7, 9), change=CHANGE)
    assert shown.hotspots[0].candidates[1].id == made.id
    text = html.render(shown)
    return text.replace(" struct particle {", CHANGE.splitlines()[0], 1)


def dumped(text: str, folder: Path, width: int, height: int, *options: str) -> str:
    """The page as the browser has it after its scripts ran."""
    file = folder / f"page-{width}.html"
    file.write_text(text)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}", "--hide-scrollbars", *options]
    command += ["--virtual-time-budget=20000", "--dump-dom", file.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout


def measured(text: str, script: str, folder: Path, width: int, height: int, *options: str) -> Any:
    """What a script of the page finds, as JSON; the page in a frame where it is narrower than a window can be."""
    put = "const e = top.document.createElement('pre'); e.id = 'found'; e.textContent = JSON.stringify(found);"
    run = f"(async () => {{ const found = await ({script})(); {put} top.document.body.append(e); }})()"
    text = text.replace("</body>", f"<script>{run}</script></body>")
    if width < NARROWEST:
        frame = f'<iframe style="border: 0" width="{width}" height="{height}" srcdoc="{markup.escape(text)}"></iframe>'
        text = f"<!doctype html><body>{frame}</body>"
    found = re.search(r'<pre id="found">(.*?)</pre>', dumped(text, folder, max(width, NARROWEST), height, *options))
    assert found is not None
    return json.loads(markup.unescape(found[1]))


@NEEDS_BROWSER
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (400, 1200)])
def test_the_first_screen_fits(width: int, height: int, tmp_path: Path) -> None:
    script = """() => [document.querySelector('.verdict').getBoundingClientRect().bottom,
                       document.documentElement.scrollWidth, innerWidth,
                       [...document.querySelectorAll('section > details')].filter((d) => d.open).length]"""
    bottom, scrolled, inner, opened = measured(page(), script, tmp_path, width, height)
    assert bottom <= height
    assert scrolled <= inner <= width
    assert opened == 0


@NEEDS_BROWSER
@pytest.mark.slow
def test_tables_sort_and_filter(tmp_path: Path) -> None:
    script = """() => {
        for (const d of document.querySelectorAll('details')) d.open = true;
        const table = document.querySelector('table.sortable'), body = table.tBodies[0];
        const names = () => [...body.rows].filter((r) => !r.hidden).map((r) => r.cells[0].textContent);
        const before = names();
        [...table.querySelectorAll('th button')].find((b) => b.textContent === 'speedup').click();
        const sorted = names();
        const input = document.querySelector('.filter input');
        input.value = 'rejected'; input.dispatchEvent(new Event('input'));
        return [before, sorted, names()];
    }"""
    assert measured(page(), script, tmp_path, 1280, 800) == [["", "c1", "c2"], ["c1", "", "c2"], ["c2"]]


@NEEDS_BROWSER
@NEEDS_NPM
@pytest.mark.slow
@pytest.mark.parametrize(("action", "width"), [*((action, 1280) for action in VERDICTS), ("change", 400)])
@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_axe_finds_no_serious_fault(action: str, width: int, scheme: int, tmp_path: Path) -> None:
    done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "axe-core"], cwd=tmp_path, check=False)
    axe = tmp_path / "node_modules" / "axe-core" / "axe.min.js"
    if done.returncode or not axe.exists():
        pytest.skip("npm cannot fetch axe-core here")
    text = page(action).replace("<details", "<details open").replace("</head>", f"<script>{axe.read_text()}</script></head>")
    script = "async () => (await axe.run()).violations.map((v) => [v.impact, v.id, v.nodes[0].html])"
    found = measured(text, script, tmp_path, width, 800, f"--blink-settings=preferredColorScheme={scheme}")
    assert [one for one in found if one[0] in ("serious", "critical", "moderate")] == []


@NEEDS_BROWSER
@pytest.mark.slow
def test_it_prints_whole(tmp_path: Path) -> None:
    """What is folded on the screen is on paper."""
    file, paper = tmp_path / "page.html", tmp_path / "page.pdf"
    file.write_text(page())
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    subprocess.run([*command, f"--print-to-pdf={paper}", file.as_uri()], capture_output=True, timeout=100, check=True)
    folded = tmp_path / "folded.html"
    folded.write_text(page().replace("<details", "<section hidden").replace("</details>", "</section>"))
    short = tmp_path / "folded.pdf"
    subprocess.run([*command, f"--print-to-pdf={short}", folded.as_uri()], capture_output=True, timeout=100, check=True)
    assert paper.stat().st_size > 1.5 * short.stat().st_size
