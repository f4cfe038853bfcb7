"""The record's methods in what stands for a reference: copies of their text, in which unqualified names are its members.

A method that is defined outside of the class is copied there too: declared in what stands for a reference, and defined, as a
template, behind the original, where it sees what that sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from layout_advise.apply.rewrite.program import Refusal, SourceProgram, peeled
from layout_advise.apply.rewrite.syntax import Edit, Syntax, applied
from layout_advise.apply.rewrite.target import Target

MEMBERS = ("CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION")
CONVERSIONS = ("UNEXPOSED_EXPR", "PAREN_EXPR", "CSTYLE_CAST_EXPR", "CXX_REINTERPRET_CAST_EXPR", "CXX_STATIC_CAST_EXPR")
Edits = Callable[[Syntax], list[Edit]]
"""From a method to the edits of its copy."""


class Methods:
    """The methods of one record: ``within`` it by USR those that its declaration defines, ``outside`` the definitions of the
    others that somebody calls."""

    def __init__(self, program: SourceProgram, target: Target, record: Syntax) -> None:
        self.program, self.target, self.record = program, target, record
        self.owners = {one.declares: one for one in self._owners(record)}
        declared: list[Syntax] = []
        for owner in self.owners.values():
            hidden = {node.name for node in declared}
            methods = [node for node in owner.children if node.kind == "CXX_METHOD" and not self._is_static(node)]
            declared += [n for n in methods if n.name not in hidden and (owner is record or self._sees_record(n))]
        self.declared = {node.declares: node for node in declared}
        self.within = {node.declares: node for node in declared if node.defines and _body(node) is not None}
        self.outside = {
            usr: program.functions[usr]
            for usr in self.declared.keys() - self.within.keys()
            if usr in program.functions and program.uses[usr]
        }
        self.own_parameters: set[str] = set()
        self.heads = self._heads()

    def _owners(self, record: Syntax) -> Iterator[Syntax]:
        """The record and what it derives from, as the program has them: what is further away comes later."""
        yield record
        for base in record.bases:
            found = [node for node in self.program.declared[base.declares] if node.defines]
            yield from self._owners(found[-1]) if found else ()

    def _sees_record(self, node: Syntax) -> bool:
        """True if a base class's method is defined where the record is known: only there a copy can stand."""
        of = node if _body(node) is not None else self.program.functions.get(node.declares)
        if of is None or of is node:
            return of is node
        if of.file == self.record.file:
            return of.start > self.record.end
        units = [unit for unit in self.program.units if of.file in unit.texts]
        return all(unit.path == of.file and self.record.file in unit.texts for unit in units)

    def friends(self) -> list[tuple[Path, Edit]]:
        """The text that lets a copy use the private members of the record and of what it derives from."""
        found = []
        for owner in self.owners.values():
            if owner.kind != "CLASS_DECL" and all(node.kind != "CXX_ACCESS_SPEC_DECL" for node in owner.children):
                continue
            refs = f"struct {self.target.prefix}_refs;"
            brace = self.program.texts[owner.file].index("{", owner.start) + 1
            found.append((owner.file, Edit(brace, brace, f"\n    template <bool constant> friend {refs}")))
            if owner is not self.record:
                found.append((owner.file, Edit(owner.start, owner.start, f"template <bool constant> {refs}\n")))
        return found

    def _is_static(self, node: Syntax) -> bool:
        return re.match(r"(\w+\s+)*?static\b", self.program.text(node)) is not None

    def known(self, usr: str) -> bool:
        """False for a method of the record, called somewhere, that no copy can be made of."""
        return usr not in self.declared or usr in self.within or usr in self.outside

    def _heads(self) -> dict[Path, set[tuple[int, int]]]:
        """The places where definitions of members stand outside of the record, up to their last parameter: there types stay
        what the record's declaration says."""
        found: dict[Path, set[tuple[int, int]]] = {}
        for unit in self.program.units:
            for top in unit.declarations:
                for node in top.walk():
                    if node.kind in MEMBERS and node.declares.startswith(f"{self.target.usr}@") and not self.holds(node):
                        given = [child for child in node.children if child.kind == "PARM_DECL"]
                        self.own_parameters |= {child.declares for child in given}
                        end = max([node.name_at, *(child.end for child in given)])
                        found.setdefault(node.file, set()).add((node.start, end))
        return found

    def holds(self, node: Syntax) -> bool:
        """True in the record's own declaration, where references stay what they are."""
        return node.file == self.record.file and self.record.start <= node.start and node.end <= self.record.end

    def in_head(self, node: Syntax) -> bool:
        """True in the head of a member's definition outside of the record."""
        return any(start <= node.start and node.end <= end for start, end in self.heads.get(node.file, ()))

    def addresses_own(self, node: Syntax) -> bool:
        """True for the address of what a member's parameter refers to: that is a record by itself there."""
        of = peeled(node.children[0]) if node.operator == "&" else None
        return of is not None and of.kind == "DECL_REF_EXPR" and of.refers in self.own_parameters

    def in_copy(self, node: Syntax) -> list[Edit] | Refusal | None:
        """The edits of a node that means something else in a copy than in the record; None for any other."""
        if node.kind == "CXX_THIS_EXPR":
            return self._this(node)
        typedef = f"@T@{_plain(node.name)}"  # a file stands in front of it
        starts, ends = (tuple(at.format(usr[2:]) for usr in self.owners) for at in ("c:{}@", f"{{}}{typedef}"))
        of_record = node.refers.startswith(starts) or node.refers.endswith(ends)
        own = node.kind in ("DECL_REF_EXPR", "TYPE_REF") and of_record
        qualified = self.program.texts[node.file][: node.start].rstrip().endswith("::")
        if not own or qualified or not re.match(rf"{re.escape(_plain(node.name))}\b", self.program.text(node)):
            return None
        return [Edit(node.start, node.start, f"{self.target.name}::")]

    def _this(self, node: Syntax) -> list[Edit] | Refusal:
        """The text that stands for a pointer to the element in the place of ``this``, unless it only leads to a member or is
        the element itself."""
        up = self.program.parents.get(node)
        while up is not None and up.kind in (
            "UNEXPOSED_EXPR",
            "PAREN_EXPR",
            "CSTYLE_CAST_EXPR",
            "CXX_REINTERPRET_CAST_EXPR",
        ):
            if up.shape.form != "pointer" or not self.target.is_pointer(up.shape):
                return Refusal(node.file, node.line, f"a pointer to an element becomes {up.shape.text}")
            up = self.program.parents.get(up)
        if self.program.text(node) != "this" or (up is not None and (up.kind == "MEMBER_REF_EXPR" or up.operator == "*")):
            return []
        return [Edit(node.start, node.end, "(&*this)")]

    def copies(self, edits: Edits) -> list[str]:
        """The text of the methods in what stands for a reference."""
        whole = [f"    {self._changed(node, edits)}" for node in self.within.values()]
        return [*whole, *(f"    {self._changed(self.declared[usr], edits)};" for usr in self.outside)]

    def definitions(self, edits: Edits) -> list[tuple[Path, Edit]] | Refusal:
        """The text behind the definitions outside of the record, by file: copies of these."""
        found = []
        units = {unit.path for unit in self.program.units}
        for node in self.outside.values():
            body, qualifier = _body(node), self._qualifier(node)
            if body is None or qualifier is None or node.in_macro:
                return Refusal(node.file, node.line, f"method {node.name} is defined in a form that is not known")
            made = [*edits(node), Edit(*qualifier, f"{self.target.prefix}_refs<constant>")]
            text = applied(self.program.text(node), [e for e in made if node.start <= e.start <= node.end], node.start)
            after = f"\n\ntemplate <bool constant> {text}"
            if node.file in units and not re.match(r"(\w+\s+)*?inline\b", text):  # other units call it, too
                head = applied(
                    self.program.texts[node.file][node.start : body.start],
                    [e for e in made if node.start <= e.start < body.start],
                    node.start,
                ).strip()
                kinds = ("false", "true") if self._is_const(node) else ("false",)
                after += "".join(f"\ntemplate {head.replace('_refs<constant>', f'_refs<{kind}>')};" for kind in kinds)
            found.append((node.file, Edit(node.end, node.end, after)))
        return found

    def destructor(self) -> list[tuple[Path, Edit]] | Refusal:
        """One that does nothing becomes a default one, as elements are copied bytes by bytes; any other is refused."""
        node = next((child for child in self.record.children if child.kind == "DESTRUCTOR"), None)
        if node is None or re.search(r"=\s*default$", self.program.text(node)):
            return []
        found = node if node.defines else self.program.functions.get(node.declares)
        body = _body(found) if found is not None else None
        if found is None or body is None or body.children or body.in_macro:
            return Refusal(node.file, node.line, f"{self.target.spelling} has a destructor that may do something")
        if found is node:
            return [(node.file, Edit(body.start, body.end, "= default;"))]
        return [(node.file, Edit(node.end, node.end, " = default")), (found.file, Edit(found.start, found.end, ""))]

    def _changed(self, node: Syntax, edits: Edits) -> str:
        made = [edit for edit in edits(node) if node.start <= edit.start <= node.end]
        return applied(self.program.text(node), made, node.start)

    def _qualifier(self, node: Syntax) -> tuple[int, int] | None:
        """The place where the name of the method's class stands before ``::``, in front of its own name."""
        head = self.program.texts[node.file][node.start : node.name_at]
        names = "|".join(re.escape(_plain(owner.shape.text)) for owner in self.owners.values())
        found = re.search(rf"\b({names})(?=\s*::\s*$)", head)
        return None if found is None else (node.start + found.start(), node.start + found.end())

    def _is_const(self, node: Syntax) -> bool:
        body = _body(node)
        ends = [child.end for child in node.children if child.kind == "PARM_DECL"]
        tail = self.program.texts[node.file][max([node.name_at, *ends]) : body.start if body is not None else node.end]
        return re.search(r"\)\s*const\b", tail) is not None


def _body(node: Syntax) -> Syntax | None:
    return next((part for part in node.children if part.kind == "COMPOUND_STMT"), None)


def _plain(name: str) -> str:
    """``enum P::Kind`` and ``P::Kind`` are ``Kind`` in the record."""
    return name.rpartition("::")[2].rpartition(" ")[2]
