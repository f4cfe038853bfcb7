"""The edits of C++ for a split layout: types change where they are named, expressions mostly stay as they are.

What stands for a pointer or a reference is used as those are. So only what would silently mean something else is looked for
here and edited or refused; what is wrong in other ways does not compile.
"""

from __future__ import annotations

import re

from layout_advise.apply.rewrite.allocations import allocated
from layout_advise.apply.rewrite.cxx.library import ALGORITHMS, CONTAINED
from layout_advise.apply.rewrite.cxx.mentions import auto_edit, mention_edit, references, scope_of
from layout_advise.apply.rewrite.cxx.methods import Methods
from layout_advise.apply.rewrite.cxx.pooled import unserved
from layout_advise.apply.rewrite.members import MemberAddresses
from layout_advise.apply.rewrite.program import Refusal, SourceProgram, peeled
from layout_advise.apply.rewrite.syntax import CType, Edit, Syntax
from layout_advise.apply.rewrite.target import Target

NEW = re.compile(
    r"new\s+(?P<type>(?:::)?(?:\w+\s*::\s*)*\w+)\s*"
    r"(?:\[(?P<count>.*)\]\s*(?P<zero>\(\s*\)|\{\s*\})?|(?P<given>[({].*[)}])?)",
    re.DOTALL,
)
CASTS = ("CSTYLE_CAST_EXPR", "CXX_STATIC_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR", "CXX_CONST_CAST_EXPR")


