"""All translation units together: who stands around a node, what is defined where, and which names are used where."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.apply.rewrite.syntax import Syntax, TranslationUnit
from layout_advise.errors import SourceError


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """A place that cannot be rewritten safely, and why. ``macro_at``: an offset in a use of a macro, without which it could
    be."""

    file: Path
    line: int
    why: str
    macro_at: int = -1


class SourceProgram:
    """An index over the nodes of all units, by USR: what is named in ``uses`` and, of records, in ``members``, and what is
    declared in ``functions``, ``declared`` and, of records, in ``fields``. A header that several units include is there
    several times."""

    def __init__(self, units: Sequence[TranslationUnit]) -> None:
        self.units = tuple(units)
        self.texts: dict[Path, str] = {}
        self.parents: dict[Syntax, Syntax] = {}
        self.uses: defaultdict[str, list[Syntax]] = defaultdict(list)
        self.functions: dict[str, Syntax] = {}
        self.declared: defaultdict[str, list[Syntax]] = defaultdict(list)
        self.fields: defaultdict[str, list[Syntax]] = defaultdict(list)
        self.members: defaultdict[str, list[Syntax]] = defaultdict(list)
        for unit in units:
            self.texts.update(unit.texts)
            for top in unit.declarations:
                self._index(top)

    def _index(self, node: Syntax) -> None:
        if node.refers and node.kind in ("DECL_REF_EXPR", "CALL_EXPR"):
            self.uses[node.refers].append(node)
        if node.refers and node.kind == "MEMBER_REF_EXPR":
            self.members[node.refers].append(node)
        if node.kind == "FIELD_DECL":
            self.fields[node.declares].append(node)
        if node.declares and node.defines and node.kind in ("FUNCTION_DECL", "CXX_METHOD", "DESTRUCTOR"):
            self.functions[node.declares] = node
        if node.declares and node.kind in ("FUNCTION_DECL", "VAR_DECL", "STRUCT_DECL", "CLASS_DECL", "UNION_DECL"):
            self.declared[node.declares].append(node)
        for child in node.children:
            self.parents[child] = node
            self._index(child)

    @property
    def in_cxx(self) -> bool:
        """True if a unit is not C."""
        return any(unit.path.suffix != ".c" for unit in self.units)

    def text(self, node: Syntax) -> str:
        """The source of a node."""
        return self.texts[node.file][node.start : node.end]

    def parent(self, node: Syntax, *through: str) -> Syntax | None:
        """The nearest node around it that is of none of these kinds."""
        up = self.parents.get(node)
        while up is not None and up.kind in through:
            up = self.parents.get(up)
        return up

    def disagreeing(self, usr: str, name: str) -> Iterator[Refusal]:
        """Declarations that do not say of the record (of this USR and name) what another unit says: it is defined anew, or
        what hands it on is declared with other types."""
        places = {(node.file, node.start): node for node in self.declared[usr] if node.defines}
        for node in list(places.values())[1:]:
            yield Refusal(node.file, node.line, f"another definition of {name}")
        mentions = re.compile(rf"\b{re.escape(name)}\b")
        taken = {of for unit in self.units for of in unit.incomplete}
        for node in (node for of in taken for node in self.declared.get(of, ()) if node.defines and node.name == name):
            yield Refusal(node.file, node.line, f"another record called {name}")
        for nodes in self.declared.values():
            if len(nodes) < 2 or not any(mentions.search(node.shape.text) for node in nodes):
                continue
            kinds = {_plain_type(node.shape.text): node for node in reversed(nodes)}
            results = {kind.partition("(")[0] for kind in kinds}
            without = {kind for kind in kinds if kind.endswith("()")}
            if len(results) > 1 or len(kinds.keys() - without) > 1:
                for node in list(kinds.values())[1:]:
                    yield Refusal(node.file, node.line, f"{node.name} is declared with other types in another file")

    def parameters(self, function: str) -> tuple[Syntax, ...] | None:
        """The parameters of a function that is defined in the program; None where it is not."""
        node = self.functions.get(function)
        return None if node is None else tuple(child for child in node.children if child.kind == "PARM_DECL")


def _plain_type(text: str) -> str:
    """A type's text without qualifiers and the lengths of arrays, in which declarations of one thing may differ."""
    return re.sub(r"\b(const|volatile|restrict|__restrict)\b|\[\d*\]|\s", "", text)


def definition(units: Sequence[TranslationUnit], name: str) -> Syntax:
    """The definition of the record that debug information calls ``name``. Raises SourceError where there is none, or
    several."""
    found = {
        node.declares: node
        for unit in units
        for top in unit.declarations
        for node in top.walk()
        if node.kind in ("STRUCT_DECL", "CLASS_DECL", "UNION_DECL") and node.defines and _called(node, name)
    }
    if len(found) != 1:
        why = "no source that was read defines it" if not found else f"{len(found)} definitions have that name"
        raise SourceError(f"cannot rewrite {name}", why, "name the sources with --compile-commands or --sources")
    return next(iter(found.values()))


def _called(node: Syntax, name: str) -> bool:
    plain = name.removeprefix("struct ").removeprefix("class ")
    own = node.shape.text.removeprefix("struct ").removeprefix("class ")
    return own == plain or own.endswith(f"::{plain}")


def peeled(node: Syntax) -> Syntax:
    """The expression inside of parentheses and implicit conversions."""
    while node.kind in ("PAREN_EXPR", "UNEXPOSED_EXPR") and len(node.children) == 1:
        node = node.children[0]
    return node


def uncast(node: Syntax) -> Syntax:
    """The expression inside of parentheses and conversions of all kinds."""
    while node.kind in ("PAREN_EXPR", "UNEXPOSED_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR") and node.children:
        node = node.children[-1]
    return node


def arguments(call: Syntax) -> tuple[Syntax, ...]:
    """The arguments of a call; its first child is what is called."""
    return call.children[1:]
