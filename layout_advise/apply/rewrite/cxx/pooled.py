"""What a pool of elements in C++ does not serve: a number has no neighbours, and an element that is a variable no number."""

from __future__ import annotations

from pathlib import Path

from layout_advise.apply.rewrite.cxx.methods import Methods
from layout_advise.apply.rewrite.program import peeled
from layout_advise.apply.rewrite.syntax import Edit, Syntax
from layout_advise.apply.rewrite.target import Target

DECLARATIONS = ("VAR_DECL", "FIELD_DECL", "PARM_DECL")
NEIGHBOURS = {"+", "-", "+=", "-=", "++", "--", "post++", "post--", "<", ">", "<=", ">="}


def unserved(target: Target, node: Syntax) -> str:
    """Why the pool does not serve this node; empty where it does."""
    if node.kind in DECLARATIONS:
        if target.is_array(node.shape):
            return f"{node.name} is an array of {target.spelling}, of which the pool has none"
        return f"{node.name} is an element that is a variable, and not in the pool" if target.is_value(node.shape) else ""
    neighbours = node.kind == "ARRAY_SUBSCRIPT_EXPR" or node.operator in NEIGHBOURS
    if neighbours and any(target.is_pointer(peeled(one).shape) for one in node.children):
        return f"elements of {target.spelling} are reached as neighbours, or compared by their places"
    return ""


def without_originals(methods: Methods, found: dict[Path, set[Edit]]) -> None:
    """Takes the record's own methods away, of which there are copies in what stands for a reference: no element is there by
    itself for which they could be called, and what they return may be a link."""
    for node in (*methods.within.values(), *methods.outside.values(), *(methods.declared[usr] for usr in methods.outside)):
        if node.declares.startswith(f"{methods.target.usr}@"):
            inside = {edit for edit in found[node.file] if node.start <= edit.start and edit.end <= node.end}
            found[node.file] -= inside
            found[node.file].add(Edit(node.start, node.end, ""))
