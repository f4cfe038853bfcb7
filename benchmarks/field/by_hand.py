"""Layouts of the field's programs that were changed by hand, held against what the tool says of them.

``python benchmarks/field/by_hand.py [NAME ...]`` builds the program as it is and with the changes of ``by_hand.toml``, as
``make field`` has fetched it, runs both on its input (output and exit status have to be the same), and times the calls of
the region and the whole programs in turn. ``--trace`` first has the tool trace the region, on this machine, in the same
minutes. ``--build`` only builds, and compares the output; ``--retell`` looks the layouts up anew in the reports of earlier
traces; ``--table`` prints the rows that are there, which are in ``benchmarks/results/by_hand/``.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from applied import FIELD, prepared

from layout_advise.apply import trees
from layout_advise.apply.timed import exactly, timed
from layout_advise.errors import LayoutAdviseError
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.reports.model import contract
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.hotspot import HotspotReport

ROOT = FIELD.parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "by_hand"
TRACES = FIELD / ".results" / "by_hand"
"""The tool's run directories."""
ROUNDS = 15
"""Processes of each program that are timed, in turn."""


def changes() -> list[dict[str, Any]]:
    """The changes of ``by_hand.toml``."""
    found: list[dict[str, Any]] = tomllib.loads((FIELD / "by_hand.toml").read_text())["change"]
    return found


def programs() -> dict[str, dict[str, Any]]:
    """The programs of the field by name."""
    return {row["name"]: row for row in tomllib.loads((FIELD / "field.toml").read_text())["program"]}


def edited(text: str, edit: Mapping[str, str]) -> str:
    """The text after one edit."""
    found = re.search(edit.get("within", r"\A.*\Z"), text, re.DOTALL)
    if found is None:
        return text
    return text[: found.start()] + re.sub(edit["find"], edit["put"], found[0], flags=re.DOTALL) + text[found.end() :]


def changed(tree: trees.SourceTree, edits: Sequence[Mapping[str, str]], to: Path) -> trees.SourceTree:
    """A copy of the tree with the edits, built. Raises ValueError where one of them changes nothing."""
    new = trees.copied(tree, to)
    for edit in edits:
        files = {file: file.read_text("latin-1") for file in sorted(new.root.rglob(edit["file"]))}
        after = {file: edited(text, edit) for file, text in files.items()}
        if after == files:
            raise ValueError(f"{edit['file']}: nothing is like {edit['find']!r}")
        for file, text in after.items():
            file.write_text(text, "latin-1")
    trees.built(new)
    return new


def is_meant(candidate: CandidateReport, change: Mapping[str, Any], hotspot: HotspotReport) -> bool:
    """Tells whether a candidate is the layout that was written by hand: of that type alone, made by these rules, and with
    so many arrays where ``arrays`` says so. Unused members may be in it or not."""
    types = {one.id: one.type or "" for one in hotspot.structures}
    own = [types.get(one, "") for one in candidate.structures]
    return (
        bool(own)
        and all(kind.startswith(change["type"]) for kind in own)
        and set(candidate.families) - {"compact"} == set(change["families"]) - {"compact"}
        and candidate.block == change.get("block")
        and len(candidate.arrays) == change.get("arrays", len(candidate.arrays))
    )


def told(report: contract.Report, change: Mapping[str, Any]) -> dict[str, Any]:
    """What the tool says of the layout in the region."""
    named = [(one, (one.name or "", one.symbol)) for one in report.hotspots]
    found = [one for one, names in named if any(name.startswith(change["region"]) for name in names)]
    if not found:
        return {"why": "the region was not studied"}
    hotspot = found[0]
    meant = [one for one in hotspot.candidates if is_meant(one, change, hotspot)]
    # most of what is written by hand promises the compiler nothing, and has its loops as they were
    alike = [one for one in meant if one.variant == change.get("promise", "plain") and one.predicted is not None]
    gains = [(one.id, one.predicted) for one in alike or meant if one.predicted is not None]
    if not gains:
        return {"why": next((one.reason for one in meant if one.reason), "not among the layouts measured")}
    name, gain = max(gains, key=lambda one: one[1].median)
    claim = {"id": name, "claimed": [gain.median, gain.lo, gain.hi]}
    return claim | {"action": hotspot.verdict.action, "share": hotspot.share}


