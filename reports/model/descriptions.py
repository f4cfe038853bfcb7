"""Puts a description of every property into the report's JSON schema.

It is the docstring below the field in its class, or what the docstring of the class says where it names the field.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, get_args

import msgspec

_PART = re.compile(r"(?<=[.;:])\s+")
"""Ends of the parts of a docstring."""


def described(schema: dict[str, Any], root: type[msgspec.Struct]) -> dict[str, Any]:
    """``schema``, made of ``root``, with a ``description`` in each property of each class that says something of it."""
    texts = {one.__name__: field_texts(one) for one in structs_of(root)}
    parts = {name: _with_texts(part, texts.get(name, {})) for name, part in schema.get("$defs", {}).items()}
    return schema | {"$defs": parts}


def _with_texts(part: dict[str, Any], texts: dict[str, str]) -> dict[str, Any]:
    if "description" in part:  # msgspec has docstrings as they are indented, from 0.23 on without
        part = part | {"description": inspect.cleandoc(part["description"])}
    if "properties" not in part:
        return part
    told = {
        name: value | ({"description": texts[name]} if name in texts else {}) for name, value in part["properties"].items()
    }
    return part | {"properties": told}


def structs_of(root: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """``root`` and all classes of records that its fields hold, each once."""
    found: dict[type[msgspec.Struct], None] = {}
    left = [root]
    while left:
        one = left.pop()
        if one not in found:
            found[one] = None
            left += [inner for field in msgspec.structs.fields(one) for inner in _inside(field.type)]
    return list(found)


def _inside(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """The classes of records in a type: itself, or the arguments of ``tuple`` or a union."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
    for one in get_args(kind):
        yield from _inside(one)


def field_texts(kind: type[msgspec.Struct]) -> dict[str, str]:
    """By name what is written of the fields of a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(tree, ast.ClassDef)
    about = [part for part in _PART.split(inspect.getdoc(kind) or "") if part]
    found = {}
    for field, below in pairwise([*tree.body, None]):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        name = field.target.id
        own = _docstring(below)
        text = own or " ".join(_named(about, name))
        if text:
            found[name] = re.sub(r"\s+", " ", text.replace("``", "`"))
    return found


def _docstring(node: ast.stmt | None) -> str:
    value = node.value if isinstance(node, ast.Expr) else None
    return inspect.cleandoc(value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _named(parts: list[str], name: str) -> Iterator[str]:
    """The parts that name the field, each with the one after it where it ends in a colon."""
    for number, part in enumerate(parts):
        if f"``{name}``" in part:
            yield part
            if part.endswith(":") and number + 1 < len(parts):
                yield parts[number + 1]
