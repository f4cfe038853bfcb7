"""The walk through expressions and statements of an annotated loop: which members are read and written, what changes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable

from layout_advise.apply.rewrite.program import SourceProgram, peeled
from layout_advise.apply.rewrite.syntax import Edit, Syntax
from layout_advise.views.accesses import Copy, MemberAccess, Walked
from layout_advise.views.annotations import LoopView, is_element_of, refused
from layout_advise.views.names import THIS, is_field_of

JUMPS = {"BREAK_STMT", "CONTINUE_STMT", "RETURN_STMT", "GOTO_STMT", "CXX_THROW_EXPR", "INDIRECT_GOTO_STMT"}
STRAIGHT = {"COMPOUND_STMT", "DECL_STMT", "UNEXPOSED_EXPR", "PAREN_EXPR"}
"""Nodes all of whose children are carried out."""
UNSAFE = re.compile(r"\b(?:decltype|__?typeof(?:__)?|offsetof|asm|__asm__)\b")
"""Words that see that a member of a view is a reference, or where it lies."""
LEADS_OUT = re.compile(r"[^{]*->[^{]*(?:&|auto)")
"""The head of a lambda that may return a reference."""
Elements = dict[str, LoopView]
"""Variables (USR) that are elements, each with its view."""


class ExpressionWalk(ABC):
    """The part of the walk without calls. ``mode`` of a node: its value is read (``r``), written (``w``) or both;
    ``sure``: the view for each of whose elements the node is carried out for certain."""

    def __init__(self, program: SourceProgram, views: Iterable[LoopView]) -> None:
        self.program, self.views, self.walked = program, tuple(views), Walked()
        self.loops = {view.loop: view for view in self.views}
        self.records = {one.record.record for one in self.views}
        self.inside: Copy | None = None
        self.result = ""

    def element(self, node: Syntax, elements: Elements) -> LoopView | None:
        """The view that an expression is an element of, or the address of one."""
        node = peeled(node)
        if node.kind == "DECL_REF_EXPR":
            return elements.get(node.refers)
        if node.kind == "CXX_THIS_EXPR":
            return elements.get(THIS)
        if node.kind == "UNARY_OPERATOR" and node.operator in ("*", "&"):
            return self.element(node.children[0], elements)
        around = (view for view in self.views if view.variable is None and self.around(view, node))
        return next((view for view in around if is_element_of(self.program, node, view.container)), None)

    @staticmethod
    def around(view: LoopView, node: Syntax) -> bool:
        region = view.region
        return node.file == region.file and region.start <= node.start < region.end

    def node(self, node: Syntax, elements: Elements, mode: str, sure: LoopView | None) -> None:
        """Walks through one node."""
        handler = getattr(self, f"_{node.kind.lower()}", None)
        if node.kind not in ("PARM_DECL", "VAR_DECL") and self.element(node, elements) is not None:
            raise refused(node, "an element of the view is used as a whole; use its members")
        if handler is not None:
            handler(node, elements, mode, sure)
        else:
            stays = sure if node.kind in STRAIGHT else None
            for child in node.children:
                self.node(child, elements, mode if node.kind in ("PAREN_EXPR", "CONDITIONAL_OPERATOR") else "r", stays)

    def _unexposed_expr(self, node: Syntax, elements: Elements, mode: str, sure: LoopView | None) -> None:
        decays = node.shape.form == "pointer" and bool(node.children) and node.children[0].shape.form == "array"
        if decays and self._member_of_view(node.children[0], elements):
            raise refused(node, "the address of a member's array is taken, which would be that in the view")
        for child in node.children:
            self.node(child, elements, "rw" if decays else mode, sure)

    def _array_subscript_expr(self, node: Syntax, elements: Elements, mode: str, _sure: LoopView | None) -> None:
        base = peeled(node.children[0])
        whole = "rw" if "w" in mode else "r"  # one value of an array in the member: the others stay
        self.node(base, elements, whole if base.shape.form == "array" else "r", None)
        self.node(node.children[1], elements, "r", None)

    def _binary_operator(self, node: Syntax, elements: Elements, mode: str, sure: LoopView | None) -> None:
        left, right = node.children
        if node.operator in ("==", "!=") and any(self.element(side, elements) is not None for side in node.children):
            self._comparison(node, elements)
            return
        writes = node.operator == "="
        self.node(right, elements, mode if node.operator == "," else "r", None)
        self.node(left, elements, ("rw" if mode != "r" else "w") if writes else "r", sure if writes else None)

    def _comparison(self, node: Syntax, elements: Elements) -> None:
        for side in node.children:
            view = self.element(side, elements)
            if view is None:
                self.node(side, elements, "r", None)
                continue
            self.walked.compared.add(view.number)
            self.indices(side, elements)

    def _compound_assignment_operator(self, node: Syntax, elements: Elements, _mode: str, _sure: LoopView | None) -> None:
        self.node(node.children[1], elements, "r", None)
        self.node(node.children[0], elements, "rw", None)

    def _unary_operator(self, node: Syntax, elements: Elements, _mode: str, _sure: LoopView | None) -> None:
        child = node.children[0]
        if node.operator == "&" and self._member_of_view(child, elements):
            raise refused(node, "the address of a member is taken, which would be one of the view")
        changes = node.operator == "&" or "++" in node.operator or "--" in node.operator
        self.node(child, elements, "rw" if changes else "r", None)

    def _member_of_view(self, node: Syntax, elements: Elements) -> bool:
        """True if the expression lies in an element; what an index in it names does not count."""
        node = peeled(node)
        if node.kind == "MEMBER_REF_EXPR":
            if not node.children:
                return THIS in elements
            return self.element(node.children[0], elements) is not None or self._member_of_view(node.children[0], elements)
        if node.kind in ("ARRAY_SUBSCRIPT_EXPR", "CONDITIONAL_OPERATOR") or node.name == "operator[]":
            return any(self._member_of_view(child, elements) for child in node.children)
        return False

    def _member_ref_expr(self, node: Syntax, elements: Elements, mode: str, sure: LoopView | None) -> None:
        base = node.children[0] if node.children else None
        view = self.element(base, elements) if base is not None else elements.get(THIS)
        owner = next((record for record in self.records if is_field_of(node.refers, record)), "")
        if view is not None:
            if node.in_macro:
                raise refused(node, f"a macro makes the access to {node.name}")
            if not owner:
                raise refused(node, f"{node.name} is no member of {view.record.text} itself")
            self._access(view, node, owner, mode, sure)
            if base is not None:
                self.indices(base, elements)
            return
        if not node.refers and not node.foreign:
            raise refused(node, f"it is not known what {self.program.text(node)} is")
        if owner:
            self._access(None, node, owner, mode, None)
        if base is not None:
            inner = base.shape.form == "record" and node.shape.form != "reference"
            self.node(base, elements, "rw" if inner and mode != "r" else "r", None)

    def _access(self, view: LoopView | None, node: Syntax, record: str, mode: str, sure: LoopView | None) -> None:
        found = MemberAccess(
            view, node.name, record, "r" in mode, "w" in mode, sure is not None and sure is view and mode == "w", node
        )
        self.walked.accesses.append(found)

    def indices(self, node: Syntax, elements: Elements) -> None:
        """The index in ``container[index]``, through which other members may be read."""
        node = peeled(node)
        if node.kind == "UNARY_OPERATOR":
            self.indices(node.children[0], elements)
        elif node.kind in ("ARRAY_SUBSCRIPT_EXPR", "CALL_EXPR"):
            for child in node.children[1:]:
                self.node(child, elements, "r", None)

    def _var_decl(self, node: Syntax, elements: Elements, _mode: str, sure: LoopView | None) -> None:
        given = node.children[-1] if node.children else None
        if given is None or given.kind.endswith("_REF"):
            return
        view = self.element(given, elements)
        if view is None:
            direct = given.kind != "UNEXPOSED_EXPR" and node.shape.form == "reference"
            self.node(given, elements, "rw" if direct else "r", None if direct else sure)
            return
        holder = self.program.parents.get(node)
        alone = holder is not None and holder.kind == "DECL_STMT" and len(holder.children) == 1
        if node.shape.form not in ("reference", "pointer") or not alone or self.program.text(node).startswith("static"):
            raise refused(node, f"{node.name} is a copy of an element, or declared together with others")
        elements[node.declares] = view
        self.indices(given, elements)
        self.edit(Edit(node.start, node.name_at, "auto &&"))

    def _return_stmt(self, node: Syntax, elements: Elements, _mode: str, sure: LoopView | None) -> None:
        for child in node.children:
            leads_out = self.result == "reference" and child.kind != "UNEXPOSED_EXPR"
            if leads_out and self.inside is None and self._member_of_view(child, elements):
                raise refused(node, "a reference into the view would outlive it")
            self.node(child, elements, "rw" if leads_out else "r", sure)

    def _cxx_for_range_stmt(self, node: Syntax, elements: Elements, _mode: str, _sure: LoopView | None) -> None:
        view = self.loops.get(node)
        body = node.children[-1]
        if view is not None:
            if self.inside is not None:
                raise refused(node, "an annotated loop is in a function that another annotated loop calls")
            whole = view.region is node and not any(child.kind in JUMPS for child in body.walk())
            self.node(body, elements, "r", view if whole and not self.may_leave(body) else None)
            return
        variable = node.children[0]
        changes = variable.shape.form == "reference" and not variable.shape.text.startswith("const ")
        for child in node.children[1:-1]:
            self.node(child, elements, "rw" if changes else "r", None)
        self.node(body, elements, "r", None)

    def _lambda_expr(self, node: Syntax, elements: Elements, _mode: str, _sure: LoopView | None) -> None:
        if not self.program.text(node).startswith(("[&]", "[]")):
            raise refused(node, "a lambda in the loop captures by copy or by name; use [&]")
        if LEADS_OUT.match(self.program.text(node)):
            raise refused(node, "a lambda in the loop returns a reference")
        before, self.result = self.result, "other"
        for child in node.children:
            self.node(child, elements, "r", None)
        self.result = before

    @abstractmethod
    def may_leave(self, body: Syntax) -> bool:
        """True if a call in it may end the loop by an exception."""

    def edit(self, edit: Edit) -> None:
        """Notes a change in what is walked through."""
        self.walked.edits.setdefault(self.inside, set()).add(edit)

    def plain(self, node: Syntax) -> None:
        """Refuses text that a view would change the meaning of."""
        if (found := UNSAFE.search(self.program.text(node))) is not None:
            raise refused(node, f"{found[0]} in it would see the view instead of the structure")
