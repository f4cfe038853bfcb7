"""Calls of library functions that are given elements as bytes, and pointers to elements that are made of others."""

from __future__ import annotations

from typing import Protocol

from layout_advise.apply.rewrite.allocations import allocated, gives_null, is_null, releases
from layout_advise.apply.rewrite.members import SIZED, TEXT, MemberAddresses
from layout_advise.apply.rewrite.program import SourceProgram, arguments, peeled, uncast
from layout_advise.apply.rewrite.syntax import Edit, Syntax
from layout_advise.apply.rewrite.target import Target


class Renderer(Protocol):
    """The parts of the rewriting of expressions that calls need."""

    program: SourceProgram
    target: Target
    members: MemberAddresses

    def refuse(self, node: Syntax, why: str) -> list[Edit]:
        """Notes that a place cannot be rewritten."""

    def helper(self, name: str) -> str:
        """The name of a generated function, which is then written."""

    def render(self, node: Syntax) -> str:
        """The new text of a node."""

    def whole(self, node: Syntax, text: str) -> list[Edit]:
        """One edit in the place of a node."""

    def is_unused(self, node: Syntax) -> bool:
        """True if nobody takes the value of an expression."""

    def edits(self, node: Syntax) -> list[Edit]:
        """The edits of a node and of all below it."""

    def element(self, node: Syntax) -> tuple[str, str] | None:
        """Pointer and index of an element."""


