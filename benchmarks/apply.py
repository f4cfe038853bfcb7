"""Layouts written into source: ``python benchmarks/apply.py examples [NAME ...]``, ``... field NAME ...`` or ``... table``.

``examples``: each is built at -O2, traced (``--budget 20``) and given to ``layout-advise apply``; what a row says is the
layout, the predicted gain of the region with every doubt in it, the achieved one, and whether that lies in the interval.
``field``: programs that others wrote, as ``make field`` has fetched and built them. Each type that their own sources define
is rewritten as a structure of arrays (no gain is predicted for that: it shows what can be rewritten at all); where nothing
stands in the way, the copy is built and run, and output and exit status are compared with the original's. Every refused
type is told by file and line of its first place. Rows go to ``results/apply/``.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from layout_advise.apply import trees
from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.rewrite import rewrite
from layout_advise.apply.rewrite.syntax import Syntax, TranslationUnit
from layout_advise.apply.rewrite.target import fields_of, target
from layout_advise.apply.sources import from_command
from layout_advise.errors import LayoutAdviseError

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "apply"
FIELD = ROOT / "benchmarks" / "field"
FETCHED = Path.home() / ".cache" / "layout-advise" / "field"
SIZES = {"particles": "300000 60", "graph": "200000 40", "drift": "200000 60", "scan": "400000 60", "sph": "30000 30",
         "entities": "200000 60"}  # fmt: skip
"""The examples whose advised layout could be written when this was made; sizes beyond the second cache."""
RATIO = r"([\d.]+) \(([\d.]+)–([\d.]+)\)"
RECORDS = ("STRUCT_DECL", "CLASS_DECL")


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


def records(units: Sequence[TranslationUnit], root: Path) -> dict[str, Syntax]:
    """The records with names that files of the tree define, by USR."""
    found: dict[str, Syntax] = {}
    for node in (node for unit in units for top in unit.declarations for node in top.walk()):
        if node.kind in RECORDS and node.defines and node.declares and root in node.file.parents:
            found.setdefault(node.declares, node)
    return found


def field(name: str) -> dict[str, Any]:
    """The row of one program that others wrote: what becomes of each of its types."""
    row = next(one for one in tomllib.loads((FIELD / "field.toml").read_text())["program"] if one["name"] == name)
    with tempfile.TemporaryDirectory(prefix="apply-") as work:
        tree = _prepared(row, Path(work).resolve())
        old = trees.copied(tree, Path(work).resolve() / "old")
        trees.built(_logged(old, Path(work)))
        arguments = shlex.split(row["run"].replace("$LIST", str(FIELD)))[1:]
        before, again = trees.run(old, arguments), trees.run(old, arguments)
        if differs := trees.difference(before, again):
            return {"program": name, "types": {}, "refused": f"its output differs from run to run: {differs}"}
        commands = [json.loads(line) for line in (Path(work) / "commands").read_text().splitlines()]
        sources = {one.path: one for words in commands for one in from_command(words[1:], Path(words[0]))}
        units = [parse(one.path, one.flags, one.folder) for one in sources.values() if old.root in one.path.parents]
        types = dict(_types(units, old, before, arguments))
    return {"program": name, "types": types}


def _logged(tree: trees.SourceTree, work: Path) -> trees.SourceTree:
    """The tree with a build that notes each of the compiler's commands, with its folder, in ``commands``."""
    (work / "bin").mkdir()
    for name in ("gcc", "g++"):
        wrapper = work / "bin" / name
        line = "json.dumps([os.getcwd(), *sys.argv[1:]]) + chr(10)"
        noting = f"import json, os, sys; open({str(work / 'commands')!r}, 'a').write({line})"
        wrapper.write_text(
            f'#!/bin/sh\n{sys.executable} -c {shlex.quote(noting)} {name} "$@"\nexec {shutil.which(name)} "$@"\n'
        )
        wrapper.chmod(0o755)
    return replace(tree, build=f"export PATH={work / 'bin'}:$PATH; {tree.build}")