class ProxyEdits:
    """Makes the edits of one C++ program for one target; gathers ``refusals``, and in ``used`` what has to be written."""

    def __init__(self, program: SourceProgram, target: Target, record: Syntax) -> None:
        self.program, self.target, self.record = program, target, record
        self.members = MemberAddresses(program)
        self.methods = Methods(program, target, record)
        self.refusals: set[Refusal] = set()
        self.used: set[str] = set()
        self.referring: set[str] = set()
        self.name = re.compile(rf"\b{re.escape(target.spelling.removeprefix('struct ').removeprefix('class '))}\b(?!::\w)")

    def edits(self, top: Syntax) -> list[Edit]:
        """The edits of a node and of all below it."""
        found: list[Edit] = []
        for node in top.walk():
            if node.file not in self.program.texts:  # a system header that is included in a block
                continue
            if self.methods.in_head(node) or self.methods.addresses_own(node):
                continue
            if self.methods.holds(node):
                if node.kind == "TYPE_REF" and getattr(self.program.parents.get(node), "kind", "") == "FIELD_DECL":
                    found += self._type_ref(node)
                continue
            found += self._of(node)
        return _outermost(found)

    def method(self, node: Syntax) -> list[Edit]:
        """The edits of a method's copy in what stands for a reference."""
        found: list[Edit] = []
        for part in node.walk():
            own = self.methods.in_copy(part)
            found += self._of(part) if own is None else self._taken(own, part)
        return _outermost(found)

    def concerns(self, shape: CType) -> bool:
        """True for a type that has to do with the record."""
        return self.name.search(shape.text) is not None

    def _refuse(self, node: Syntax, why: str) -> list[Edit]:
        self.refusals.add(Refusal(node.file, node.line, why, node.start if node.in_macro else -1))
        return []

    def _named(self, node: Syntax, what: str) -> str:
        """The name of a new type at some place in the source."""
        return f"{scope_of(self.program, self.target, node)}{self.target.prefix}_{what}"

    def _taken(self, made: list[Edit] | Refusal, node: Syntax) -> list[Edit]:
        if isinstance(made, Refusal):
            self.refusals.add(made)
            return []
        if made and node.in_macro:
            return self._refuse(node, "a macro names the type")
        return made

    def _of(self, node: Syntax) -> list[Edit]:
        if self.target.pooled and (why := unserved(self.target, node)):
            return self._refuse(node, why)
        of = getattr(self, f"_{node.kind.lower()}", None)
        if of is None:
            if node.kind in CASTS:
                return self._cast(node)
            if node.kind == "UNEXPOSED_DECL" and self.concerns(node.shape):
                return self._refuse(node, "a declaration of an unknown form")
            return []
        made = of(node)
        return list(made)

    # --- declarations

    def _type_ref(self, node: Syntax) -> list[Edit]:
        if not self.target.is_value(node.shape):
            return []
        made = self._taken(mention_edit(self.program, self.target, node, self.used), node)
        return self._refuse(node, f"a vector of {self.target.spelling}") if self.target.pooled and self.used else made

    def _var_decl(self, node: Syntax) -> list[Edit]:
        target, shape = self.target, node.shape
        if "volatile" in shape.text and self.concerns(shape):
            return self._refuse(node, f"{node.name} is volatile")
        if references(target, shape):
            self.referring.add(node.declares)
        if not (target.concerns(shape) or references(target, shape)) or any(
            part.kind == "TYPE_REF" and target.is_value(part.shape) for part in node.children
        ):
            return []
        return self._taken(auto_edit(self.program, target, node), node)

    def _parm_decl(self, node: Syntax) -> list[Edit]:
        if references(self.target, node.shape):
            self.referring.add(node.declares)
        text = self.program.text(node)
        if re.search(r"\bauto\b", text) and self._call_around(node):
            return self._refuse(node, f"{node.name} of a lambda is auto, and it is given elements")
        return []

    def _call_around(self, node: Syntax) -> bool:
        """True if a call that a lambda is made for has to do with elements, or it is made for none."""
        up, calls = self.program.parents.get(node), 0
        while up is not None and up.kind != "COMPOUND_STMT":
            calls += up.kind == "CALL_EXPR"
            if up.kind == "CALL_EXPR" and any(self.concerns(child.shape) for child in up.children):
                return True
            up = self.program.parents.get(up)
        return calls == 0

    def _union_decl(self, node: Syntax) -> list[Edit]:
        if any(self.concerns(child.shape) for child in node.children if child.kind == "FIELD_DECL"):
            return self._refuse(node, "it is part of a union")
        return []

    def _lambda_expr(self, node: Syntax) -> list[Edit]:
        """A copy of a reference is an element; a copy of what stands for it is not."""
        captured = self.program.text(node).partition("]")[0].removeprefix("[").split(",")
        copies = {name.strip() for name in captured if name.strip() and not name.strip().startswith("&")}
        for part in node.walk():
            by_copy = "=" in copies or part.name in copies
            if part.kind == "DECL_REF_EXPR" and part.refers in self.referring and by_copy:
                return self._refuse(node, f"a lambda captures a copy of {part.name}")
        return []

    # --- expressions

    def _unary_operator(self, node: Syntax) -> list[Edit]:
        child = peeled(node.children[0])
        if node.operator != "&":
            return []
        if self.target.is_value(child.shape):
            constant = "c" if child.shape.text.startswith("const ") else ""
            inner = self.program.text(node.children[0])
            if node.in_macro:
                return self._refuse(node, "a macro takes an element's address")
            at, name = node.children[0], self._named(node, f"{constant}ref")
            if inner.startswith("("):
                return [Edit(at.start, at.start, name)]
            return [Edit(at.start, at.start, f"{name}("), Edit(at.end, at.end, ")")]
        if child.kind == "ARRAY_SUBSCRIPT_EXPR" and self._is_apart(child.children[0]) and not self.members.stays(node):
            return self._refuse(node, "the address of a part of a member goes where it cannot be followed")
        if child.kind == "MEMBER_REF_EXPR" and self.target.of(child.refers) is not None and not self.members.stays(node):
            return self._refuse(node, f"the address of member {child.name} goes where it cannot be followed")
        return []

    def _cxx_unary_expr(self, node: Syntax) -> list[Edit]:
        """The size of an element is not that of what stands for it."""
        child = node.children[-1] if node.children else None
        if child is not None and self._is_apart(child):
            if node.in_macro:
                return self._refuse(node, "a macro takes the size of a member whose parts are apart")
            member = f"{scope_of(self.program, self.target, node)}{self.target.name}::{peeled(child).name}"
            return [Edit(node.start, node.end, f"{self.program.text(node).split('(')[0].split()[0]}({member})")]
        if child is None or child.kind == "TYPE_REF" or not self.target.is_value(child.shape):
            return []
        if node.in_macro:
            return self._refuse(node, "a macro takes an element's size")
        word = self.program.text(node).split("(")[0].split()[0]
        name = f"{scope_of(self.program, self.target, node)}{self.target.name}"
        return [Edit(node.start, node.end, f"{word}({name})")]

    def _is_apart(self, node: Syntax) -> bool:
        """True for a member whose numbers lie apart, as a whole."""
        node = peeled(node)
        field = self.target.of(node.refers) if node.kind == "MEMBER_REF_EXPR" else None
        return field is not None and field.apart

    def _cxx_new_expr(self, node: Syntax) -> list[Edit]:
        if not self.target.is_pointer(node.shape):
            return []
        found = NEW.fullmatch(self.program.text(node))
        if found is None or node.in_macro:
            return self._refuse(node, "memory for elements is not got by a plain new")
        maker = f"{self._named(node, 'ptr')}::made"
        if found["count"] is not None and self.target.pooled:
            return self._refuse(node, f"an array of {self.target.spelling}, of which the pool has none")
        if found["count"] is not None:
            zero = f", {found['type']}()" if found["zero"] else ""
            first, last = (node.start + at for at in found.span("count"))
            return [Edit(node.start, first, f"{maker}("), Edit(last, node.end, f"{zero})")]
        return [Edit(node.start, node.end, f"{maker}(1, {found['type']}{found['given'] or '()'})")]

    def _cxx_delete_expr(self, node: Syntax) -> list[Edit]:
        child = node.children[0]
        if not self.target.is_pointer(child.shape):
            return []
        released = f"{self._named(node, 'ptr')}::released("
        return [Edit(node.start, child.start, released), Edit(child.end, child.end, ")")]

    def _cast(self, node: Syntax) -> list[Edit]:
        target, child = self.target, node.children[-1]
        to, of = target.is_pointer(node.shape), target.is_pointer(peeled(child).shape)
        if not to and not of:
            return []
        if to and not of and node.in_macro:
            return self._refuse(node, "a macro builds the access")
        if not to or of:
            return (
                []
                if to and node.kind != "CXX_CONST_CAST_EXPR"
                else self._refuse(node, f"a pointer to an element becomes {node.shape.text}")
            )
        count = allocated(self.program, target, child, self.program.text)
        if count is None:
            return self._refuse(node, f"{child.shape.text} becomes {node.shape.text}, of how many elements is not known")
        if target.pooled:
            if count != "1":
                return self._refuse(node, f"memory for {count} of {target.spelling}, of which the pool gives one at a time")
            name = f"{scope_of(self.program, target, node)}{target.name}"
            return [Edit(node.start, node.end, f"{self._named(node, 'ptr')}::made(1, {name}())")]
        over = f"{self._named(node, 'ptr')}::over("
        return [Edit(node.start, child.start, over), Edit(child.end, node.end, f", {count})")]

    def _unexposed_expr(self, node: Syntax) -> list[Edit]:
        """A conversion that the source does not write, to what a pointer to anything is."""
        of = bool(node.children) and self.target.is_pointer(peeled(node.children[-1]).shape)
        if not of or node.shape.form != "pointer" or self.target.is_pointer(node.shape):
            return []
        call = self.program.parent(node, "UNEXPOSED_EXPR", "PAREN_EXPR")
        if call is not None and call.kind == "CALL_EXPR" and call.foreign:  # which is looked at as a whole
            return []
        return self._refuse(node, f"a pointer to an element becomes {node.shape.text}")

    def _init_list_expr(self, node: Syntax) -> list[Edit]:
        if self.target.reorders and self.target.is_value(node.shape) and node.children:
            return self._refuse(node, "an initialiser by position, where the members get another order")
        return []

    def _call_expr(self, node: Syntax) -> list[Edit]:
        given = [c for c in node.children[1:] if self.concerns(c.shape) or self.concerns(peeled(c).shape)]
        if not node.foreign:
            if "<#" in node.refers and not all(self._leads_to(peeled(one).shape) for one in given):
                return self._refuse(node, f"template {node.name} is given elements")
            return self._method_call(node)
        if node.name == "swap" and any(self._is_element(child) for child in node.children[1:]):
            callee = node.children[0]
            return [Edit(callee.start, callee.end, "swap")]
        if node.name == "free" and given:
            at = given[0]
            if self.target.pooled:
                return [Edit(node.start, at.start, f"{self._named(node, 'ptr')}::released(")]
            return [Edit(at.start, at.start, "("), Edit(at.end, at.end, ").base")]
        of_vector = bool(node.children) and any(
            self.concerns(part.shape) and ("vector<" in part.shape.text or "__normal_iterator<" in part.shape.text)
            for part in node.children[0].walk()
        )
        plain = node.name in ALGORITHMS or node.name in CONTAINED or node.name in ("vector", "__normal_iterator", "~vector")
        if (given or of_vector) and not plain:
            return self._refuse(node, f"{node.name} is given elements")
        return []

    def _leads_to(self, shape: CType | None) -> bool:
        """True for a pointer to an element, or to such pointers."""
        inner = shape.of if shape is not None and shape.form == "pointer" else None
        return inner is not None and (self.target.is_value(inner) or self._leads_to(inner))

    def _is_element(self, node: Syntax) -> bool:
        """True for an element, or a reference that may be to one; False for a variable that is a record by itself."""
        node = peeled(node)
        return self.target.is_value(node.shape) and (node.kind != "DECL_REF_EXPR" or node.refers in self.referring)

    def _method_call(self, node: Syntax) -> list[Edit]:
        """A method of the record that is called for an element has to be written into what stands for that."""
        if not self.methods.known(node.refers):
            return self._refuse(node, f"no source that was read defines method {node.name} of {self.target.spelling}")
        return []


def _outermost(edits: list[Edit]) -> list[Edit]:
    """The edits without those of text that another one replaces."""
    kept = set(edits)
    wide = [edit for edit in kept if edit.end > edit.start]
    return sorted(
        one for one in kept if not any(o is not one and o.start <= one.start and one.end <= o.end and one != o for o in wide)
    )
