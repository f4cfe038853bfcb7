"""Programs that others wrote, with each of their types as a structure of arrays: what is written, refused, or fails.

Each type that a program's own sources define is rewritten in a copy. Where nothing stands in the way, the copy is built as
the program is, and run on its input: output and exit status have to be the original's. The changed files must compile at
``-Wall -Wextra`` without more warnings of any kind than before, and a build with ``-fsanitize=address,undefined`` must
print the same and report no kind of error that the original does not report in that build.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from layout_advise.apply import trees
from layout_advise.apply.macros import rewritten
from layout_advise.apply.rewrite.fields import fields_of
from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.rewrite import Rewritten, rewrite
from layout_advise.apply.rewrite.syntax import Syntax, TranslationUnit
from layout_advise.apply.rewrite.target import Target, target
from layout_advise.apply.sources import SourceFile, from_command
from layout_advise.errors import LayoutAdviseError, SourceError

FIELD = Path(__file__).resolve().parent
FETCHED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "layout-advise" / "field"
RECORDS = ("STRUCT_DECL", "CLASS_DECL")
COMPILERS = ("gcc", "g++", "clang", "clang++")
SANITIZED = "-O1 -g -fsanitize=address,undefined"
RUNTIME_ERROR = re.compile(r"runtime error: (.*)|ERROR: AddressSanitizer: (\S+)")


@dataclass(frozen=True, slots=True)
class Original:
    """The program as it is: its tree, built; the tree with sanitizers, built; what both do."""

    tree: trees.SourceTree
    sanitized: trees.SourceTree
    arguments: tuple[str, ...]
    ran: trees.ProgramRun
    ran_sanitized: trees.ProgramRun
    errors: frozenset[str]
    units: dict[Path, tuple[SourceFile, tuple[str, ...]]]
    """By path the translation units, each with the compiler's command without its input and output."""


def field(name: str, only: Sequence[str] = ()) -> dict[str, Any]:
    """The row of one program: what becomes of each of its types (or of those ``only``)."""
    row = row_of(name)
    with tempfile.TemporaryDirectory(prefix="apply-") as work:
        here = Path(work).resolve()
        tree = prepared(row, here)
        old = trees.copied(tree, here / "old")
        trees.built(logged(old, here))
        arguments = arguments_of(row)
        before, again = trees.run(old, arguments), trees.run(old, arguments)
        if differs := trees.difference(before, again):
            return {"program": name, "types": {}, "refused": f"its output differs from run to run: {differs}"}
        sanitized = _with_sanitizers(trees.copied(tree, here / "checked"), row)
        trees.built(sanitized)
        ran, errors = _run_sanitized(sanitized, arguments)
        known = units(here / "commands", old.root)
        original = Original(old, sanitized, arguments, before, ran, errors, known)
        types = dict(_types(original, only))
    return {"program": name, "types": types}


def row_of(name: str) -> dict[str, Any]:
    """The entry of one program in the list."""
    rows: list[dict[str, Any]] = tomllib.loads((FIELD / "field.toml").read_text())["program"]
    return next(one for one in rows if one["name"] == name)


def arguments_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What a program is run with, in a tree that :func:`prepared` makes."""
    return tuple(shlex.split(row["run"].replace("$LIST", str(FIELD)).replace("$INPUT", "."))[1:])


def prepared(row: Mapping[str, Any], work: Path) -> trees.SourceTree:
    """A copy of the program's sources and input, with its command; drivers are a part of it."""
    flags_name, flags = next(iter(row["flags"].items()))
    root = work / "tree"
    built = FETCHED / row["name"] / f"build-{flags_name}"
    shutil.copytree(built, root, symlinks=True, ignore=shutil.ignore_patterns("*.o", "*.lo"))
    shutil.copytree(FETCHED / row["name"] / "input", root, symlinks=True, dirs_exist_ok=True)
    shutil.copytree(FIELD / "drivers", root / "list" / "drivers")
    shutil.copy(FIELD / "compilers.sh", root / "list")
    given = {"LIST": root / "list", "FLAGS": flags, "VERSION": row["version"], "VARIANT": flags_name, "JOBS": "1"}
    exports = "; ".join(f"export {key}={shlex.quote(str(value))}" for key, value in given.items())
    program = shlex.split(row["run"])[0].removeprefix("$BUILD/")
    return trees.SourceTree(root, Path(program), Path("."), f"{exports}; {row['build']}")


