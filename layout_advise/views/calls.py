"""The walk through the calls of an annotated loop, into every function that the translation unit defines."""

from __future__ import annotations

import re
from collections.abc import Iterable

from layout_advise.apply.rewrite.program import SourceProgram, peeled
from layout_advise.apply.rewrite.syntax import Edit, Syntax
from layout_advise.views.accesses import Copy, MemberAccess
from layout_advise.views.annotations import WORD, LoopView, refused
from layout_advise.views.names import THIS, is_field_of
from layout_advise.views.walk import JUMPS, Elements, ExpressionWalk

LOOKS = {"begin", "end", "cbegin", "cend", "data", "operator[]", "at", "front", "back", "size", "empty"}
"""Methods of containers that leave the container as it is."""
VIRTUAL = re.compile(r"\b(?:virtual|override|final)\b")


class Walker(ExpressionWalk):
    """Walks through regions, with all views of the file."""

    def __init__(self, program: SourceProgram, views: Iterable[LoopView]) -> None:
        super().__init__(program, views)
        self.defined: dict[str, Syntax] = {}
        self.declared: set[str] = set()
        for node in (node for unit in program.units for top in unit.declarations for node in top.walk()):
            if node.kind in ("FUNCTION_DECL", "CXX_METHOD", "CONSTRUCTOR") and node.declares:
                self.declared.add(node.declares)
                if node.defines:
                    self.defined[node.declares] = node
        self.elements: Elements = {v.variable.declares: v for v in self.views if v.variable is not None}
        self.seen: set[tuple[object, ...]] = set()

    def region(self, view: LoopView) -> tuple[MemberAccess, ...]:
        """All accesses in a view's region. Regions around others have to be walked through first."""
        before = len(self.walked.accesses)
        self.seen.clear()
        self.plain(view.region)
        self.result = self._result_around(view.region)
        self.node(view.region, self.elements, "r", None)
        return tuple(self.walked.accesses[before:])

    def _result_around(self, node: Syntax) -> str:
        """The form of the result of the function around a loop; a reference in a lambda, whose result is not known."""
        around = self.program.parents.get(node)
        while around is not None and around.kind not in ("FUNCTION_DECL", "CXX_METHOD", "LAMBDA_EXPR"):
            around = self.program.parents.get(around)
        return _result(around) if around is not None and around.kind != "LAMBDA_EXPR" else "reference"

    def may_leave(self, body: Syntax) -> bool:
        """True if a call in it may end the loop by an exception."""
        return any(self._throws(node) for node in body.walk() if node.kind in ("CALL_EXPR", "CXX_NEW_EXPR"))

    def _throws(self, call: Syntax, within: frozenset[str] = frozenset()) -> bool:
        called = self.defined.get(call.refers)
        if called is None:
            named = [node for node in call.walk() if node.kind == "DECL_REF_EXPR" and node.refers == call.refers]
            return not any("noexcept" in node.shape.text for node in named)
        if call.refers in within or any(node.kind in ("CXX_THROW_EXPR", "CXX_NEW_EXPR") for node in called.walk()):
            return True
        return any(self._throws(node, within | {call.refers}) for node in called.walk() if node.kind == "CALL_EXPR")

    @staticmethod
    def _turns(called: Syntax) -> bool:
        """True where not all statements of a function's body are carried out up to its end."""
        body = next((child for child in called.children if child.kind == "COMPOUND_STMT"), None)
        jumps = [node for node in called.walk() if node.kind in JUMPS]
        return body is None or any(node is not body.children[-1] for node in jumps)

    def _call_expr(self, node: Syntax, elements: Elements, mode: str, sure: LoopView | None) -> None:
        callee = peeled(node.children[0]) if node.children else None
        method = callee is not None and callee.kind == "MEMBER_REF_EXPR" and callee.refers == node.refers
        plain = callee is not None and callee.kind == "DECL_REF_EXPR" and callee.refers == node.refers
        given = tuple(c for c in node.children[1 if method or plain else 0 :] if not c.kind.endswith("_REF"))
        on = self._on(callee, elements) if method and callee is not None else None
        taken = {k: v for k, c in enumerate(given) if (v := self.element(c, elements)) is not None}
        called = self.defined.get(node.refers)
        self._check_whole(node, given)
        if called is None or node.foreign or node.name.startswith("operator"):
            self._outside(node, elements, mode, bool(taken) or on is not None)
            return
        for k, child in enumerate(given):
            if k in taken:
                self.indices(child, elements)
            else:
                self.node(child, elements, "r" if child.kind == "UNEXPOSED_EXPR" else "rw", None)
        if method and callee is not None and callee.children:
            base = callee.children[0]
            if on is None:
                self.node(base, elements, "r" if base.kind == "UNEXPOSED_EXPR" else "rw", None)
            else:
                self.indices(base, elements)
        self._enter(node, called, taken, on, sure)

    def _on(self, callee: Syntax, elements: Elements) -> LoopView | None:
        return self.element(callee.children[0], elements) if callee.children else elements.get(THIS)

    def _check_whole(self, node: Syntax, given: tuple[Syntax, ...]) -> None:
        """Refuses whole structures that are copied past the view, and changes of a container."""
        unseen = node.foreign or node.refers not in self.defined
        for child in given:
            shape = child.shape.of if child.shape.form in ("pointer", "reference") else child.shape
            if unseen and shape is not None and shape.record in self.records:
                raise refused(node, f"a whole {shape.text} is given to {node.name or 'a function'}")
        callee = node.children[0] if node.children else None
        on = [callee.children[0]] if callee is not None and callee.kind == "MEMBER_REF_EXPR" and callee.children else []
        for child in (*given, *on):
            around = [view for view in self.views if self.inside is None and self.around(view, child)]
            holds = any(self.program.text(child) == view.container for view in around)
            if holds and child.kind != "UNEXPOSED_EXPR" and child.shape.form == "record" and node.name not in LOOKS:
                raise refused(node, f"{node.name} may change {self.program.text(child)}")

    def _outside(self, node: Syntax, elements: Elements, mode: str, whole: bool) -> None:
        """A call of a library's function, of an operator, or of what the compiler defines."""
        if whole:
            raise refused(node, f"an element of the view is given to {node.name}")
        called = self.defined.get(node.refers)
        if called is not None and not node.foreign:
            self._enter(node, called, {}, None, None)
        elif not self._is_known(node):
            raise refused(node, f"{node.name or 'what'} is called in the loop, and what it does is not in this file")
        passes = node.name in LOOKS
        for child in node.children:
            direct = child.kind != "UNEXPOSED_EXPR" and not (passes and mode == "r")
            callee = child.kind == "MEMBER_REF_EXPR" and child.refers == node.refers
            for inner in child.children if callee else (child,):
                self.node(inner, elements, "rw" if direct else "r", None)

    def _is_known(self, node: Syntax) -> bool:
        """True for functions of system headers, lambdas of the loop, and what the compiler defines."""
        if node.foreign or not node.refers:
            return node.foreign
        if node.name == "operator()" and "@Sa@" in node.refers:
            return True
        special = node.name == "operator=" or re.search(r"@S[TU]?@(?:\w|@|>|#|\$)*@F@(\w+)#", node.refers) is not None
        return special and node.refers not in self.declared and "<" not in node.name and self._is_special(node)

    def _is_special(self, node: Syntax) -> bool:
        """True for a copy or default constructor or an assignment that nobody wrote."""
        return node.name == "operator=" or node.refers.split("@F@")[0].endswith(f"@{node.name}")

    def _enter(
        self, call: Syntax, called: Syntax, taken: dict[int, LoopView], on: LoopView | None, sure: LoopView | None
    ) -> None:
        """Walks through the body of a function, with the elements that it is given."""
        parameters = [child for child in called.children if child.kind == "PARM_DECL"]
        within: Elements = {}
        for k, view in taken.items():
            if k >= len(parameters) or parameters[k].shape.form not in ("reference", "pointer"):
                raise refused(call, f"{called.name} takes an element as a whole")
            within[parameters[k].declares] = view
        if on is not None:
            within[THIS] = on
        if VIRTUAL.search(self.program.text(called).split("{")[0]):
            raise refused(call, f"{called.name} is virtual: what it does is known at run time only")
        before, result = self.inside, self.result
        if taken or on is not None:
            copy = self._copied(call, called, tuple(sorted(taken)), on)
            self.inside = copy
        key = (called.declares, tuple((k, v.number) for k, v in taken.items()), on and on.number, sure and sure.number)
        if key not in self.seen:
            self.seen.add(key)
            self.result = _result(called)
            for child in called.children:
                if child.kind != "PARM_DECL":
                    self.node(child, within, "r", sure if sure is not None and not self._turns(called) else None)
        self.inside, self.result = before, result

    def _copied(self, call: Syntax, called: Syntax, taken: tuple[int, ...], on: LoopView | None) -> Copy:
        if called.in_macro or call.in_macro:
            raise refused(call, f"a macro makes the call of {called.name}")
        if on is None and called.kind != "FUNCTION_DECL":
            raise refused(call, f"{called.name} is a method of something else and takes an element")
        self.plain(called)
        copy = Copy(called.declares, taken, on.number if on is not None else 0)
        self.walked.copies[copy] = called
        if on is None:
            name = peeled(call.children[0])
            text = self.program.text(name)
            if re.fullmatch(r"(?:\w+\s*::\s*)*\w+", text) is None:
                raise refused(call, f"{text} is not called by its name alone")
            self.edit(Edit(name.end - len(called.name), name.end, self.walked.name_of(copy)))
        else:
            self._check_names(called, on)
        return copy

    def _check_names(self, called: Syntax, view: LoopView) -> None:
        """Refuses what a method's copy in the view's element would not find, or find elsewhere."""
        record = view.record.record
        if re.match(r"[^{(]*\b(?:static|operator|explicit)\b", self.program.text(called)):
            raise refused(called, f"{called.name} is static, or an operator, and called on an element of a view")
        for node in called.walk():
            inner = node.refers.startswith(f"{record}@") and not is_field_of(node.refers, record)
            if inner and node.refers not in self.defined:
                raise refused(node, f"{node.name} is a name of {view.record.text} that the view does not have")


