"""The edits of expressions for a split layout, where what stands for a pointer is a base, a count and an index.

Every node whose type concerns the record has to be of a form that is known here; else it is refused with its place.
"""

from __future__ import annotations

from layout_advise.apply.rewrite.allocations import is_null
from layout_advise.apply.rewrite.calls import LibraryCalls
from layout_advise.apply.rewrite.fields import RecordField
from layout_advise.apply.rewrite.helpers.pool import serves
from layout_advise.apply.rewrite.members import MemberAddresses
from layout_advise.apply.rewrite.program import Refusal, SourceProgram, peeled, uncast
from layout_advise.apply.rewrite.record import initialiser_edits
from layout_advise.apply.rewrite.syntax import CARRIERS, COMPARED, HOLDERS, STEPS, Edit, Syntax, applied
from layout_advise.apply.rewrite.target import Target
from layout_advise.apply.rewrite.type_mentions import type_edits


class SplitExpressions:
    """Makes the edits of one program for one target; gathers ``refusals`` and the helpers ``used``."""

    def __init__(self, program: SourceProgram, target: Target) -> None:
        self.program, self.target = program, target
        self.members = MemberAddresses(program)
        self.calls = LibraryCalls(self)
        self.refusals: set[Refusal] = set()
        self.used: set[str] = set()
        self.now: Syntax | None = None
        """The node whose edits are made."""

    def refuse(self, node: Syntax, why: str) -> list[Edit]:
        """Notes that a place cannot be rewritten."""
        self.refusals.add(Refusal(node.file, node.line, why, node.start if node.in_macro else -1))
        return []

    def helper(self, name: str) -> str:
        """The name of a generated function, which is then written. Of a pool there are only some."""
        if self.now is not None and not serves(self.target, name):
            self.refuse(self.now, f"elements of {self.target.spelling} as neighbours, which those in a pool are not")
        self.used.add(name)
        return f"{self.target.prefix}_{name}"

    def render(self, node: Syntax) -> str:
        """The new text of a node."""
        up = self.program.parent(node, "UNEXPOSED_EXPR") if node.in_macro else None
        if up is not None and up.in_macro:  # the text is that of the whole macro
            self.refuse(node, "a macro builds the access")
        return applied(self.program.text(node), self.edits(node), node.start)

    def whole(self, node: Syntax, text: str) -> list[Edit]:
        """One edit in the place of a node, unless a macro made that."""
        if node.in_macro and self.program.text(node) != "NULL":
            return self.refuse(node, "a macro builds the access")
        before = self.program.texts[node.file][max(0, node.start - 1) : node.start]
        joins = (before.isalnum() or before == "_") and (text[:1].isalnum() or text[:1] == "_")
        return [Edit(node.start, node.end, f" {text}" if joins else text)]

    def edits(self, node: Syntax) -> list[Edit]:
        """The edits of a node and of all below it."""
        of, outer = getattr(self, f"_{node.kind.lower()}", None), self.now
        self.now = node
        made = of(node) if of is not None else None
        made = self._inner(node) if made is None else made
        self.now = outer
        return made

    def _inner(self, node: Syntax) -> list[Edit]:
        """The edits of the parts of a node that itself stays as it is."""
        target = self.target
        if target.concerns(node.shape) and node.kind not in CARRIERS:
            return self.refuse(node, f"{node.kind.lower().replace('_', ' ')} of {node.shape.text}")
        found: list[Edit] = []
        for child in node.children:
            if target.concerns(child.shape) and node.kind not in HOLDERS and node.kind != "CSTYLE_CAST_EXPR":
                self.refuse(child, f"{node.kind.lower().replace('_', ' ')} with {child.shape.text}")
            if self.is_condition(node, child):
                found += self.whole(child, self.there(child))
            else:
                found += self.edits(child)
        return sorted(set(found))

    def is_condition(self, node: Syntax, child: Syntax) -> bool:
        """True if a pointer to the record is asked for being there."""
        if not self.target.is_pointer(child.shape) or not node.children:
            return False
        if node.kind in ("IF_STMT", "WHILE_STMT", "CONDITIONAL_OPERATOR"):
            return child is node.children[0]
        if node.kind == "DO_STMT":
            return child is node.children[-1]
        if node.kind == "FOR_STMT":
            return child is not node.children[-1] and self.program.texts[node.file][node.start : child.start].count(";") == 1
        return node.operator in ("!", "&&", "||")

    def there(self, node: Syntax) -> str:
        """C that asks whether a pointer to elements is there."""
        return f"{self.helper('there')}({self.render(node)})"

    # --- elements

    def element(self, node: Syntax) -> tuple[str, str] | None:
        """What stands for the pointer, and the index: of ``p[i]`` and ``*p``; None for anything else."""
        node = peeled(node)
        if not self.target.is_value(node.shape):
            return None
        if node.kind == "ARRAY_SUBSCRIPT_EXPR":
            base, index = node.children
            if not self.target.is_pointer(base.shape):
                base, index = index, base
            if self.target.pooled and self.program.text(index).strip() != "0":
                self.refuse(node, f"an array of {self.target.spelling}, of which the pool has none")
            return self.render(base), self.render(index)
        if node.kind == "UNARY_OPERATOR" and node.operator == "*":
            inner = peeled(node.children[0])
            sum_ = inner.kind == "BINARY_OPERATOR" and inner.operator == "+" and not self.target.pooled
            if sum_ and self.target.is_pointer(inner.children[0].shape):
                return self.render(inner.children[0]), self.render(inner.children[1])
            return self.render(node.children[0]), "0"
        return None

    def place(self, field: RecordField, element: tuple[str, str]) -> str:
        """The address of a field of an element."""
        return f"{self.helper(self.target.accessor(field))}({element[0]}, {element[1]})"

    def _member(self, node: Syntax) -> tuple[RecordField, tuple[str, str]] | None:
        field = self.target.of(node.refers) if node.kind == "MEMBER_REF_EXPR" and node.children else None
        if field is None:
            return None
        base = node.children[0]
        if self.target.is_pointer(base.shape):
            inner = peeled(base)
            if inner.kind == "UNARY_OPERATOR" and inner.operator == "&" and (of := self.element(inner.children[0])):
                return field, of
            return field, (self.render(base), "0")
        found = self.element(base)
        return None if found is None else (field, found)

    def _member_ref_expr(self, node: Syntax) -> list[Edit] | None:
        found = self._member(node)
        if found is None:
            return None
        if found[0].apart:
            return self.refuse(node, f"member {node.name} as a whole, whose parts are apart")
        if found[0].bits:
            return self.whole(node, f"{self.place(*found)}->{node.name}")
        return self.whole(node, f"(*{self.place(*found)})")

    def part(self, node: Syntax) -> str | None:
        """The address of a number of a member that is taken apart: of ``p[i].at[c]``; None for anything else."""
        node = peeled(node)
        whole = self._member(peeled(node.children[0])) if node.kind == "ARRAY_SUBSCRIPT_EXPR" else None
        if whole is None or not whole[0].apart:
            return None
        (pointer, index), name = whole[1], self.helper(self.target.accessor(whole[0]))
        return f"{name}({pointer}, {index}, {self.render(node.children[1])})"

    def _array_subscript_expr(self, node: Syntax) -> list[Edit] | None:
        if (part := self.part(node)) is not None:
            return self.whole(node, f"(*{part})")
        found = self.element(node)
        if found is None:
            return None
        return self.whole(node, f"{self.helper('load')}({found[0]}, {found[1]})")

    def _cxx_unary_expr(self, node: Syntax) -> list[Edit] | None:
        member = self._member(peeled(node.children[-1])) if node.children else None
        if member is not None and member[0].apart:
            return self.whole(node, f"sizeof((({self.target.spelling} *)0)->{member[0].name})")
        if not node.children or self.element(node.children[-1]) is None:
            return None
        return self.whole(node, f"sizeof({self.target.spelling})")

    # --- operators

    def _unary_operator(self, node: Syntax) -> list[Edit] | None:
        child = node.children[0]
        if node.operator == "&":
            return self._address(node, peeled(child))
        if node.operator == "*" and self.target.is_value(node.shape):
            return self._array_subscript_expr(node)
        if node.operator in STEPS and self.target.is_pointer(child.shape):
            step = "stepped" if not node.operator.startswith("post") or self.is_unused(node) else "stepping"
            return self.whole(node, f"{self.helper(step)}(&{self.render(child)}, {STEPS[node.operator]})")
        return None

    def is_unused(self, node: Syntax) -> bool:
        """True if nobody takes the value of an expression."""
        up = self.program.parents.get(node)
        if up is not None and up.kind == "FOR_STMT":
            return not self.is_condition(up, node)
        return up is not None and up.kind in ("COMPOUND_STMT", "IF_STMT", "WHILE_STMT", "CASE_STMT", "LABEL_STMT")

    def _address(self, node: Syntax, of: Syntax) -> list[Edit] | None:
        if self.target.is_value(of.shape):
            found = self.element(of)
            if found is None:
                return self.whole(node, f"{self.helper('over')}((void *)&{self.render(of)}, 1)")
            return self.whole(node, found[0] if found[1] == "0" else f"{self.helper('plus')}({found[0]}, {found[1]})")
        if self.target.is_array(of.shape):
            return self.refuse(node, "address of a whole array")
        if (part := self.part(of)) is not None:
            if not self.members.stays(node):
                return self.refuse(node, "the address of a part of a member goes where it cannot be followed")
            return self.whole(node, part)
        member = self._member(of)
        if member is not None and member[0].apart:
            return self.refuse(node, f"member {member[0].name} as a whole, whose parts are apart")
        if member is not None:
            if not self.members.stays(node):
                return self.refuse(node, f"the address of member {member[0].name} goes where it cannot be followed")
            return self.whole(node, self.place(*member))
        return None

    def _binary_operator(self, node: Syntax) -> list[Edit] | None:
        left, right = node.children
        pointers = [self.target.is_pointer(side.shape) for side in (left, right)]
        if node.operator == "=" and (found := self.element(left)) is not None:
            return self.whole(node, f"{self.helper('store')}({found[0]}, {found[1]}, {self.render(right)})")
        if node.operator in ("+", "-") and any(pointers):
            if all(pointers):
                return self.whole(node, f"{self.helper('minus')}({self.render(left)}, {self.render(right)})")
            pointer, by = (left, right) if pointers[0] else (right, left)
            index = self.render(by) if node.operator == "+" else f"-(ptrdiff_t)({self.render(by)})"
            return self.whole(node, f"{self.helper('plus')}({self.render(pointer)}, {index})")
        if node.operator in COMPARED and any(pointers):
            return self.whole(node, f"({self.helper('minus')}({self.render(left)}, {self.render(right)}) {node.operator} 0)")
        if node.operator in ("==", "!=") and any(pointers):
            nothing = [not pointers[k] or is_null(self.program, side) for k, side in enumerate((left, right))]
            if any(nothing):
                there = self.there(right if nothing[0] else left)
                return self.whole(node, there if node.operator == "!=" else f"!{there}")
            same = f"{self.helper('same')}({self.render(left)}, {self.render(right)})"
            return self.whole(node, same if node.operator == "==" else f"!{same}")
        return None

    def _compound_assignment_operator(self, node: Syntax) -> list[Edit] | None:
        left, right = node.children
        if not self.target.is_pointer(left.shape):
            return None
        by = self.render(right) if node.operator == "+=" else f"-(ptrdiff_t)({self.render(right)})"
        return self.whole(node, f"{self.helper('stepped')}(&{self.render(left)}, {by})")

    # --- conversions, calls, declarations

    def _unexposed_expr(self, node: Syntax) -> list[Edit] | None:
        if len(node.children) != 1:
            return None
        child = node.children[0]
        if self.target.is_pointer(node.shape) and not self.target.is_pointer(child.shape):
            return self.calls.converted(node, child)
        if self.target.is_pointer(child.shape) and node.shape != child.shape and not self.target.is_pointer(node.shape):
            return self.refuse(node, f"a pointer to an element becomes {node.shape.text}")
        return None

    def _cstyle_cast_expr(self, node: Syntax) -> list[Edit] | None:
        child = node.children[-1]
        if node.shape.form == "void":
            return [] if uncast(child).kind == "DECL_REF_EXPR" else None
        if self.target.is_pointer(node.shape):
            if self.target.is_pointer(child.shape):
                return self.whole(node, self.render(child))
            return self.calls.converted(node, child)
        if self.target.is_pointer(child.shape) or self.target.is_pointer(uncast(child).shape):
            return self.refuse(node, f"a pointer to an element becomes {node.shape.text}")
        return None

    def _call_expr(self, node: Syntax) -> list[Edit] | None:
        return self.calls.edits(node)

    def _type_ref(self, node: Syntax) -> list[Edit] | None:
        found = type_edits(self.program, self.target, node)
        if isinstance(found, Refusal):
            self.refusals.add(found)
            return []
        if found and node.in_macro:
            return self.refuse(node, "a macro names the type")
        return found

    def _var_decl(self, node: Syntax) -> list[Edit] | None:
        if self.target.is_array(node.shape):
            for child in node.children:
                text = "".join(self.program.text(child).split()) if child.kind == "INIT_LIST_EXPR" else ""
                if text and text not in ("{0}", "{{0}}", "{}"):
                    return self.refuse(node, f"{node.name} is an array with an initialiser")
        if node.shape.text.count("volatile") and self.target.concerns(node.shape):
            return self.refuse(node, f"{node.name} is volatile")
        return None

    def _union_decl(self, node: Syntax) -> list[Edit] | None:
        if any(self.target.concerns(child.shape) for child in node.children if child.kind == "FIELD_DECL"):
            return self.refuse(node, "it is part of a union")
        return None

    def _init_list_expr(self, node: Syntax) -> list[Edit] | None:
        found = initialiser_edits(self.program, self.target, node)
        if isinstance(found, Refusal):
            self.refusals.add(found)
            return []
        return [*found, *self._inner(node)] if found else None
