"""The whole rewriting of C++: from parsed units and a layout to new texts, or to the places that stand in the way."""

from __future__ import annotations

import re
from pathlib import Path

from layout_advise.apply.rewrite.cxx.classes import elements, includes, pointers
from layout_advise.apply.rewrite.cxx.initialisers import initialised_in_order
from layout_advise.apply.rewrite.cxx.obstacles import obstacles
from layout_advise.apply.rewrite.cxx.pooled import without_originals
from layout_advise.apply.rewrite.cxx.uses import ProxyEdits
from layout_advise.apply.rewrite.program import Refusal, SourceProgram
from layout_advise.apply.rewrite.record import put_in_order
from layout_advise.apply.rewrite.syntax import Edit, Syntax
from layout_advise.apply.rewrite.target import Target

OPENING = re.compile(r"(?:\s*(?://[^\n]*|/\*.*?\*/))*\s*(?:#pragma once[ \t]*\n)?", re.DOTALL)
"""Comments at the beginning of a file, and what makes a header be read once."""


def edited(
    program: SourceProgram, record: Syntax, target: Target, guard: bool
) -> tuple[dict[Path, set[Edit]], set[Refusal]]:
    """The edits by file, with the new types around the record, and what is refused."""
    proxies = ProxyEdits(program, target, record)
    found: dict[Path, set[Edit]] = {path: set() for path in program.texts}
    for unit in program.units:
        for top in unit.declarations:
            found[top.file].update(proxies.edits(top))
    refusals = proxies.refusals | set(obstacles(program, target, record))
    if target.reorders:
        refusals |= put_in_order(program, record, target, found[record.file])
        refusals |= set(initialised_in_order(program, target, found))
    if not refusals:
        if target.pooled:
            without_originals(proxies.methods, found)
        _surround(program, record, target, proxies, found[record.file], guard)
        refusals |= _define(proxies, found)
    return found, refusals | proxies.refusals


def _surround(
    program: SourceProgram, record: Syntax, target: Target, proxies: ProxyEdits, found: set[Edit], guard: bool
) -> None:
    """Adds what stands before and behind the record."""
    text = program.texts[record.file]
    before = text.rfind("typedef", text.rfind(";", 0, record.start) + 1, record.start)
    before = record.start if before < 0 else before
    end = text.index(";", record.end) + 1
    methods = proxies.methods.copies(proxies.method)
    top = OPENING.match(text)
    top_at = top.end() if top is not None else 0
    found.add(Edit(top_at, top_at, includes(proxies.used, target.pooled)))
    made = pointers(target, "class" if record.kind == "CLASS_DECL" else "struct")
    behind = elements(target, proxies.used, methods, guard).rstrip("\n")
    if _in_c(program, record):  # no templates there
        made, behind = (f'extern "C++" {{\n{part}\n}}\n' for part in (made, behind))
    found.add(Edit(before, before, made))
    found.add(Edit(end, end, "\n" + behind))


def _define(proxies: ProxyEdits, found: dict[Path, set[Edit]]) -> set[Refusal]:
    """Adds friends, copies of methods that are defined elsewhere, a default destructor; returns what stands in the way."""
    refused = set()
    for file, edit in proxies.methods.friends():
        found[file].add(edit)
    for made in (proxies.methods.definitions(proxies.method), proxies.methods.destructor()):
        if isinstance(made, Refusal):
            refused.add(made)
            continue
        for file, edit in made:
            found[file].add(edit)
    return refused


def _in_c(program: SourceProgram, record: Syntax) -> bool:
    """True in ``extern "C"``."""
    around = program.parents.get(record)
    while around is not None and around.kind != "LINKAGE_SPEC":
        around = program.parents.get(around)
    return around is not None