def _with_sanitizers(tree: trees.SourceTree, row: Mapping[str, Any]) -> trees.SourceTree:
    """The same tree, built with sanitizers, by gcc: clang's runtime is a package of its own."""
    name, flags = next(iter(row["flags"].items()))
    build = tree.build.replace(f"FLAGS={shlex.quote(flags)}", f"FLAGS={shlex.quote(SANITIZED)}")
    return replace(tree, build=build.replace(f"VARIANT={shlex.quote(name)}", "VARIANT=sanitized"))


def logged(tree: trees.SourceTree, work: Path) -> trees.SourceTree:
    """The tree with a build that notes each of the compiler's commands, with its folder, in ``commands``."""
    (work / "bin").mkdir()
    for name in COMPILERS:
        wrapper = work / "bin" / name
        line = "json.dumps([os.getcwd(), *sys.argv[1:]]) + chr(10)"
        noting = f"import json, os, sys; open({str(work / 'commands')!r}, 'a').write({line})"
        wrapper.write_text(
            f'#!/bin/sh\n{sys.executable} -c {shlex.quote(noting)} {name} "$@"\nexec {shutil.which(name)} "$@"\n'
        )
        wrapper.chmod(0o755)
    return replace(tree, build=f"export PATH={work / 'bin'}:$PATH; {tree.build}")


def units(commands: Path, root: Path) -> dict[Path, tuple[SourceFile, tuple[str, ...]]]:
    """The translation units of the build's commands that are still there (``configure`` tries others)."""
    found = {}
    for line in commands.read_text().splitlines():
        folder, *words = json.loads(line)
        for one in from_command(words, Path(folder)):
            if one.path.is_file() and root in one.path.parents:
                found[one.path] = (one, (words[0], *_without_files(words[1:])))
    return found


def _without_files(words: Sequence[str]) -> Iterator[str]:
    left = iter(words)
    for word in left:
        if word in ("-o", "-MF", "-MT", "-MQ"):
            next(left, None)
        elif word.startswith("-") and word not in ("-c", "-w", "-MD", "-MP", "-Wp,-MD") and not word.startswith("-l"):
            yield word
            if word in ("-I", "-D", "-include", "-isystem", "-U") and (value := next(left, None)) is not None:
                yield value


def records(units: Sequence[TranslationUnit], root: Path) -> dict[str, Syntax]:
    """The records with names that files of the tree define, by USR."""
    found: dict[str, Syntax] = {}
    for node in (node for unit in units for top in unit.declarations for node in top.walk()):
        if node.kind in RECORDS and node.defines and node.declares and root in node.file.parents:
            found.setdefault(node.declares, node)
    return found


