"""The annotated loops of a source file. Compilers that do not know an attribute drop it, so it is read from the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from layout_advise.apply.rewrite.program import SourceProgram, arguments, peeled
from layout_advise.apply.rewrite.syntax import CType, Syntax
from layout_advise.errors import SourceError

LOOPS = ("FOR_STMT", "CXX_FOR_RANGE_STMT", "WHILE_STMT", "DO_STMT")
FUNCTIONS = ("FUNCTION_DECL", "CXX_METHOD", "CONSTRUCTOR", "DESTRUCTOR", "FUNCTION_TEMPLATE", "LAMBDA_EXPR")
GROUPS = re.compile(r"(?:\[\[[^\]]*\]\]\s*)+$")
ATTRIBUTE = re.compile(r'(?:clang\s*::\s*)?soa_conversion(?P<kind>\w*)\s*(?:\(\s*(?P<value>"[^"]*"|[^)"]*)\s*\))?')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
WORD = re.compile(r"[A-Za-z_]\w*")
KINDS = ("", "_target", "_target_size", "_hoist", "_offload_compute")


@dataclass(frozen=True, slots=True, eq=False)
class LoopView:
    """An annotated loop. ``start`` is where its attributes begin, ``region`` the loop around which is converted.
    ``container`` is the text of what is converted, ``element`` the type of its elements (the record, or a pointer to it),
    ``count`` the text of how many there are (empty: the container knows), ``variable`` that of a range-based loop;
    ``offload``: the loop is computed on a device."""

    number: int
    loop: Syntax
    start: int
    region: Syntax
    container: str
    element: CType
    count: str
    variable: Syntax | None
    offload: bool = False

    @property
    def record(self) -> CType:
        """The type that is converted."""
        return self.element.of if self.element.form == "pointer" and self.element.of is not None else self.element

    @property
    def names(self) -> frozenset[str]:
        """All names in the texts of container and count."""
        return frozenset(WORD.findall(f"{self.container} {self.count}"))


def views(program: SourceProgram, path: Path) -> tuple[LoopView, ...]:
    """The views of a file, in its order. Raises SourceError where an annotation cannot be honoured."""
    text = program.texts.get(path, "")
    found: list[LoopView] = []
    places: set[int] = set()
    for top in (top for unit in program.units for top in unit.declarations if top.file == path):
        for node in top.walk():
            groups = GROUPS.search(text, max(0, node.start - 2000), node.start) if node.kind in LOOPS else None
            if groups is None or "soa_conversion" not in groups[0] or node.file != path or node.start in places:
                continue
            if node.in_macro:
                raise refused(node, "a macro makes the annotated loop")
            places.add(node.start)
            found.append(_view(program, node, groups, len(found) + 1))
    written = len(re.findall(r"\[\[[^\]]*soa_conversion", COMMENT.sub("", text)))
    if written > sum(len(re.findall(r"\[\[[^\]]*soa_conversion", text[v.start : v.loop.start])) for v in found):
        raise SourceError(f"cannot honour an annotation in {path}", "it is before no loop", "put it directly before the for")
    return tuple(found)


def refused(node: Syntax, why: str) -> SourceError:
    """The error at a place in the source."""
    return SourceError(f"{node.file}:{node.line}", why, "nothing was written")


def is_element_of(program: SourceProgram, node: Syntax, container: str) -> bool:
    """True for ``container[k]``."""
    if node.kind == "ARRAY_SUBSCRIPT_EXPR" or (node.kind == "CALL_EXPR" and node.name == "operator[]"):
        return not node.in_macro and program.text(peeled(node.children[0])) == container
    return False


def _view(program: SourceProgram, loop: Syntax, groups: re.Match[str], number: int) -> LoopView:
    given = _given(loop, groups[0])
    region = _hoisted(program, loop, given.get("_hoist", "0"))
    if loop.kind == "CXX_FOR_RANGE_STMT":
        variable, held = loop.children[0], loop.children[1]
        if variable.kind != "VAR_DECL" or not program.text(loop).endswith(program.text(loop.children[-1])):
            raise refused(loop, "the loop's head is not understood; write for (auto &p : container)")
        shape = variable.shape
        if shape.form not in ("reference", "pointer"):
            raise refused(loop, f"{variable.name} is a copy of an element; make it a reference")
        element = shape.of if shape.form == "reference" and shape.of is not None else shape
        container, count = program.text(held), ""
        if region is not loop and "(" in container:
            raise refused(loop, f"{container} is called in a loop that it is hoisted out of; name its result before")
        if given.get("_target", container) != container:
            raise refused(loop, f"the loop is over {container}, and {given['_target']} is to be converted")
    else:
        variable, container = None, given.get("_target", "")
        if not container:
            raise refused(loop, 'say what is converted: [[clang::soa_conversion_target("container")]]')
        used = [node for node in region.walk() if is_element_of(program, node, container)]
        if not used:
            raise refused(loop, f"no element of {container} is used in the loop")
        element = used[0].shape
        count = given.get("_target_size", "") or _count(program, loop, used)
    offload = "_offload_compute" in given
    if offload and variable is None:
        raise refused(loop, "only a range-based loop can be offloaded; write for (auto &p : container)")
    view = LoopView(number, loop, groups.start(), region, container, element, count, variable, offload)
    if view.record.form != "record":
        raise refused(loop, f"the elements of {container} are no structures of a known type")
    return view


def _given(loop: Syntax, text: str) -> dict[str, str]:
    """The attributes before a loop, each with its value."""
    given: dict[str, str] = {}
    for attribute in ATTRIBUTE.finditer(text):
        if attribute["kind"] not in KINDS:
            raise refused(loop, f"soa_conversion{attribute['kind']} is not known")
        given[attribute["kind"]] = (attribute["value"] or "").strip().strip('"')
    rest = re.sub(r"[\[\],\s]", "", ATTRIBUTE.sub("", text))
    if rest:
        raise refused(loop, f"another attribute stands among the annotations: {rest}")
    return given


def _hoisted(program: SourceProgram, loop: Syntax, levels: str) -> Syntax:
    if not levels.isdigit():
        raise refused(loop, f"soa_conversion_hoist takes a number of loops, not {levels!r}")
    region = loop
    for _ in range(int(levels)):
        up = program.parents.get(region)
        while up is not None and up.kind not in (*LOOPS, *FUNCTIONS):
            up = program.parents.get(up)
        if up is None or up.kind in FUNCTIONS:
            raise refused(loop, f"there are no {levels} loops around it to hoist out of")
        region = up
    return region


def _count(program: SourceProgram, loop: Syntax, used: list[Syntax]) -> str:
    """How many elements a pointer leads to: the bound of the loop, where only its variable counts through them."""
    holder = peeled(used[0].children[0])
    if holder.shape.form != "pointer":
        return ""
    condition = next((c for c in loop.children if c.kind == "BINARY_OPERATOR" and c.operator in ("<", "!=")), None)
    first = next((node for node in loop.children[0].walk() if node.kind == "VAR_DECL"), None)
    if condition is not None and first is not None and first.children and program.text(first.children[-1]) == "0":
        name, bound = (peeled(child) for child in condition.children)
        indices = [peeled(node.children[1] if node.kind != "CALL_EXPR" else arguments(node)[-1]) for node in used]
        if name.refers == first.declares and all(index.refers == name.refers for index in indices):
            return program.text(bound)
    raise refused(loop, 'it cannot be told how many elements there are: add [[clang::soa_conversion_target_size("count")]]')
