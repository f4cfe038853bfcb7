"""What large reports cost: ``python benchmarks/reports.py``.

A recorded run (``examples/recorded/demo.zip``) is made larger: more regions, layouts and structures, each a copy under
another name. Rendering is timed in a process of its own; the page is opened in a headless chromium, which tells when its
scripts have run (``interactive``), and how long sorting and filtering the largest table take until it is laid out anew.
The fastest of ``--repeat`` runs counts, since a shared machine only adds.
"""

from __future__ import annotations

import argparse
import html as markup
import json
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import msgspec

from layout_advise.reports.model.contract import Report, decode
from layout_advise.reports.pages import html, terminal

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "reports.json"
RECORDED = ROOT / "examples" / "recorded" / "demo.zip"
SIZES = ((50, 20, 3), (1, 2000, 200))
"""Regions, layouts of each, structures of each."""
MEASURE = """
const interactive = performance.now();
const spent = (work) => {
  const start = performance.now();
  work();
  document.body.offsetHeight;
  return performance.now() - start;
};
const opened = spent(() => { for (const part of document.querySelectorAll("details")) part.open = true; });
const tables = [...document.querySelectorAll("table.sortable")].sort((a, b) => b.rows.length - a.rows.length);
const table = tables[0], rows = table.tBodies[0].rows.length;
const sorted = spent(() => [...table.querySelectorAll("th button")].find((b) => b.textContent === "speedup").click());
const input = table.closest("details").querySelector(".filter input");
const filtered = spent(() => { input.value = "verified"; input.dispatchEvent(new Event("input")); });
const put = document.createElement("pre");
put.id = "found";
put.textContent = JSON.stringify({ interactive, opened, sorted, filtered, rows });
document.body.append(put);
"""


def grown(report: Report, regions: int, layouts: int, structures: int) -> Report:
    """The report with so many regions, each with so many layouts and structures, copies of its own."""
    (first, *_) = report.hotspots
    own = [c for c in first.candidates if c.id != first.verdict.candidate]
    winner = [c for c in first.candidates if c.id == first.verdict.candidate]
    more = [msgspec.structs.replace(own[k % len(own)], id=f"c{k + 1000}") for k in range(layouts - len(winner))]
    kept = [msgspec.structs.replace(first.structures[k % len(first.structures)], id=f"s{k}") for k in range(structures)]
    found = [
        msgspec.structs.replace(
            first,
            symbol=f"{first.symbol}_{k}",
            name=f"{first.symbol}_{k}",
            candidates=(*winner, *more),
            structures=tuple(kept),
        )
        for k in range(regions)
    ]
    return msgspec.structs.replace(report, hotspots=tuple(found), plan=None, over_regions=())


def recorded() -> Report:
    """The report of the recorded run."""
    with zipfile.ZipFile(RECORDED) as packed:
        return decode(packed.read("report.json"))


def opened(page: Path, folder: Path) -> dict[str, float]:
    """What the browser tells of a page, in ms."""
    text = page.read_text().replace("</body>", f"<script>{MEASURE}</script></body>")
    shown = folder / "measured.html"
    shown.write_text(text)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--window-size=1280,800", "--dump-dom", shown.as_uri()]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'<pre id="found">(.*?)</pre>', told)
    if found is None:
        raise SystemExit("chromium shows no figures")
    values: dict[str, float] = json.loads(markup.unescape(found[1]))
    return values


def rendered(regions: int, layouts: int, structures: int, page: Path) -> dict[str, float]:
    """Seconds of making the page and the terminal's text, of a process that has just been started."""
    command = [sys.executable, __file__, "--one", str(regions), str(layouts), str(structures), str(page)]
    values: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return values


def one(regions: int, layouts: int, structures: int, page: Path) -> dict[str, float]:
    """The same in this process; imports are done."""
    report = grown(recorded(), regions, layouts, structures)
    start = time.perf_counter()
    page.write_text(html.render(report))
    made = time.perf_counter()
    text = terminal.render(report)
    return {
        "html_s": made - start,
        "text_s": time.perf_counter() - made,
        "bytes": page.stat().st_size,
        "lines": text.count("\n"),
    }


def best(runs: list[dict[str, float]]) -> dict[str, float]:
    """The least of each figure."""
    return {name: min(run[name] for run in runs) for name in runs[0]}


def row(regions: int, layouts: int, structures: int, repeat: int, folder: Path) -> dict[str, Any]:
    """All figures of a report of one size."""
    page = folder / "page.html"
    made = best([rendered(regions, layouts, structures, page) for _ in range(repeat)])
    seen = best([opened(page, folder) for _ in range(repeat)])
    return {"regions": regions, "layouts": layouts, "structures": structures, **made, **seen}


def main() -> None:
    """Prints the table and writes the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--one", nargs=4, metavar="N", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.one:
        regions, layouts, structures, page = chosen.one
        print(json.dumps(one(int(regions), int(layouts), int(structures), Path(page))))
        return
    with tempfile.TemporaryDirectory(prefix="layout-advise-reports-") as folder:
        rows = [row(*size, chosen.repeat, Path(folder)) for size in SIZES]
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    print("| regions × layouts, structures | made | as text | page | interactive | all opened | sorted | filtered |")
    print("|---|---|---|---|---|---|---|---|")
    for r in rows:
        size = f"{r['regions']} × {r['layouts']:,}, {r['structures']}"
        times = [f"{r[name]:.0f} ms" for name in ("interactive", "opened", "sorted", "filtered")]
        made = f"{r['html_s']:.2f} s | {r['text_s']:.2f} s, {r['lines']:.0f} lines | {r['bytes'] / 1e6:.2f} MB"
        print(f"| {size} | {made} | {' | '.join(times)} |")


if __name__ == "__main__":
    main()
