"""The edits of expressions where only the order of the members changes: pointers stay pointers, and bytes must not be
read."""

from __future__ import annotations

from layout_advise.apply.rewrite.aligned import AlignedMemory
from layout_advise.apply.rewrite.allocations import releases
from layout_advise.apply.rewrite.members import MemberAddresses
from layout_advise.apply.rewrite.program import Refusal, SourceProgram, arguments
from layout_advise.apply.rewrite.record import initialiser_edits
from layout_advise.apply.rewrite.syntax import Edit, Syntax
from layout_advise.apply.rewrite.target import Target

UNSEEN = {"free", "malloc", "calloc", "realloc", "aligned_alloc", "memset", "memcpy", "memmove", "qsort", "bsearch"}
"""Library functions that treat elements as bytes without a meaning."""


class OrderedExpressions:
    """Initialisers get names; conversions of elements to bytes are refused. Of padded elements, allocations are aligned."""

    def __init__(self, program: SourceProgram, target: Target) -> None:
        self.program, self.target = program, target
        self.members = MemberAddresses(program)
        self.refusals: set[Refusal] = set()
        self.used: set[str] = set()
        self.memory = AlignedMemory(program, target) if target.aligned else None

    def edits(self, node: Syntax) -> list[Edit]:
        """The edits of a node and of all below it."""
        found: list[Edit] = []
        for part in node.walk():
            if self.memory is not None:
                found += self.memory.edits(part)
            if part.kind == "INIT_LIST_EXPR":
                made = initialiser_edits(self.program, self.target, part)
                if isinstance(made, Refusal):
                    self.refusals.add(made)
                else:
                    found += made
            elif why := self._obstacle(part):
                self.refusals.add(Refusal(part.file, part.line, why))
        if self.memory is not None:
            self.refusals |= self.memory.refusals
            self.used |= self.memory.used
        return sorted(set(found))

    def _obstacle(self, node: Syntax) -> str | None:
        target = self.target
        if node.kind == "UNION_DECL" and any(target.concerns(c.shape) for c in node.children if c.kind == "FIELD_DECL"):
            return "it is part of a union"
        if node.kind == "UNARY_OPERATOR" and node.operator == "&":
            child = node.children[0]
            while child.kind == "PAREN_EXPR":
                child = child.children[0]
            if child.kind == "MEMBER_REF_EXPR" and target.of(child.refers) is not None and not self.members.stays(node):
                return f"the address of member {child.name} goes where it cannot be followed"
        if node.kind in ("UNEXPOSED_EXPR", "CSTYLE_CAST_EXPR") and node.children:
            child = node.children[-1]
            if target.is_pointer(child.shape) and node.shape.form == "pointer" and not target.is_pointer(node.shape):
                return self._converted(node)
            if target.is_pointer(node.shape) and child.shape.form == "pointer" and child.shape.of is not None:
                from_other = not target.is_pointer(child.shape) and child.shape.of.form != "void"
                return f"{child.shape.text} becomes {node.shape.text}" if from_other else None
        return None

    def _converted(self, node: Syntax) -> str | None:
        up = self.program.parent(node, "UNEXPOSED_EXPR", "PAREN_EXPR", "CSTYLE_CAST_EXPR")
        if up is not None and up.kind == "CALL_EXPR" and up.foreign:
            known = up.name in UNSEEN and (up.name not in ("memcpy", "memmove") or self._both(up))
            return None if known else f"{up.name} takes {self.target.spelling} as bytes"
        if up is not None and up.kind == "CALL_EXPR":
            given = [k for k, argument in enumerate(arguments(up)) if any(part is node for part in argument.walk())]
            return None if given and releases(self.program, up.refers, given[0]) else f"{up.name} is given elements"
        if up is not None and up.kind in ("BINARY_OPERATOR", "CONDITIONAL_OPERATOR"):
            return None
        return f"a pointer to an element becomes {node.shape.text}"

    def _both(self, call: Syntax) -> bool:
        """True if both ends of a copy are elements."""
        ends = arguments(call)[:2]
        return all(any(self.target.is_pointer(node.shape) for node in end.walk()) for end in ends)
