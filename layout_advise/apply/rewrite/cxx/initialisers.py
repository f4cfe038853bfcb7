"""The initialisers of constructors, in the order that a record's members get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from layout_advise.apply.rewrite.program import Refusal, SourceProgram
from layout_advise.apply.rewrite.syntax import Edit, Syntax, applied
from layout_advise.apply.rewrite.target import Target

Places = Mapping[str, tuple[int, int]]
"""Where members lie, by USR: their group's begin, and the place in it."""
BRACKETS = {"(": ")", "{": "}", "[": "]"}


def initialised_in_order(program: SourceProgram, target: Target, found: dict[Path, set[Edit]]) -> Iterator[Refusal]:
    """Puts into ``found`` what brings the initialisers of the record's constructors into the members' new order, with the
    edits in them. Yields those that read another member: when that is initialised changes."""
    order = {f.usr: (g.at, at) for g in target.groups for f, at in zip(g.fields, g.offsets, strict=True)}
    seen = set()
    for unit in program.units:
        for node in (node for top in unit.declarations for node in top.walk()):
            if (node.file, node.start, node.kind) in seen:  # a header, in another unit
                continue
            seen.add((node.file, node.start, node.kind))
            if node.kind == "FIELD_DECL" and node.declares in order:
                yield from _reading(node, node.children, order)
            elif node.kind == "CONSTRUCTOR" and node.declares.startswith(f"{target.usr}@"):
                yield from _reading(node, [one for one in node.children if one.kind != "COMPOUND_STMT"], order)
                _sorted(program, node, order, found[node.file])


def _reading(node: Syntax, values: Iterable[Syntax], order: Places) -> Iterator[Refusal]:
    for value in values:
        for part in value.walk():
            if part.kind == "MEMBER_REF_EXPR" and part.refers in order:
                why = f"an initialiser reads {part.name}, and the order in which members are initialised changes"
                yield Refusal(node.file, part.line, why, part.start if part.in_macro else -1)


def _sorted(program: SourceProgram, node: Syntax, order: Places, found: set[Edit]) -> None:
    """The edits that sort one constructor's initialisers."""
    named = [child for child in node.children if child.kind == "MEMBER_REF" and child.refers in order and not child.in_macro]
    if all(order[one.refers] <= order[other.refers] for one, other in pairwise(named)):
        return
    text, spans, texts = program.texts[node.file], [], []
    for one in named:
        span = one.start, _end(text, one.end)
        inside = [edit for edit in found if span[0] <= edit.start and edit.end <= span[1]]
        found.difference_update(inside)
        spans.append(span)
        texts.append((order[one.refers], applied(text[slice(*span)], inside, span[0])))
    found.update(Edit(*span, new) for span, (_, new) in zip(spans, sorted(texts), strict=True))


def _end(text: str, at: int) -> int:
    """The end of an initialiser whose name ends at ``at``: behind the bracket that closes its first one."""
    waiting: list[str] = []
    for k in range(at, len(text)):
        if text[k] in BRACKETS:
            waiting.append(BRACKETS[text[k]])
        elif waiting and text[k] == waiting[-1]:
            waiting.pop()
            if not waiting:
                return k + 1
    return len(text)
