"""A translation unit as frozen nodes: what libclang says of it, with every place as offsets in the file as it is spelt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

STEPS = {"++": "1", "--": "-1", "post++": "1", "post--": "-1"}
COMPARED = ("<", ">", "<=", ">=")
CARRIERS = {"DECL_REF_EXPR", "MEMBER_REF_EXPR", "CALL_EXPR", "PAREN_EXPR", "UNEXPOSED_EXPR", "CONDITIONAL_OPERATOR",
            "ARRAY_SUBSCRIPT_EXPR", "UNARY_OPERATOR", "BINARY_OPERATOR", "INIT_LIST_EXPR", "COMPOUND_LITERAL_EXPR",
            "VAR_DECL", "PARM_DECL", "FIELD_DECL", "TYPEDEF_DECL", "TYPE_REF", "STRUCT_DECL", "MEMBER_REF"}  # fmt: skip
"""Kinds of nodes whose type may be the record, or a pointer to it."""
HOLDERS = {"COMPOUND_STMT", "DECL_STMT", "IF_STMT", "FOR_STMT", "WHILE_STMT", "DO_STMT", "RETURN_STMT", "VAR_DECL",
"CALL_EXPR", "INIT_LIST_EXPR", "CXX_UNARY_EXPR", "FUNCTION_DECL", "PARM_DECL", "FIELD_DECL", "TYPEDEF_DECL", "STRUCT_DECL",
           "CASE_STMT", "DEFAULT_STMT", "LABEL_STMT", "SWITCH_STMT", "COMPOUND_LITERAL_EXPR"} | CARRIERS  # fmt: skip
"""Kinds of nodes that may have such parts."""


@dataclass(frozen=True, slots=True)
class CType:
    """A type, as far as the rewriting needs it: ``form`` is ``record``, ``pointer``, ``array``, ``function`` or ``other``;
    ``of`` what it points to or is made of; ``record`` the declaration's unified symbol (USR); ``text`` as libclang spells
    it."""

    form: str
    text: str
    of: CType | None = None
    record: str = ""
    count: int = 0
    size: int = 0
    align: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Syntax:
    """One node. ``start`` and ``end`` are offsets in ``file``; ``name_at`` is where a declaration's name stands;
    ``refers`` is the USR of what is named, ``declares`` of what is declared. ``in_macro``: a macro's body
    made it, not its arguments."""

    kind: str
    name: str
    shape: CType
    file: Path
    start: int
    end: int
    line: int
    children: tuple[Syntax, ...]
    operator: str = ""
    refers: str = ""
    declares: str = ""
    name_at: int = -1
    in_macro: bool = False
    defines: bool = False
    foreign: bool = False
    """It names something that a system header declares."""
    offset: int = -1
    """Bytes, of a field in its record."""
    bits: int = 0
    """How many, of a bit field."""
    bit: int = -1
    """Bits in front of a field in its record."""
    bases: tuple[Syntax, ...] = ()
    """The records of the program that a class derives from: not among its children, as they stand elsewhere."""

    def members(self) -> Iterator[Syntax]:
        """What is declared in a record: in those that it derives from, then in itself."""
        for base in self.bases:
            yield from base.members()
        yield from self.children

    def walk(self) -> Iterator[Syntax]:
        """The node and all below it, outer ones first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class TranslationUnit:
    """A parsed translation unit: its top-level declarations outside of system headers, and the text of their files."""

    path: Path
    declarations: tuple[Syntax, ...]
    texts: dict[Path, str] = field(repr=False)
    expansions: dict[tuple[Path, int], int] = field(default_factory=dict, repr=False)
    """Where uses of macros begin, and end."""
    incomplete: frozenset[str] = frozenset()
    """Records that have no definition here, and were taken for those of their name that only a typedef names."""


@dataclass(frozen=True, slots=True, order=True)
class MacroUse:
    """A use of a macro in a file, with its arguments."""

    file: Path
    start: int
    end: int


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replaces the characters from ``start`` to ``end`` of a file by ``text``."""

    start: int
    end: int
    text: str


def applied(text: str, edits: list[Edit], offset: int = 0) -> str:
    """``text``, which begins at ``offset`` of its file, after edits that do not overlap."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits):
        parts += [text[at : edit.start - offset], edit.text]
        at = edit.end - offset
    return "".join([*parts, text[at:]])