def _prepared(row: Mapping[str, Any], work: Path) -> trees.SourceTree:
    """A copy of the program's sources and input, with its command."""
    flags_name, flags = next(iter(row["flags"].items()))
    root = work / "tree"
    shutil.copytree(FETCHED / row["name"] / f"build-{flags_name}", root, symlinks=True)
    shutil.copytree(FETCHED / row["name"] / "input", root, symlinks=True, dirs_exist_ok=True)
    given = {"LIST": FIELD, "FLAGS": flags, "VERSION": row["version"], "VARIANT": flags_name, "JOBS": "1"}
    exports = "; ".join(f"export {key}={shlex.quote(str(value))}" for key, value in given.items())
    program = shlex.split(row["run"])[0].removeprefix("$BUILD/")
    return trees.SourceTree(root, Path(program), Path("."), f"{exports}; {row['build']}")


def _types(
    units: Sequence[TranslationUnit], old: trees.SourceTree, before: trees.ProgramRun, arguments: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    texts = "\n".join(text for unit in units for text in unit.texts.values())
    for node in records(units, old.root).values():
        name = node.name or node.shape.text
        try:
            layout = target(node, [[one.name] for one in fields_of(node)], texts)
            done = rewrite(units, node, layout)
        except LayoutAdviseError as error:
            yield name, {"refused": error.line()}
            continue
        if done.refusals:
            first = done.refusals[0]
            at = first.file.relative_to(old.root) if old.root in first.file.parents else first.file
            yield name, {"refused": f"{at}:{first.line}: {first.why}", "places": len(done.refusals)}
        elif not done.texts or not layout.splits:
            yield name, {"unused": True}
        else:
            yield name, _ran(done.texts, old, before, arguments)
        print(f"  {name}", file=sys.stderr, flush=True)


def _ran(
    texts: Mapping[Path, str], old: trees.SourceTree, before: trees.ProgramRun, arguments: Sequence[str]
) -> dict[str, Any]:
    """What becomes of a copy with the new texts."""
    with tempfile.TemporaryDirectory(prefix="apply-") as work:
        new = trees.copied(old, Path(work).resolve() / "new")
        for path, text in texts.items():
            (new.root / path.relative_to(old.root)).write_bytes(text.encode("latin-1"))
        try:
            trees.built(new)
            differs = trees.difference(before, trees.run(new, arguments))
        except LayoutAdviseError as error:
            return {"failed": error.line()[:300], "files": len(texts)}
    return {"differs": differs, "files": len(texts)} if differs else {"same": True, "files": len(texts)}


def table() -> str:
    """All rows as Markdown, examples first."""
    rows = [json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))]
    lines = ["| example | predicted | achieved | inside | same output |", "|---|---|---|---|---|"]
    timed = [row for row in rows if "types" not in row]
    for row in timed:
        cells = ["{:.2f} ({:.2f}–{:.2f})".format(*row[key]) if key in row else "–" for key in ("predicted", "achieved")]
        inside = {True: "yes", False: "no", None: row.get("refused", "–")}[row.get("inside")]
        lines.append(f"| {row['program']} | {' | '.join(cells)} | {inside} | {'yes' if row['same'] else 'no'} |")
    with_gain = [row for row in timed if "inside" in row]
    inside_of = sum(row["inside"] for row in with_gain)
    least = min((row["achieved"][0] for row in with_gain), default=0.0)
    lines += [f"\n{inside_of} of {len(with_gain)} within the predicted interval, least achieved {least:.2f}\n"]
    lines += ["| program | types | written, same output | refused | failed or differs | not used apart |", "|---" * 6 + "|"]
    for row in (row for row in rows if "types" in row):
        kinds = list(row["types"].values())
        same, refused, unused = (sum(key in one for one in kinds) for key in ("same", "refused", "unused"))
        names = ", ".join(sorted(f"`{name}`" for name, one in row["types"].items() if "same" in one))
        failed = len(kinds) - same - refused - unused
        said = f"{same} ({names})" if names else str(same)
        lines.append(f"| {row['program']} | {len(kinds)} | {said} | {refused} | {failed} | {unused} |")
    return "\n".join(lines)


def main() -> int:
    """Measures what is named; prints the table of all results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("examples", "field", "table"))
    parser.add_argument("names", nargs="*", metavar="NAME", help="examples (default: all six), or programs of the field")
    given = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = given.names or (list(SIZES) if given.what == "examples" else [])
    for name in names if given.what != "table" else ():
        print(name, file=sys.stderr, flush=True)
        row = example(name) if given.what == "examples" else field(name)
        (RESULTS / f"{given.what}-{name}.json").write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n")
    print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
