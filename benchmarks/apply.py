"""Layouts written into source: ``python benchmarks/apply.py examples [NAME ...]``, ``... field NAME ...`` or ``... table``.

``examples``: each is built at -O2, traced (``--budget 20``) and given to ``layout-advise apply``; what a row says is the
layout, the predicted gain of the region with every doubt in it, the achieved one, and whether that lies in the interval.
``field``: programs that others wrote, as ``make field`` has fetched and built them. Each type that their own sources define
is rewritten as a structure of arrays (no gain is predicted for that: it shows what can be rewritten at all), built, run and
held against the original (``field/applied.py`` says how). Every refused type is told by file and line of its first place.
``predicted``: of programs that ``make field`` has traced, the layouts that were measured and can be written, at most
``--most`` of each: predicted and achieved gains (``field/predicted.py`` says how).
``--only TYPE`` does one type anew and keeps the others' rows. Rows go to ``results/apply/``.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent / "field"))
sys.path.append(str(Path(__file__).resolve().parent / "campaigns"))
from applied import field
from predicted import predicted
from which_commit import which_commit

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "apply"
SIZES = {"particles": "300000 60", "graph": "200000 40", "drift": "200000 60", "scan": "400000 60", "sph": "30000 30",
         "entities": "200000 60"}  # fmt: skip
"""The examples whose advised layout could be written when this was made; sizes beyond the second cache."""
RATIO = r"([\d.]+) \(([\d.]+)–([\d.]+)\)"


def example(name: str) -> dict[str, Any]:
    """The row of one example: traced, rewritten, built, run and timed."""
    with tempfile.TemporaryDirectory(prefix="apply-") as work:
        tree, run = Path(work) / "tree", Path(work) / "run.layout"
        shutil.copytree(ROOT / "examples" / name, tree / name, ignore=shutil.ignore_patterns("bin"))
        shutil.copy(ROOT / "examples" / "common.h", tree)
        here, build = tree / name, f"gcc -O2 -g -Wall -Wextra -o {name} {name}.c -lm"
        subprocess.run(build, shell=True, cwd=here, check=True)
        tool = [sys.executable, "-m", "layout_advise"]
        traced = ["trace", "-q", "--regions", "1", "--budget", "20", "-o", str(run), "--", f"./{name}", *SIZES[name].split()]
        subprocess.run([*tool, *traced], cwd=here, check=True, capture_output=True)
        applied = ["apply", str(run), "--sources", str(tree), "-o", str(Path(work) / "p.patch"), "--build", build]
        done = subprocess.run([*tool, *applied], cwd=here, capture_output=True, text=True, check=False)
    row: dict[str, Any] = {"program": name, "text": done.stdout.splitlines(), "same": "original's" in done.stdout}
    if done.returncode:
        row["refused"] = done.stderr.strip().splitlines()[-1]
    if found := re.search(rf": predicted {RATIO}, achieved {RATIO}", done.stdout):
        numbers = [float(one) for one in found.groups()]
        row |= {"predicted": numbers[:3], "achieved": numbers[3:], "inside": numbers[1] <= numbers[3] <= numbers[2]}
    return row


def table() -> str:
    """All rows as Markdown, examples first."""
    rows = [json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))]
    lines = ["| example | predicted | achieved | inside | same output |", "|---|---|---|---|---|"]
    timed = [row for row in rows if "types" not in row and "layouts" not in row]
    for row in timed:
        cells = ["{:.2f} ({:.2f}–{:.2f})".format(*row[key]) if key in row else "–" for key in ("predicted", "achieved")]
        inside = {True: "yes", False: "no", None: row.get("refused", "–")}[row.get("inside")]
        lines.append(f"| {row['program']} | {' | '.join(cells)} | {inside} | {'yes' if row['same'] else 'no'} |")
    with_gain = [row for row in timed if "inside" in row]
    inside_of = sum(row["inside"] for row in with_gain)
    least = min((row["achieved"][0] for row in with_gain), default=0.0)
    lines += [f"\n{inside_of} of {len(with_gain)} within the predicted interval, least achieved {least:.2f}\n"]
    lines += ["| program | layout | predicted | achieved | inside | the program's gain |", "|---" * 6 + "|"]
    public = [(row["program"], one) for row in rows for one in row.get("layouts", ())]
    for name, one in public:
        cells = ["{:.2f} ({:.2f}–{:.2f})".format(*one[k]) if k in one else "–" for k in ("predicted", "achieved", "program")]
        inside = {True: "yes", False: "**no**", None: one.get("refused", "–")}[one.get("inside")]
        lines.append(f"| {name} | {'; '.join(one['layout'])} | {cells[0]} | {cells[1]} | {inside} | {cells[2]} |")
    compared = [one for _, one in public if "inside" in one]
    lines.append(f"\n{sum(one['inside'] for one in compared)} of {len(compared)} within the predicted interval\n")
    lines += ["| program | types | written, same output | refused | failed or differs | not used apart |", "|---" * 6 + "|"]
    for row in (row for row in rows if "types" in row):
        kinds = list(row["types"].values())
        same, refused, unused = (sum(key in one for one in kinds) for key in ("same", "refused", "unused"))
        names = ", ".join(sorted(f"`{name}`" for name, one in row["types"].items() if "same" in one))
        failed = len(kinds) - same - refused - unused
        said = f"{same} ({names})" if names else str(same)
        lines.append(f"| {row['program']} | {len(kinds)} | {said} | {refused} | {failed} | {unused} |")
    return "\n".join(lines)


def _row(what: str, name: str, given: argparse.Namespace) -> dict[str, Any]:
    if what == "examples":
        return example(name)
    return predicted(name, given.most) if what == "predicted" else field(name, given.only)


def main() -> int:
    """Measures what is named; prints the table of all results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("examples", "field", "predicted", "table"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="examples (default: all six), or programs of the field")
    parser.add_argument("--most", type=int, default=3, metavar="N", help="layouts of each program (predicted)")
    parser.add_argument("--only", action="append", default=[], metavar="TYPE", help="of a program of the field this type")
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = given.names or (list(SIZES) if given.what == "examples" else [])
    for name in names if given.what != "table" else ():
        print(name, file=sys.stderr, flush=True)
        file = RESULTS / f"{given.what}-{name}.json"
        row = _row(given.what, name, given)
        if given.only and file.exists():
            row["types"] = json.loads(file.read_text())["types"] | row["types"]
        row["commit"] = which_commit()
        file.write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n")
    print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
