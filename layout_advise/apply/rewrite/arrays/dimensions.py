"""Declarations and subscripts of arrays with their dimensions in another order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.apply.rewrite.arrays.carriers import Carriers, array_called, parameters
from layout_advise.apply.rewrite.arrays.members import NOTHING, seen_through_records
from layout_advise.apply.rewrite.arrays.uses import extents_of
from layout_advise.apply.rewrite.program import Refusal, SourceProgram
from layout_advise.apply.rewrite.rewrite import Rewritten, outcome
from layout_advise.apply.rewrite.syntax import Edit, Syntax, TranslationUnit, applied

SPECIAL = re.compile(r"\b(static|restrict|const|volatile)\b|\*")


def turned(units: Sequence[TranslationUnit], name: str, lengths: tuple[int, ...], order: tuple[int, ...]) -> Rewritten:
    """The array called ``name``, whose dimensions have at least these ``lengths``, with dimension ``order[k]`` as number
    ``k``, in all units. Raises SourceError where there is no such array."""
    program = SourceProgram(units)
    array = array_called(program, name, lengths)
    carriers = Carriers(program, {array.declares}, len(order))
    carriers.follow()
    if array.kind == "FIELD_DECL":
        carriers.refusals.update(seen_through_records(program, array))
    found = _Turned(program, carriers, order, array)
    found.declarations()
    found.subscripts()
    return outcome(program, found.edits, carriers.refusals)


@dataclass(frozen=True, slots=True)
class _Brackets:
    """The texts between the brackets of a declaration, and where they stand; ``pointer``: it leads to rows."""

    texts: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    pointer: bool


class _Turned:
    """The edits by file."""

    def __init__(self, program: SourceProgram, carriers: Carriers, order: tuple[int, ...], array: Syntax) -> None:
        self.program, self.carriers, self.order, self.array = program, carriers, order, array
        self.edits: dict[Path, set[Edit]] = {path: set() for path in program.texts}
        self.inside = {use.subscripts[-1]: use.subscripts for use in carriers.uses if use.subscripts and not use.why}

    def declarations(self) -> None:
        """The brackets of all declarations of the arrays and of parameters that they are handed on in."""
        own = {node for usr in self.carriers.usrs for node in self._declared(usr)}
        for function, positions in self.carriers.parameters.items():
            for declared in self.program.declared.get(function, ()):
                taken = parameters(declared)
                own |= {taken[k] for k in positions if k < len(taken)}
        for node in own:
            self._declaration(node)

    def _declared(self, usr: str) -> tuple[Syntax, ...]:
        return (*self.program.declared.get(usr, ()), *self.program.fields.get(usr, ()))

    def _declaration(self, node: Syntax) -> None:
        brackets = self._brackets(node)
        if isinstance(brackets, str):
            self._refuse(node, brackets)
            return
        places, texts = list(brackets.places), list(brackets.texts)
        if brackets.pointer:
            places, texts = [(0, 0), *places], ["", *texts]
        open_ended = not texts[0].strip()  # of a parameter, or of what another file defines
        if open_ended:
            texts[0] = self._first_length(node)
        for k in range(open_ended, len(self.order)):
            self.edits[node.file].add(Edit(*places[k], texts[self.order[k]]))

    def _first_length(self, node: Syntax) -> str:
        """The length of the first dimension, for a declaration that does not tell it: by its name where that is known."""
        for one in self._declared(self.array.declares):
            brackets = self._brackets(one)
            name = brackets.texts[0].strip() if isinstance(brackets, _Brackets) and not brackets.pointer else ""
            if name.isidentifier() and re.search(rf"\b{name}\b", self.program.texts[node.file][: node.start]):
                return name
        return str(extents_of(self.array.shape)[0])

    def _brackets(self, node: Syntax) -> _Brackets | str:
        """The dimensions as a declaration has them, or why they cannot be changed there."""
        text, at = self.program.texts[node.file], node.name_at + len(node.name)
        if node.in_macro or text[node.name_at : at] != node.name:
            return f"a macro declares {node.name}"
        for child in node.children:
            if child.kind == "INIT_LIST_EXPR" and "".join(self.program.text(child).split()) not in NOTHING:
                return f"{node.name} has an initialiser"
        at += len(text[at:]) - len(text[at:].lstrip())
        pointer = text[at] == ")"
        places = brackets_behind(text, at + pointer)
        texts = tuple(text[start:end] for start, end in places)
        if len(places) != len(self.order) - pointer:
            return f"the dimensions of {node.name} are those of another type"
        if any(SPECIAL.search(one) for one in texts):
            return f"the dimensions of {node.name} are not plain lengths"
        return _Brackets(texts, tuple(places), pointer)

    def subscripts(self) -> None:
        """Exchanges the indices of all elements that are reached."""
        for unit in self.program.units:
            for top in unit.declarations:
                self.edits[top.file].update(self._below(top))

    def _below(self, node: Syntax) -> list[Edit]:
        """The edits of what is below a node."""
        subscripts = self.inside.get(node)
        if subscripts is None:
            return [edit for child in node.children for edit in self._below(child)]
        places = [self._index(one) for one in subscripts]
        if any(one.in_macro for one in subscripts) or not all(places):
            self.carriers.refusals.add(Refusal(node.file, node.line, "a macro builds the access", node.start))
            return []
        text, known = self.program.texts[node.file], [place for place in places if place]
        inner = [
            applied(text[start:end], self._below(one.children[1]), start)
            for one, (start, end) in zip(subscripts, known, strict=True)
        ]
        return [Edit(*place, inner[k]) for place, k in zip(known, self.order, strict=True)]

    def _index(self, subscript: Syntax) -> tuple[int, int] | None:
        """Start and end of an index in the text, between its brackets."""
        text, base = self.program.texts[subscript.file], subscript.children[0]
        opened = re.match(r"\s*\[", text[base.end : subscript.end])
        if base.file != subscript.file or opened is None or text[subscript.end - 1 : subscript.end] != "]":
            return None
        return base.end + opened.end(), subscript.end - 1

    def _refuse(self, node: Syntax, why: str) -> None:
        self.carriers.refusals.add(Refusal(node.file, node.line, why, node.start if node.in_macro else -1))


def brackets_behind(text: str, at: int) -> list[tuple[int, int]]:
    """The brackets that follow ``at`` one behind the other: start and end of the text in each."""
    places = []
    while (opened := re.match(r"\s*\[", text[at:])) is not None:
        start = at + opened.end()
        end = _closing(text, start)
        places.append((start, end))
        at = end + 1
    return places


def _closing(text: str, at: int) -> int:
    """The place of the bracket that closes the one in front of ``at``."""
    depth = 1
    for k in range(at, len(text)):
        depth += {"[": 1, "]": -1}.get(text[k], 0)
        if not depth:
            return k
    return len(text)
