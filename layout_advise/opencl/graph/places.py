"""Expressions that name memory of the host's buffers: which record and member they mean, and how many bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layout_advise.apply.rewrite.program import arguments, peeled, uncast
from layout_advise.apply.rewrite.syntax import CType, Syntax
from layout_advise.opencl.source.kernels import BufferRecord, KernelProgram, space_of

SHARED = ("global", "constant")
"""Address spaces that the host's buffers lie in."""


@dataclass(frozen=True, slots=True)
class Place:
    """Memory of a buffer: a ``member`` of a ``record``, the whole record (no member), or something else (no record)."""

    record: BufferRecord | None
    member: str | None
    bytes: int


class MemoryPlaces:
    """Knows the records of one program and the pointers that lead into them."""

    def __init__(self, program: KernelProgram) -> None:
        self.program = program.program
        self.records = {record.usr: record for record in program.records}
        self.members = {child.declares: child.name for record in program.records for child in record.node.children}
        self.pointers = {
            node.declares: node.children[-1]
            for unit in self.program.units
            for top in unit.declarations
            for node in top.walk()
            if node.kind == "VAR_DECL" and node.shape.form == "pointer" and node.children
        }

    def of(self, node: Syntax) -> Place | None:
        """The memory that an expression names; None for values, and for memory of a work item or group."""
        if node.kind in ("PAREN_EXPR", "UNEXPOSED_EXPR") and len(node.children) == 1:
            inner = self.of(node.children[0])
            if inner is None or (
                node.shape.form == "pointer" and inner.member is not None and inner.bytes != node.shape.size
            ):
                return None  # an array that becomes its address
            part = node.shape.size
            return replace(inner, bytes=min(part, inner.bytes)) if part and node.shape.form == "other" else inner
        if node.kind == "MEMBER_REF_EXPR" and node.children:
            return self._member(node)
        if node.kind == "ARRAY_SUBSCRIPT_EXPR":
            return self._pointed(node, node.children[0])
        if node.kind == "UNARY_OPERATOR" and node.operator == "*":
            return self._pointed(node, node.children[0])
        return None

    def _member(self, node: Syntax) -> Place | None:
        base = node.children[0]
        if base.shape.form == "pointer":
            if not self._is_shared(base.shape):
                return None
            record = self.records.get(base.shape.of.record) if base.shape.of is not None else None
            return Place(record, node.name, node.shape.size) if record is not None else Place(None, None, node.shape.size)
        outer = self.of(base)
        if outer is None:
            return None
        return replace(outer, member=outer.member or node.name if outer.record is not None else None, bytes=node.shape.size)

    def _pointed(self, node: Syntax, pointer: Syntax) -> Place | None:
        inner = uncast(pointer)
        if inner.shape.form == "array":
            outer = self.of(inner)
            return None if outer is None else replace(outer, bytes=node.shape.size)
        if not self._is_shared(pointer.shape):
            return None
        known = self._leads_to(inner)
        if known is not None and known.member is not None:
            return replace(known, bytes=node.shape.size)
        record = self.records.get(node.shape.record) if node.shape.form == "record" else None
        return Place(record, None, node.shape.size)

    def _leads_to(self, node: Syntax) -> Place | None:
        """The member that a pointer was made from: ``&p[i].m``, or a variable that begins with it."""
        seen = 0
        while node.kind == "DECL_REF_EXPR" and node.refers in self.pointers and seen < 8:
            node, seen = uncast(self.pointers[node.refers]), seen + 1
        if node.kind == "UNARY_OPERATOR" and node.operator == "&":
            return self.of(peeled(node.children[0]))
        return self.of(node) if node.shape.form == "array" else None

    def _is_shared(self, pointer: CType) -> bool:
        return pointer.of is not None and space_of(pointer.of) in SHARED

    def used_of_variable(self, usr: str, seen: frozenset[str] = frozenset()) -> frozenset[str] | None:
        """The members of a private copy of a record that are read; None for all of them."""
        found: frozenset[str] = frozenset()
        for use in self.program.uses[usr]:
            used = self._used(use, seen | {usr})
            if used is None:
                return None
            found |= used
        return found

    def _used(self, use: Syntax, seen: frozenset[str]) -> frozenset[str] | None:
        up = self.program.parent(use, "PAREN_EXPR")
        if up is not None and up.kind == "MEMBER_REF_EXPR":
            return frozenset() if self._is_overwritten(up) else frozenset((self.members.get(up.refers, up.name),))
        if up is not None and up.kind == "BINARY_OPERATOR" and up.operator == "=" and peeled(up.children[0]) is use:
            return frozenset()
        call = self.program.parent(use, "PAREN_EXPR", "UNEXPOSED_EXPR")
        if call is not None and call.kind == "CALL_EXPR":
            parameters = self.program.parameters(call.refers) or ()
            for number, argument in enumerate(arguments(call)):
                if peeled(argument) is use and number < len(parameters) and parameters[number].declares not in seen:
                    return self.used_of_variable(parameters[number].declares, seen)
        return None

    def _is_overwritten(self, member: Syntax) -> bool:
        up = self.program.parents.get(member)
        return up is not None and up.kind == "BINARY_OPERATOR" and up.operator == "=" and up.children[0] is member
