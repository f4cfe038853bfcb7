"""Uses of macros that build accesses, replaced by what the preprocessor makes of them, so that they can be rewritten.

The project's compiler expands them (``-E``), between two marks that no program has. A use in a header has to expand to the
same text in all units that read it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from layout_advise.apply.policy import APPLY
from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.rewrite import Rewritten
from layout_advise.apply.rewrite.syntax import Edit, MacroUse, TranslationUnit, applied
from layout_advise.apply.sources import SourceFile

MARK = "layout_advise_mark"
Make = Callable[[Sequence[TranslationUnit]], Rewritten]
"""From parsed units to their new texts."""


def rewritten(
    sources: Sequence[SourceFile], root: Path, make: Make, parsed: Sequence[TranslationUnit] | None = None
) -> Rewritten:
    """The outcome of ``make`` on the sources; where only uses of macros stand in its way, with these expanded.
    Files below ``root`` are changed meanwhile, and are then again as they were. ``parsed``: the units, if they are known."""
    units = list(parsed) if parsed is not None else [parse(one.path, one.flags, one.folder) for one in sources]
    before: dict[Path, bytes] = {}
    done = make(units)
    first, expanded = done, dict[Path, str]()
    try:
        for _ in range(APPLY.macro_rounds):
            if not done.macros or any(root not in use.file.parents for use in done.macros):
                break
            for file in {use.file for use in done.macros} - before.keys():
                before[file] = file.read_bytes()
            made = _expansions(sources, units, done.macros)
            if made is None:
                break
            concerned = [made.keys() & unit.texts.keys() for unit in units]
            read = [one for one, files in zip(sources, concerned, strict=True) if files]
            were = [_preprocessed(one) for one in read]
            for file, text in made.items():
                file.write_bytes(text.encode("latin-1"))
            if [_bare(_preprocessed(one)) for one in read] != [_bare(text) for text in were]:
                break  # a macro that names itself, or that counts
            expanded |= made
            units = [
                parse(one.path, one.flags, one.folder) if files else unit
                for one, unit, files in zip(sources, units, concerned, strict=True)
            ]
            done = make(units)
    finally:
        for file, content in before.items():
            file.write_bytes(content)
    if done.refusals:
        return first if done.macros else done
    return replace(done, texts=expanded | done.texts)


def _expansions(
    sources: Sequence[SourceFile], units: Sequence[TranslationUnit], uses: Iterable[MacroUse]
) -> dict[Path, str] | None:
    """The files with these uses expanded; None where that cannot be done, or differs from unit to unit."""
    texts = {file: text for unit in units for file, text in unit.texts.items()}
    by_file: defaultdict[Path, list[MacroUse]] = defaultdict(list)
    for use in uses:
        by_file[use.file].append(use)
    numbered = {use: k for k, use in enumerate(use for some in by_file.values() for use in some)}
    found: dict[int, str] = {}
    for file, some in by_file.items():
        edits = [Edit(use.start, use.start, f" {MARK}{numbered[use]}_ ") for use in some]
        edits += [Edit(use.end, use.end, f" _{MARK}{numbered[use]} ") for use in some]
        file.write_bytes(applied(texts[file], edits).encode("latin-1"))
    try:
        for one, unit in zip(sources, units, strict=True):
            if by_file.keys() & unit.texts.keys() and not _agrees(found, _marked(_preprocessed(one))):
                return None
    finally:
        for file in by_file:
            file.write_bytes(texts[file].encode("latin-1"))
    if found.keys() != set(numbered.values()):
        return None
    return {
        file: applied(texts[file], [_edit(texts[file], use, found[numbered[use]]) for use in some])
        for file, some in by_file.items()
    }


def _edit(text: str, use: MacroUse, expanded: str) -> Edit:
    """The text in the place of a use; lines keep their numbers."""
    return Edit(use.start, use.end, expanded + "\n" * text.count("\n", use.start, use.end))


def _preprocessed(one: SourceFile) -> str:
    """A unit as the preprocessor of the project's compiler hands it on; empty where there is none."""
    compiler = shutil.which(one.compiler) or shutil.which("cc")
    if compiler is None:
        return ""
    command = [compiler, *one.flags, "-E", "-P", str(one.path)]
    done = subprocess.run(command, cwd=one.folder, capture_output=True, timeout=APPLY.build_seconds, check=False)
    return done.stdout.decode("latin-1")


def _bare(text: str) -> str:
    """A text without blanks."""
    return "".join(text.split())


def _marked(text: str) -> dict[int, set[str]]:
    """By number what the marked uses in a preprocessed unit have become."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for number, inner, _ in re.findall(rf"{MARK}(\d+)_\s(.*?)\s_{MARK}(\1)\b", text, re.DOTALL):
        found[int(number)].add(re.sub(r"\s*\n\s*", " ", inner).strip() if "\n#" not in inner else "#")
    return dict(found)


def _agrees(found: dict[int, str], others: dict[int, set[str]]) -> bool:
    """Adds to ``found`` what another unit has; False where that is something else, or a directive is in it."""
    for number, texts in others.items():
        if len(texts) > 1 or found.setdefault(number, next(iter(texts))) not in texts or "#" in texts:
            return False
    return True
