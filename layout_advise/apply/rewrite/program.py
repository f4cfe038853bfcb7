"""All translation units together: who stands around a node, what is defined where, and which names are used where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.apply.rewrite.syntax import Syntax, TranslationUnit


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """A place that cannot be rewritten safely, and why."""

    file: Path
    line: int
    why: str


class SourceProgram:
    """An index over the nodes of all units. A header that several units include is there several times."""

    def __init__(self, units: Sequence[TranslationUnit]) -> None:
        self.units = tuple(units)
        self.texts: dict[Path, str] = {}
        self.parents: dict[Syntax, Syntax] = {}
        self.uses: defaultdict[str, list[Syntax]] = defaultdict(list)
        self.functions: dict[str, Syntax] = {}
        for unit in units:
            self.texts.update(unit.texts)
            for top in unit.declarations:
                self._index(top)

    def _index(self, node: Syntax) -> None:
        if node.refers and node.kind in ("DECL_REF_EXPR", "CALL_EXPR"):
            self.uses[node.refers].append(node)
        if node.declares and node.defines and node.kind in ("FUNCTION_DECL", "CXX_METHOD"):
            self.functions[node.declares] = node
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

    def parameters(self, function: str) -> tuple[Syntax, ...] | None:
        """The parameters of a function that is defined in the program; None where it is not."""
        node = self.functions.get(function)
        return None if node is None else tuple(child for child in node.children if child.kind == "PARM_DECL")


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