def traced(tree: trees.SourceTree, arguments: Sequence[str], region: str, to: Path) -> contract.Report:
    """The tool's report of the region, made now."""
    command = [sys.executable, "-m", "layout_advise", "trace", "-q", "-f", "-o", str(to)]
    words = [*command, "--hotspot", region, "--", str(tree.root / tree.program), *arguments]
    subprocess.run(words, cwd=tree.root / tree.cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return contract.read_report(to)


def row_of(change: Mapping[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """What came of one change."""
    program = programs()[change["program"]]
    row: dict[str, Any] = {key: change[key] for key in ("program", "what", "region")}
    with tempfile.TemporaryDirectory(prefix="by-hand-") as work:
        here = Path(work).resolve()
        fetched = prepared(program, here)
        old = changed(fetched, change["both"], here / "old") if "both" in change else fetched
        trees.built(old)
        new = changed(old, change["edit"], here / "new")
        arguments = shlex.split(program["run"].replace("$LIST", str(old.root / "list")).replace("$INPUT", "."))[1:]
        before, after = trees.run(old, arguments), trees.run(new, arguments)
        row["differs"] = difference(before, after, change.get("compare", ""))
        if given.build or row["differs"]:
            return row
        if given.trace:
            row |= told(traced(old, arguments, change["region"], TRACES / change["program"]), change)
        done = timed(old, new, arguments, change["region"], exactly(given.rounds), here)
        row["program_gain"] = list(numbers(done.program))
        row["region_gain"] = list(numbers(done.region)) if done.region is not None else done.why
    return row


def retold(change: Mapping[str, Any]) -> dict[str, Any]:
    """The row that is there, with what the report that is there says of the layout."""
    row = json.loads((RESULTS / f"{change['program']}.json").read_text())
    row = {key: value for key, value in row.items() if key not in ("id", "claimed", "action", "why", "share")}
    return row | told(contract.read_report(TRACES / change["program"]), change)


def difference(one: trees.ProgramRun, other: trees.ProgramRun, told: str) -> str:
    """What differs between two runs; where programs print times, in what ``told`` finds in their output."""
    if not told:
        return trees.difference(one, other)
    kept = [re.findall(told, run.output.decode(errors="replace")) for run in (one, other)]
    outputs = [replace(run, output=repr(found).encode()) for run, found in zip((one, other), kept, strict=True)]
    return trees.difference(*outputs) if kept[0] else f"nothing in its output is like {told!r}"


def numbers(ratio: Ratio) -> tuple[float, float, float]:
    """A ratio and the ends of its interval."""
    return ratio.median, ratio.lo, ratio.hi


def shown(numbers: Sequence[float] | str | None) -> str:
    """A gain with its interval, or why there is none."""
    if numbers is None or isinstance(numbers, str):
        return numbers or "–"
    return f"{numbers[0]:.2f} ({numbers[1]:.2f}–{numbers[2]:.2f})"


def table() -> str:
    """All rows as Markdown."""
    rows = [json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))]
    lines = [
        "| program | changed by hand | region | its gain | told | inside | the program's gain |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        claim, gain = row.get("claimed"), row.get("region_gain")
        known = claim is not None and isinstance(gain, list)
        inside = ("yes" if claim[1] <= gain[0] <= claim[2] else "**no**") if known else "–"
        cells = (row["program"], row["what"], f"`{row['region']}`", row["differs"] or shown(gain))
        lines.append(f"| {' | '.join((*cells, shown(claim or row.get('why')), inside, shown(row.get('program_gain'))))} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; none: all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="processes of each program (default: %(default)s)")
    parser.add_argument("--trace", action="store_true", help="have the tool trace the region first")
    parser.add_argument("--retell", action="store_true", help="look the layouts up in the reports that are there")
    parser.add_argument("--build", action="store_true", help="build both, and compare their output")
    parser.add_argument("--table", action="store_true", help="print the rows that are there")
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    TRACES.mkdir(parents=True, exist_ok=True)
    for change in () if given.table else changes():
        if given.names and change["program"] not in given.names:
            continue
        try:
            row = retold(change) if given.retell else row_of(change, given)
        except (LayoutAdviseError, ValueError) as error:
            print(f"{change['program']}: {error}", file=sys.stderr)
            continue
        print(json.dumps(row), flush=True)
        if not given.build:
            (RESULTS / f"{change['program']}.json").write_text(json.dumps(row, indent=1) + "\n")
    print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
