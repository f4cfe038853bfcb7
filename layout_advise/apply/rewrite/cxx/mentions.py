"""Pointers, references, arrays and vectors of the record where C++ source names the type."""

from __future__ import annotations

import re

from layout_advise.apply.rewrite.program import Refusal, SourceProgram, peeled
from layout_advise.apply.rewrite.syntax import CType, Edit, Syntax
from layout_advise.apply.rewrite.target import Target

BEFORE = re.compile(r"(?P<const>\bconst\s+)?(?:\b(?:struct|class)\s+)?(?P<scope>(?:::)?(?:\b\w+\s*::\s*)*)$")
AFTER = re.compile(r"(?P<const>\s*\bconst\b)?\s*(?P<mark>\*|&&|&)(?:\s*\b__restrict(?:__)?\b)?[ \t]*")
VECTOR = re.compile(r"(?P<std>\bstd\s*::\s*)?\bvector\s*<\s*$")
IN_TEMPLATE = re.compile(r"(?<!static_cast)(?<!const_cast)\s*<\s*$")
LATER = re.compile(r",\s*(?P<star>\*)[\s*]*$")
"""A declarator of a pointer behind another one."""
AUTO = re.compile(
    r"(?P<head>(?:(?:static|constexpr|thread_local)\s+)*)(?P<const>const\s+)?auto(?P<late>\s+const)?\s*"
    r"(?P<mark>\*|&&|&)?\s*"
)
LVALUES = {"operator[]", "at", "front", "back", "operator*"}
"""Functions of the standard library's containers and iterators that give a reference to an element."""


def references(target: Target, shape: CType) -> bool:
    """True for a reference to the record."""
    return shape.form == "reference" and target.is_value(shape.of)


def mention_edit(program: SourceProgram, target: Target, node: Syntax, used: set[str]) -> list[Edit] | Refusal:
    """The edits at one mention of the type; notes in ``used`` what they need."""
    text = program.texts[node.file]
    before = BEFORE.search(text, 0, node.start)
    assert before is not None  # it matches nothing at all, too
    start, scope = before.start(), before["scope"] or scope_of(program, target, node)
    holder = program.parents.get(node)
    vector = VECTOR.search(text, 0, start)
    after = AFTER.match(text, node.end)
    if vector is not None and after is None:
        close = re.compile(r"\s*>").match(text, node.end)
        if close is None or before["const"]:
            return Refusal(node.file, node.line, "a vector with an allocator of its own, or of constants")
        used.add("vector")
        return [Edit(vector.start(), close.end(), f"{scope}{target.prefix}_vector")]
    if after is None:
        if IN_TEMPLATE.search(text, 0, start):
            return Refusal(node.file, node.line, f"a template other than std::vector holds {target.spelling}")
        return _array(program, target, node, holder, scope, used)
    return _marked(program, target, node, holder, (start, after, scope, bool(before["const"] or after["const"])))


def _marked(
    program: SourceProgram,
    target: Target,
    node: Syntax,
    holder: Syntax | None,
    place: tuple[int, re.Match[str], str, bool],
) -> list[Edit] | Refusal:
    """``T *`` and ``T &``."""
    start, after, scope, constant = place
    text = program.texts[node.file]
    if after["mark"] == "&&":
        return Refusal(node.file, node.line, f"an rvalue reference to {target.spelling}")
    later: list[Edit] = []
    if holder is not None and holder.name_at > node.end and "," in _outside(text[node.end : holder.name_at]):
        own = LATER.search(text, node.end, holder.name_at)
        if own is None or after["mark"] != "*":
            return Refusal(node.file, holder.line, f"{holder.name} is declared together with others")
        later = [Edit(own.start("star"), own.start("star") + 1, "")]
    if after["mark"] == "&" and constant and holder is not None and holder.kind == "VAR_DECL":
        bound = is_lvalue(program, holder.children[-1])
        if bound is None:
            return Refusal(node.file, node.line, f"what {holder.name} refers to is not known")
        if not bound:
            return []
    kind = {"*": "ptr", "&": "ref"}[after["mark"]]
    blank = "" if text[after.end() : after.end() + 1] in "*&),>{;" else " "
    return [Edit(start, after.end(), f"{scope}{target.prefix}_{'c' if constant else ''}{kind}{blank}"), *later]


