"""Pointers to the record where the source names the type: ``const struct T *`` becomes the type that stands for it."""

from __future__ import annotations

import re

from layout_advise.apply.rewrite.program import Refusal, SourceProgram
from layout_advise.apply.rewrite.syntax import Edit, Syntax
from layout_advise.apply.rewrite.target import Target

SPACES = "__global|global|__constant|constant"
"""Address spaces of OpenCL C, which belong to the pointer."""
BEFORE = re.compile(rf"((?:\b(?:const|struct|class|{SPACES})\s+)*)$")
AFTER = re.compile(rf"(?:\s*\b(?:const|{SPACES})\b)*\s*\*(?:\s*\b(?:restrict|__restrict|__restrict__)\b)?[ \t]*")
DECLARING = ("VAR_DECL", "FIELD_DECL", "PARM_DECL", "FUNCTION_DECL", "TYPEDEF_DECL")


def type_edits(program: SourceProgram, target: Target, reference: Syntax) -> list[Edit] | Refusal:
    """The edits at one mention of the type, and at the declarator that it belongs to."""
    text, holder = program.texts[reference.file], program.parents.get(reference)
    if not target.is_value(reference.shape):
        return []
    after = AFTER.match(text, reference.end)
    edits: list[Edit] = []
    if after is not None:
        start = reference.start - len(BEFORE.search(text, 0, reference.start).group(1))  # type: ignore[union-attr]
        blank = "" if text[after.end() : after.end() + 1] in "*)," else " "
        edits.append(Edit(start, after.end(), f"{target.ref}{blank}"))
    if holder is not None and holder.kind in DECLARING and holder.name_at > reference.end:
        commas = _commas(text[reference.end : holder.name_at])
        if commas:
            made = _later_declarator(program, target, reference, holder, commas)
            if isinstance(made, Refusal):
                return made
            edits += made
        if holder.shape.text.count("volatile"):
            return Refusal(reference.file, holder.line, f"{holder.name} is volatile")
    return edits


def _later_declarator(
    program: SourceProgram, target: Target, reference: Syntax, holder: Syntax, commas: list[int]
) -> list[Edit] | Refusal:
    """The edits at ``*q`` in ``struct T *p, *q`` and, a declaration of its own, in ``struct T t, *q``."""
    text, type_end = program.texts[reference.file], reference.end
    starts = [0, *(at + 1 for at in commas)]
    before, own = (text[type_end + at : holder.name_at].lstrip().startswith("*") for at in starts[-2:])
    star = text.index("*", type_end + starts[-1]) if own else 0
    if own and before:
        return [Edit(star, star + 1, "")]
    if not own and not before:
        return []
    around = program.parent(holder, "DECL_STMT")
    if around is not None and around.kind == "FOR_STMT":
        return Refusal(reference.file, holder.line, f"{holder.name} is declared together with what is no pointer")
    comma = type_end + commas[-1]
    begin = _declaration_start(program, reference, holder)
    head = text[begin:type_end]
    start = reference.start - len(BEFORE.search(text, 0, reference.start).group(1))  # type: ignore[union-attr]
    if own:
        return [Edit(comma, star + 1, f"; {text[begin:start]}{target.ref} ")]
    return [Edit(comma, comma + 1, f"; {head}")]


def _declaration_start(program: SourceProgram, reference: Syntax, holder: Syntax) -> int:
    """The start of the declaration that names the type: libclang has later declarators begin at their name."""
    siblings = program.parents[holder].children if holder in program.parents else (holder,)
    sharing = [node.start for node in siblings if any(part.start == reference.start for part in node.children)]
    return min([holder.start, *sharing])


def _commas(between: str) -> list[int]:
    """The places of commas that stand in no brackets: each ends a declarator."""
    depth, found = 0, []
    for at, letter in enumerate(between):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and depth == 0:
            found.append(at)
    return found