def _result(function: Syntax) -> str:
    """The form of a function's result."""
    return function.shape.of.form if function.shape.of is not None else "reference"


def check_steady(program: SourceProgram, view: LoopView) -> None:
    """Refuses a region that declares or changes a name by which the view finds its elements."""
    for node in view.region.walk():
        if node.kind in ("VAR_DECL", "PARM_DECL") and node.name in view.names and node is not view.variable:
            raise refused(node, f"{node.name} is declared in a loop that {view.container} is converted before")
        changed: tuple[Syntax, ...] = ()
        if node.operator == "=" or node.kind == "COMPOUND_ASSIGNMENT_OPERATOR":
            changed = node.children[:1]
        elif node.kind == "UNARY_OPERATOR" and ("++" in node.operator or "--" in node.operator or node.operator == "&"):
            changed = node.children
        elif node.kind == "CALL_EXPR":
            changed = tuple(
                c for c in node.children[1:] if c.kind == "DECL_REF_EXPR" and c.shape.form in ("other", "pointer")
            )
        for one in changed:
            if _root(one) in view.names & set(WORD.findall(program.text(one))):
                raise refused(node, f"{_root(one)} changes in a loop that {view.container} is converted before")


def _root(node: Syntax) -> str:
    """The variable that an expression without index is, or is a member of."""
    node = peeled(node)
    while node.kind == "MEMBER_REF_EXPR" and node.children:
        node = peeled(node.children[0])
    return node.name if node.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR") else ""