def _array(
    program: SourceProgram, target: Target, node: Syntax, holder: Syntax | None, scope: str, used: set[str]
) -> list[Edit] | Refusal:
    """``T a[n]``, and ``T a[]`` as a parameter."""
    if holder is None or holder.kind not in ("VAR_DECL", "FIELD_DECL", "PARM_DECL") or holder.name_at < node.end:
        return []
    text = program.texts[node.file]
    bounds = re.compile(r"\s*\[([^\[\]]*)\](\s*\[)?").match(text, holder.name_at + len(holder.name))
    if bounds is None or target.is_value(holder.shape):
        return []
    rest = text[bounds.end() : holder.end].strip()
    if bounds[2] or rest or text[node.end : holder.name_at].strip() or text[bounds.end() :].lstrip()[:1] not in ";,)":
        return Refusal(node.file, holder.line, f"{holder.name} is an array of a form that is not known")
    if holder.kind == "PARM_DECL":
        constant = re.search(r"\bconst\s*$", text[: node.start]) is not None
        return [
            Edit(node.start, node.end, f"{target.prefix}_{'c' if constant else ''}ptr"),
            Edit(bounds.start(), bounds.end(), ""),
        ]
    if text[bounds.end() :].lstrip()[0] != ";":
        return Refusal(node.file, holder.line, f"{holder.name} is declared together with others")
    used.add("array")
    qualified = node.start - len(BEFORE.search(text, 0, node.start)["scope"])  # type: ignore[index]
    edit = Edit(qualified, node.end, f"{scope}{target.prefix}_array<{bounds[1].strip()}>")
    return [edit, Edit(bounds.start(), bounds.end(), "")]


def scope_of(program: SourceProgram, target: Target, node: Syntax) -> str:
    """The scope that has to stand before the new names where the source reaches the record by a using declaration."""
    scope = target.spelling.removeprefix("struct ").removeprefix("class ").rpartition("::")[0]
    if not scope:
        return ""
    up: Syntax | None = node
    while up is not None:
        if up.name == scope.rpartition("::")[2] or up.kind == "CXX_METHOD":
            return ""
        up = program.parents.get(up)
    return f"{scope}::"


def _outside(between: str) -> str:
    """The text outside of brackets."""
    while (less := re.sub(r"\([^()]*\)|<[^<>]*>|\[[^\[\]]*\]", "", between)) != between:
        between = less
    return between


def auto_edit(program: SourceProgram, target: Target, node: Syntax) -> list[Edit] | Refusal:
    """The edits at a variable whose type concerns the record and is not named: a reference becomes what stands for it, and
    a copy is made a copy."""
    text = program.texts[node.file]
    found = AUTO.fullmatch(text, node.start, node.name_at)
    if found is None:
        return Refusal(node.file, node.line, f"{node.name} has a type that is neither named nor auto")
    shape = node.shape
    scope = scope_of(program, target, node)
    constant = shape.of is not None and shape.of.text.startswith("const ")
    if target.is_pointer(shape):
        if found["mark"] is None:
            return []
        return [Edit(node.start, node.name_at, f"{found['head']}{scope}{target.prefix}_{'c' if constant else ''}ptr ")]
    if target.is_value(shape):
        stays = "const " if shape.text.startswith("const ") else ""
        return [Edit(node.start, node.name_at, f"{found['head']}{stays}{scope}{target.name} ")]
    ranges = program.parents.get(node)
    in_range = ranges is not None and "RANGE" in f"{ranges.kind} {getattr(program.parents.get(ranges), 'kind', '')}"
    bound = True if in_range else is_lvalue(program, node.children[-1]) if node.children else None
    if bound is None:
        return Refusal(node.file, node.line, f"what {node.name} refers to is not known")
    if not bound:
        if found["mark"] == "&&":
            return [Edit(node.start, node.name_at, f"{found['head']}{scope}{target.name} ")]
        return []
    return [Edit(node.start, node.name_at, f"{found['head']}{scope}{target.prefix}_{'c' if constant else ''}ref ")]


def is_lvalue(program: SourceProgram, node: Syntax) -> bool | None:
    """True if an expression names an object that stays, False for a temporary one, None if that is not known."""
    node = peeled(node)
    if node.kind != "CALL_EXPR":
        return node.kind in ("DECL_REF_EXPR", "MEMBER_REF_EXPR", "ARRAY_SUBSCRIPT_EXPR", "UNARY_OPERATOR")
    if node.refers in program.functions:
        result = program.functions[node.refers].shape.of
        return result is not None and result.form == "reference"
    if node.name == "operator=" and node.shape.form == "record":  # the record's own, as it is trivially copyable
        return True
    if node.foreign:
        return True if node.name in LVALUES else None
    return False if node.shape.form == "record" and node.name == node.shape.text.rpartition("::")[2] else None