def _types(original: Original, only: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    root = original.tree.root
    sources = [one for one, _ in original.units.values()]
    units = [parse(one.path, one.flags, one.folder) for one in sources]
    for node in records(units, root).values():
        name = (node.name or node.shape.text).replace(f"{root}/", "")
        if only and name not in only:
            continue
        try:
            layout, done = as_arrays(sources, units, root, node)
        except LayoutAdviseError as error:
            yield name, {"refused": error.line().replace(f"{root}/", "")}
            continue
        found = _outcome(original, layout, done)
        print(f"  {name}: {', '.join(found)}", file=sys.stderr, flush=True)
        yield name, found


def as_arrays(
    sources: Sequence[SourceFile], units: Sequence[TranslationUnit], root: Path, record: Syntax
) -> tuple[Target, Rewritten]:
    """The record as an array for each member, in all sources."""

    def make(read: Sequence[TranslationUnit]) -> Rewritten:
        node = records(read, root).get(record.declares)
        if node is None:  # one without a name is called after its place
            raise SourceError(f"cannot rewrite {record.shape.text}", "it moved when macros were expanded", "")
        layout = target(node, [[one.name] for one in fields_of(node)], "\n".join(t for u in read for t in u.texts.values()))
        layouts.append(layout)
        return rewrite(read, node, layout)

    layouts: list[Target] = []
    done = rewritten(sources, root, make, units)
    return layouts[-1], done


def _outcome(original: Original, layout: Target, done: Rewritten) -> dict[str, Any]:
    root = original.tree.root
    if done.refusals:
        first = done.refusals[0]
        at = first.file.relative_to(root) if root in first.file.parents else first.file
        reasons = dict(Counter(one.why for one in done.refusals).most_common())
        return {"refused": f"{at}:{first.line}: {first.why}", "places": len(done.refusals), "reasons": reasons}
    if not done.texts or not layout.splits:
        return {"unused": True}
    with tempfile.TemporaryDirectory(prefix="apply-") as work:
        return _ran(done.texts, original, Path(work).resolve())


def _ran(texts: Mapping[Path, str], original: Original, work: Path) -> dict[str, Any]:
    """What becomes of copies with the new texts."""
    said: dict[str, Any] = {"files": len(texts)}
    new = _changed(original.tree, texts, original.tree.root, work / "new")
    try:
        trees.built(new)
        if differs := trees.difference(original.ran, trees.run(new, original.arguments)):
            return {"differs": differs, **said}
        checked = _changed(original.sanitized, texts, original.tree.root, work / "checked")
        trees.built(checked)
    except LayoutAdviseError as error:
        return {"failed": error.line()[:300], **said}
    if warnings := _new_warnings(original, new.root, texts):
        return {"warns": warnings, **said}
    ran, errors = _run_sanitized(checked, original.arguments)
    differs = trees.difference(original.ran_sanitized, ran)
    if differs or errors - original.errors:
        return {"unclean": [differs, *sorted(errors - original.errors)], **said}
    return {"same": True, **said}


def _changed(tree: trees.SourceTree, texts: Mapping[Path, str], root: Path, to: Path) -> trees.SourceTree:
    new = trees.copied(tree, to)
    for path, text in texts.items():
        (new.root / path.relative_to(root)).write_bytes(text.encode("latin-1"))
    return new


def _new_warnings(original: Original, root: Path, texts: Mapping[Path, str]) -> dict[str, str]:
    """By option the warnings of which the changed units have more: how many before and after."""
    headers = [path for path in texts if path not in original.units]
    before, after = Counter[str](), Counter[str]()
    for path, (one, words) in original.units.items():
        if path not in texts and not headers:
            continue
        for into, at in ((before, original.tree.root), (after, root)):
            moved = [word.replace(str(original.tree.root), str(at)) for word in words]
            file, folder = (Path(str(part).replace(str(original.tree.root), str(at), 1)) for part in (path, one.folder))
            command = [*moved, "-Wall", "-Wextra", "-c", "-o", os.devnull, str(file)]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
            into.update(re.findall(r"warning: .*\[(-W[\w+=-]+)\]", done.stderr))
    return {option: f"{before[option]} before, {count} now" for option, count in after.items() if count > before[option]}


def _run_sanitized(tree: trees.SourceTree, arguments: Sequence[str]) -> tuple[trees.ProgramRun, frozenset[str]]:
    """The run of a program with sanitizers, and the kinds of errors that they tell of, without numbers."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=0"}
    command = [str(tree.root / tree.program), *arguments]
    done = subprocess.run(
        command, cwd=tree.root / tree.cwd, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False
    )
    told = RUNTIME_ERROR.findall(done.stderr.decode(errors="replace"))
    kinds = frozenset(re.sub(r"0x[0-9a-f]+|-?\d[\d.e+-]*", "N", of_type(a or b)) for a, b in told)
    return trees.ProgramRun(done.stdout, done.returncode, 0.0), kinds


def of_type(text: str) -> str:
    """A message without the names of types, which a new layout changes."""
    return re.sub(r"'[^']*'", "T", text)
