"""One mention of an array: an element of it, its size, an argument of a call, or something that cannot be followed."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.apply.rewrite.program import SourceProgram, arguments, peeled
from layout_advise.apply.rewrite.syntax import CType, Syntax

THROUGH = ("PAREN_EXPR", "UNEXPOSED_EXPR")
READERS = {"scanf", "fscanf", "sscanf"}
"""Library functions that write to what they are given the address of, and nowhere else."""


@dataclass(frozen=True, slots=True)
class ArrayUse:
    """``subscripts`` from the inner to the outer one, as many as the array has dimensions, or none. Without any: the array
    as a whole, of which ``sized`` takes the size, or that is number ``position`` of the arguments of ``call``. ``why``: it
    cannot be followed."""

    node: Syntax
    subscripts: tuple[Syntax, ...] = ()
    sized: bool = False
    call: Syntax | None = None
    position: int = -1
    why: str = ""


def use_of(program: SourceProgram, node: Syntax, rank: int) -> ArrayUse:
    """The kind of mention that ``node`` is, of an array of ``rank`` dimensions."""
    subscripts: list[Syntax] = []
    inner, up = node, program.parents.get(node)
    while up is not None and len(subscripts) < rank:
        if up.kind == "ARRAY_SUBSCRIPT_EXPR" and up.children[0] is inner:
            subscripts.append(up)
        elif up.kind not in THROUGH:
            break
        inner, up = up, program.parents.get(up)
    if len(subscripts) == rank:
        return ArrayUse(node, tuple(subscripts), why=_address(program, subscripts[-1]))
    if subscripts or up is None:
        return ArrayUse(node, why=f"a row of {node.name} is used as a whole")
    if up.kind == "CXX_UNARY_EXPR":
        return ArrayUse(node, sized=True)
    if up.kind == "CALL_EXPR":
        given = [k for k, argument in enumerate(arguments(up)) if argument is inner]
        if given:
            return ArrayUse(node, call=up, position=given[0])
    return ArrayUse(node, why=f"{node.name} is used as a whole")


def _address(program: SourceProgram, element: Syntax) -> str:
    """Why an element cannot be followed whose address is taken; empty where it is not, or is of no use elsewhere."""
    up = program.parent(element, "PAREN_EXPR")
    if up is None or up.kind != "UNARY_OPERATOR" or up.operator != "&":
        return ""
    call = program.parent(up, *THROUGH)
    reads = call is not None and call.kind == "CALL_EXPR" and call.foreign and call.name in READERS
    return "" if reads else "the address of an element goes on, and may be used to reach others"


def is_size_of(program: SourceProgram, node: Syntax, usrs: frozenset[str]) -> bool:
    """True for ``sizeof`` one of the arrays, as a whole."""
    node = peeled(node)
    if node.kind != "CXX_UNARY_EXPR" or not node.children or not program.text(node).startswith("sizeof"):
        return False
    inner = peeled(node.children[-1])
    return inner.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR") and inner.refers in usrs and inner.shape.form == "array"


def extents_of(shape: CType) -> tuple[int, ...]:
    """The lengths of an array's dimensions, outermost first; empty for what is no array."""
    found = []
    while shape.form == "array" and shape.of is not None:
        found.append(shape.count)
        shape = shape.of
    return tuple(found)
