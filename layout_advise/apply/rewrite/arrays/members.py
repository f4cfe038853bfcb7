"""A member that is an array whose dimensions change: what could see in which order its numbers lie in the record."""

from __future__ import annotations

import re
from collections.abc import Iterator

from layout_advise.apply.rewrite.program import Refusal, SourceProgram, arguments, peeled, uncast
from layout_advise.apply.rewrite.syntax import CType, Syntax

RECORDS = ("STRUCT_DECL", "CLASS_DECL")
CONVERSIONS = ("UNEXPOSED_EXPR", "CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR")
WHOLE = {"free": 0, "realloc": 0, "reallocarray": 0, "memset": 2, "memcpy": 2, "memmove": 2}
"""Library functions to which the order is all one, and which argument must be the size of whole records; 0: none."""
NOTHING = {"{0}", "{}", "{{0}}", "{0.0}", "{{0.0}}"}
"""Initialisers that set all elements to zero."""


def seen_through_records(program: SourceProgram, member: Syntax) -> Iterator[Refusal]:
    """Places that initialise records with the ``member``, or take them as bytes, or name it without a known type."""
    record = program.parents.get(member)
    if record is None or record.kind not in RECORDS:
        kind = "a union" if record is not None and record.kind == "UNION_DECL" else "a template"
        yield Refusal(member.file, member.line, f"{member.name} is a member of {kind}")
        return
    own = _Holders(program, record.declares)
    for unit in program.units:
        for top in unit.declarations:
            for node in top.walk():
                if why := own.why(node, member):
                    yield Refusal(node.file, node.line, why, node.start if node.in_macro else -1)


class _Holders:
    """The records that hold the one with this USR or derive from it, itself among them."""

    def __init__(self, program: SourceProgram, usr: str) -> None:
        self.program, self.usrs = program, {usr}
        fields = [node for nodes in program.fields.values() for node in nodes]
        records = [node for nodes in program.declared.values() for node in nodes if node.kind in RECORDS]
        while True:
            around = {up.declares for f in fields if self._is_value(f.shape) and (up := program.parents.get(f)) is not None}
            around |= {one.declares for one in records if any(base.declares in self.usrs for base in one.bases)}
            if around <= self.usrs:
                break
            self.usrs |= around

    def _is_value(self, shape: CType | None) -> bool:
        while shape is not None and shape.form == "array":
            shape = shape.of
        return shape is not None and shape.form == "record" and shape.record in self.usrs

    def _is_pointer(self, shape: CType) -> bool:
        return shape.form == "pointer" and self._is_value(shape.of)

    def why(self, node: Syntax, member: Syntax) -> str:
        """Why this node stands in the way; empty where it does not."""
        if node.kind in ("INIT_LIST_EXPR", "COMPOUND_LITERAL_EXPR") and self._is_value(node.shape):
            given = node if node.kind == "INIT_LIST_EXPR" else node.children[-1]
            return "" if "".join(self.program.text(given).split()) in NOTHING else f"an initialiser of {node.shape.text}"
        if node.kind == "MEMBER_REF" and node.refers == member.declares:
            return f"{member.name} is named apart from an element of it"
        if node.kind == "MEMBER_REF_EXPR" and not node.refers and re.search(rf"\b{member.name}$", self.program.text(node)):
            return f"a template uses {member.name}"
        if node.kind in CONVERSIONS and node.children and node.shape.form == "pointer":
            return self._conversion(node, node.children[-1].shape)
        return ""

    def _conversion(self, node: Syntax, before: CType) -> str:
        into = self._is_pointer(node.shape)
        if into == self._is_pointer(before) or before.form not in ("pointer", "array"):
            return ""
        if into:
            taken = before.form == "array" or (before.of is not None and before.of.form != "void")
            return f"{before.text} becomes {node.shape.text}" if taken and not self._is_value(before) else ""
        call = self.program.parent(node, *CONVERSIONS, "PAREN_EXPR")
        if call is not None and call.kind == "CALL_EXPR" and call.foreign and call.name in WHOLE:
            return "" if self._takes_whole(call) else f"{call.name} takes a part of {before.text} as bytes"
        up = call.operator if call is not None else ""
        return "" if up in ("==", "!=", "!") else f"{before.text} is taken as bytes"

    def _takes_whole(self, call: Syntax) -> bool:
        given, size = arguments(call), WHOLE[call.name]
        if not size:
            return True
        ends = given[:1] if call.name == "memset" else given[:2]
        return len(given) == 3 and all(self._is_pointer(uncast(end).shape) for end in ends) and self._is_size(given[size])

    def _is_size(self, node: Syntax) -> bool:
        """``sizeof`` a record, or so many times that."""
        node = peeled(node)
        if node.kind == "BINARY_OPERATOR" and node.operator == "*":
            return any(self._is_size(side) for side in node.children)
        if node.kind != "CXX_UNARY_EXPR" or not self.program.text(node).startswith("sizeof") or not node.children:
            return False
        typed = node.children[-1].kind == "TYPE_REF"
        return self._is_value(peeled(node.children[-1]).shape) and not (typed and "*" in self.program.text(node))
