"""The whole rewriting: from parsed units and a layout to new texts, or to the places that stand in the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from layout_advise.apply.rewrite.aligned import declared, given_memory
from layout_advise.apply.rewrite.cxx.rewrite import edited
from layout_advise.apply.rewrite.expressions import SplitExpressions
from layout_advise.apply.rewrite.helpers import pool
from layout_advise.apply.rewrite.helpers.accessors import functions, ref_type, static_asserts
from layout_advise.apply.rewrite.order import OrderedExpressions
from layout_advise.apply.rewrite.program import Refusal, SourceProgram
from layout_advise.apply.rewrite.record import inside_out, misplaced, put_in_order
from layout_advise.apply.rewrite.syntax import Edit, MacroUse, Syntax, TranslationUnit, applied
from layout_advise.apply.rewrite.target import Target


@dataclass(frozen=True, slots=True)
class Rewritten:
    """New texts by file, only of files that change; or ``refusals``, and then nothing changes. ``macros``: files and offsets
    of uses of macros, if these are all that stands in the way."""

    texts: dict[Path, str]
    refusals: tuple[Refusal, ...]
    macros: tuple[MacroUse, ...] = ()


def rewrite(units: Sequence[TranslationUnit], record: Syntax, target: Target, *, guard: bool = False) -> Rewritten:
    """All mentions of the record in all units for the new layout; with ``guard`` the declaration asserts it."""
    program = SourceProgram(units)
    by_types = target.splits and program.in_cxx
    edits, refusals = (edited if by_types else _edited_c)(program, record, target, guard)
    refusals |= set(program.disagreeing(record.declares, target.name)) | inside_out(program, target, record)
    refusals |= set() if refusals else misplaced(target, record)
    if target.pooled:
        refusals |= set(pool.obstacles(program, target))
        if by_types and any(field.apart for field in target.fields):
            refusals.add(Refusal(record.file, record.line, "a member that is taken apart, in a pool in C++"))
    if by_types and any(field.bits for field in target.fields):
        refusals.add(Refusal(record.file, record.line, "bit fields, to which C++ has no references"))
    return outcome(program, edits, refusals)


def outcome(program: SourceProgram, edits: dict[Path, set[Edit]], refusals: set[Refusal]) -> Rewritten:
    """The texts with these edits by file, or what is refused: two edits of the same text are, too."""
    refusals = refusals or _overlaps(program, edits)
    if refusals:
        places = {(refusal.file, refusal.line, refusal.why): refusal for refusal in refusals}
        return Rewritten({}, tuple(sorted(places.values())), _macros(program, refusals))
    texts = {path: applied(program.texts[path], sorted(found)) for path, found in edits.items() if found}
    return Rewritten({path: text for path, text in texts.items() if text != program.texts[path]}, ())


def _edited_c(
    program: SourceProgram, record: Syntax, target: Target, guard: bool
) -> tuple[dict[Path, set[Edit]], set[Refusal]]:
    """The edits by file and what is refused, of C, and of all where only the order of members changes."""
    expressions = SplitExpressions(program, target) if target.splits else OrderedExpressions(program, target)
    edits: dict[Path, set[Edit]] = {path: set() for path in program.texts}
    for unit in program.units:
        for top in unit.declarations:
            edits[top.file].update(expressions.edits(top))
    refusals = set(expressions.refusals)
    if target.aligned:
        made = declared(program, target, record)
        if isinstance(made, Refusal):
            refusals.add(made)
        else:
            edits[record.file].add(made)
    if target.reorders:
        refusals |= put_in_order(program, record, target, edits[record.file])
    if not refusals:
        _add_helpers(program, record, target, expressions.used, edits, guard)
    return edits, refusals


def _macros(program: SourceProgram, refusals: set[Refusal]) -> tuple[MacroUse, ...]:
    """The outermost uses of macros that the refusals are about; none if one of them has another cause."""
    found = set()
    for refusal in refusals:
        around = [
            MacroUse(file, start, end)
            for unit in program.units
            for (file, start), end in unit.expansions.items()
            if file == refusal.file and start <= refusal.macro_at < end
        ]
        if not around:
            return ()
        found.add(min(around, key=lambda use: (use.start, -use.end)))
    return tuple(sorted(found))


def _overlaps(program: SourceProgram, edits: dict[Path, set[Edit]]) -> set[Refusal]:
    """Places for which two units, or two uses of a macro's argument, want different texts."""
    found = set()
    for path, some in edits.items():
        ordered = sorted(some)
        for one, other in pairwise(ordered):
            if other.start < one.end:
                line = program.texts[path].count("\n", 0, other.start) + 1
                found.add(Refusal(path, line, "two uses of this text need different changes", other.start))
    return found


def _add_helpers(
    program: SourceProgram, record: Syntax, target: Target, used: set[str], edits: dict[Path, set[Edit]], guard: bool
) -> None:
    """The type that stands for a pointer before its first use, the functions behind the record."""
    text, found = program.texts[record.file], edits[record.file]
    tops = [top for unit in program.units for top in unit.declarations if top.file == record.file]
    own = [top for top in tops if top.start <= record.start and record.end <= top.end]
    end = text.index(";", max(top.end for top in own)) + 1
    end = text.find("\n", end) + 1 or len(text)
    if not target.splits:
        behind = given_memory(target.prefix, target.aligned, used) + (static_asserts(target) if guard else "")
        headers = ["stddef"] * guard + (["malloc", "stdint", "stdlib", "string"] if used else [])
        if behind:
            found.add(Edit(end, end, behind))
            found.add(Edit(0, 0, "".join(f"#include <{name}.h>\n" for name in headers)))
        return
    first = min((edit.start for edit in found), default=record.start)
    before = min(top.start for top in tops if top.end >= min(first, record.start))
    before = above_comment(text, text.rfind("\n", 0, before) + 1)
    found.add(Edit(before, before, ref_type(target, used)))
    found.add(Edit(end, end, functions(target, used, guard)))


def above_comment(text: str, at: int) -> int:
    """The start of the comment that ends on the line above; ``at`` where there is none."""
    above = text[:at].rstrip("\n")
    if len(text[:at]) - len(above) == 1 and above.endswith("*/"):
        start = above.rfind("/*")
        return text.rfind("\n", 0, start) + 1 if not text[text.rfind("\n", 0, start) + 1 : start].strip() else at
    return at