class LibraryCalls:
    """Rewrites calls for the expressions that it is a part of."""

    def __init__(self, expressions: Renderer) -> None:
        self.of = expressions
        self.target, self.program = expressions.target, expressions.program

    def edits(self, node: Syntax) -> list[Edit] | None:
        """The edits of a call; None where it stays as it is but for its parts."""
        given = arguments(node)
        concerned = [k for k, argument in enumerate(given) if self._is_element(argument)]
        if concerned and node.name == "free" and node.foreign and self.target.pooled:
            return self.of.whole(node, f"{self.of.helper('freed')}({self._bare(given[0])})")
        if concerned and node.name == "free" and node.foreign:
            return self.of.whole(given[0], f"{self.of.render(uncast(given[0]))}.base")
        if concerned and node.name in ("memset", "memcpy", "memmove", "fwrite", "fread") and node.foreign:
            return self._bytes(node, given, concerned)
        if len(concerned) == 1 and not self.target.pooled and releases(self.program, node.refers, concerned[0]):
            freed = given[concerned[0]]
            return [*self.of.whole(freed, f"{self._bare(freed)}.base"), *self._others(given, freed)]
        if concerned == [0] and node.name == "qsort" and node.foreign and self._one(given[2]):
            by = uncast(given[3])
            by = uncast(by.children[0]) if by.kind == "UNARY_OPERATOR" and by.operator == "&" else by
            if self.compares(by.refers):
                text = f"({self._bare(given[0])}, {self.of.render(given[1])}, {self.of.render(given[3])})"
                return self.of.whole(node, self.of.helper("sorted") + text)
            return self.of.refuse(node, "what qsort compares with is not a function for elements alone")
        for k in concerned:
            if not self.target.is_pointer(given[k].shape):
                return self.of.refuse(node, f"{node.name} is given elements as {given[k].shape.text}")
            if node.foreign:
                return self.of.refuse(node, f"{node.name}, of a library, is given elements")
        if node.foreign:
            for argument in given:
                inner = uncast(argument)
                member = self.of.target.of(inner.refers) if inner.kind == "MEMBER_REF_EXPR" else None
                array = member is not None and member.shape.form == "array"
                if array and node.name not in SIZED and node.name not in TEXT:
                    return self.of.refuse(node, f"{node.name}, of a library, is given member {inner.name}")
                if array and node.name in SIZED and not self._fits(node, argument, inner):
                    return self.of.refuse(node, f"{node.name} may go beyond member {inner.name}")
        return None

    def converted(self, node: Syntax, child: Syntax) -> list[Edit]:
        """A pointer to an element out of something else: an array, nothing, or an allocation."""
        if self.target.is_array(child.shape):
            if child.shape.count < 0:
                return self.of.refuse(node, "an array whose length is not known here")
            return self.of.whole(node, f"{self.of.helper('over')}((void *){self.of.render(child)}, {child.shape.count})")
        inner = uncast(child)
        if is_null(self.program, inner):
            up = self.program.parents.get(node)
            initial = up is not None and up.kind == "VAR_DECL"
            return self.of.whole(node, "{0}" if initial else f"({self.target.ref}){{0}}")
        if inner.kind == "CALL_EXPR" and not inner.foreign and gives_null(self.program, inner.refers):
            return self.of.whole(node, f"({self.of.render(inner)}, ({self.target.ref}){{0}})")
        if inner.kind == "CALL_EXPR" and inner.name == "realloc" and inner.foreign:
            return self.resized(node, inner)
        if self.target.pooled:
            return self._taken(node, child, inner)
        count = "1" if self.compared(child) else allocated(self.program, self.target, child, self.of.render)
        if count is None:
            return self.of.refuse(node, f"{child.shape.text} becomes {node.shape.text}, of how many elements is not known")
        bytes_at = f"(void *){self.of.render(child)}" if "const" in child.shape.text else self.of.render(child)
        return self.of.whole(node, f"{self.of.helper('over')}({bytes_at}, (size_t)({count}))")

    def _taken(self, node: Syntax, child: Syntax, call: Syntax) -> list[Edit]:
        """One element that is allocated is taken from the pool."""
        count = allocated(self.program, self.target, child, self.of.render)
        if call.kind != "CALL_EXPR" or not call.foreign or call.name not in ("malloc", "calloc"):
            return self.of.refuse(node, f"{child.shape.text} becomes {node.shape.text}, which is no element of the pool")
        if count != "1":
            return self.of.refuse(node, f"an array of {self.target.spelling}, of which the pool has none")
        return self.of.whole(node, f"{self.of.helper('taken' if call.name == 'malloc' else 'emptied')}()")

    def compares(self, function: str) -> bool:
        """True if a function of the program only serves to compare elements for ``qsort``."""
        uses = self.program.uses[function]
        return function in self.program.functions and bool(uses) and all(self._sorts(use) for use in uses)

    def _sorts(self, use: Syntax) -> bool:
        """True if a function is given to a ``qsort`` of elements."""
        call = self.program.parent(use, "UNEXPOSED_EXPR", "PAREN_EXPR", "UNARY_OPERATOR", "CSTYLE_CAST_EXPR")
        if call is None or call.kind != "CALL_EXPR" or call.name != "qsort" or not call.foreign:
            return False
        given = arguments(call)
        return use in given[3].walk() and self._is_element(given[0]) and self._one(given[2])

    def compared(self, node: Syntax) -> bool:
        """True for a parameter of a function that compares elements: it leads to one of them."""
        node = uncast(node)
        function = self.program.parents.get(node)
        while function is not None and function.kind != "FUNCTION_DECL":
            function = self.program.parents.get(function)
        if function is None or not self.compares(function.declares):
            return False
        own = {parameter.declares for parameter in self.program.parameters(function.declares) or ()}
        around = ("UNEXPOSED_EXPR", "PAREN_EXPR")
        stays = all(
            getattr(self.program.parent(use, *around), "kind", "") in ("CSTYLE_CAST_EXPR", "VAR_DECL")
            for use in self.program.uses[node.refers]
        )
        return node.refers in own and stays

    def _fits(self, call: Syntax, argument: Syntax, member: Syntax) -> bool:
        return (
            self.of.element(member.children[0]) is None and not self.target.is_pointer(member.children[0].shape)
        ) or self.of.members.fits(call, argument)

    def _is_element(self, node: Syntax) -> bool:
        """True for an address of elements, also where it became a plain one."""
        inner = node
        while not self.target.is_pointer(inner.shape) and inner.kind in ("PAREN_EXPR", "UNEXPOSED_EXPR", "CSTYLE_CAST_EXPR"):
            if not inner.children:
                return False
            inner = inner.children[-1]
        return self.target.is_pointer(inner.shape)

    def _others(self, given: tuple[Syntax, ...], rewritten: Syntax) -> list[Edit]:
        """The edits of all arguments but one."""
        return [edit for argument in given if argument is not rewritten for edit in self.of.edits(argument)]

    def _bare(self, node: Syntax) -> str:
        """The text of an address of elements without the conversion to a plain one."""
        while not self.target.is_pointer(node.shape):
            node = node.children[-1]
        return self.of.render(node)

    def _bytes(self, node: Syntax, given: tuple[Syntax, ...], concerned: list[int]) -> list[Edit] | None:
        if node.name in ("memcpy", "memmove") and concerned == [0, 1]:
            if not self.of.is_unused(node):
                return self.of.refuse(node, f"the result of {node.name} is used")
            text = f"({self._bare(given[0])}, {self._bare(given[1])}, {self.of.render(given[2])})"
            return self.of.whole(node, self.of.helper("copied") + text)
        if node.name == "memset" and concerned == [0] and self.of.is_unused(node):
            text = f"({self._bare(given[0])}, {self.of.render(given[1])}, {self.of.render(given[2])})"
            return self.of.whole(node, self.of.helper("filled") + text)
        if node.name in ("fwrite", "fread") and concerned == [0] and self._one(given[1]) and not self.target.grows:
            helper = self.of.helper("written" if node.name == "fwrite" else "read")
            text = f"({self._bare(given[0])}, {self.of.render(given[2])}, {self.of.render(given[3])})"
            return self.of.whole(node, helper + text)
        return self.of.refuse(node, f"{node.name} takes {self.target.spelling} as bytes")

    def _one(self, size: Syntax) -> bool:
        """True for the size of one element."""
        size = uncast(size)
        if size.kind != "CXX_UNARY_EXPR" or not size.children or "*)" in "".join(self.program.text(size).split()):
            return False
        return self.target.is_value(peeled(size.children[-1]).shape)

    def resized(self, node: Syntax, call: Syntax) -> list[Edit]:
        """``realloc``: the parts move, each by itself."""
        old, size = arguments(call)
        product = uncast(size)
        if not self._is_element(old) or product.kind != "BINARY_OPERATOR" or product.operator != "*":
            return self.of.refuse(node, "realloc of bytes that are no number of elements")
        for one, other in (product.children, product.children[::-1]):
            if self._one(one):
                return self.of.whole(node, f"{self.of.helper('resized')}({self._bare(old)}, {self.of.render(other)})")
        return self.of.refuse(node, "realloc of bytes that are no number of elements")
