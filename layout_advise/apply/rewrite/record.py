"""The record's own declaration in another order, and its initialisers by name."""

from __future__ import annotations

import re

from layout_advise.apply.rewrite.program import Refusal, SourceProgram
from layout_advise.apply.rewrite.syntax import CType, Edit, Syntax, applied
from layout_advise.apply.rewrite.target import Target

MEMBERS = ("FIELD_DECL", "STRUCT_DECL", "UNION_DECL", "ENUM_DECL")
WORDS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"


def put_in_order(program: SourceProgram, record: Syntax, target: Target, edits: set[Edit]) -> set[Refusal]:
    """Puts the members of the record's declaration in the new order, in ``edits``, those of its file. Returns what stands
    in the way."""
    inside = [edit for edit in edits if record.start <= edit.start and edit.end <= record.end]
    body = body_edit(program, target, record, inside)
    if isinstance(body, Refusal):
        return {body}
    edits -= {edit for edit in inside if body.start <= edit.start and edit.end <= body.end}
    edits.add(body)
    return set()


def body_edit(program: SourceProgram, target: Target, record: Syntax, inner: list[Edit]) -> Edit | Refusal:
    """The declarations of the members in the new order, each by itself where they stood together; ``inner`` are edits
    in them."""
    text = program.texts[record.file]
    nodes = {node.name: node for node in record.children if node.kind == "FIELD_DECL"}
    pieces: dict[str, str] = {}
    if record.bases and any(field.name not in nodes for field in target.fields):
        return Refusal(record.file, record.line, "members of a base class, where the members get another order")
    first = min(node.start for node in nodes.values())
    if why := _bits_obstacle(target, record):
        return Refusal(record.file, record.line, why)
    for name, node in nodes.items():
        if node.in_macro:
            return Refusal(node.file, node.line, f"a macro declares member {name}", node.start)
        alone = sum(other.start == node.start for other in nodes.values()) == 1
        found = _declaration(text, node, inner, alone)
        if found is None:
            return Refusal(node.file, node.line, f"the declaration of member {name} is not of a known form")
        pieces[name] = found
    last = max(text.index(";", node.end) + 1 for node in nodes.values())
    between = [n for n in record.children if first < n.start < last and n.kind not in MEMBERS]
    if between:
        return Refusal(record.file, between[0].line, "methods or access specifiers stand between its members")
    indent = text[text.rfind("\n", 0, first) + 1 : first]
    separator = "\n" + indent if not indent.strip() else " "
    lines = []
    word = "alignas" if program.in_cxx else "_Alignas"
    end, whole = 0, 1
    for group in target.groups:
        for field, offset in zip(group.fields, group.offsets, strict=True):
            natural = -(-end // field.align) * field.align
            align = f"{word}({whole}) " if not field.bits and natural != group.at + offset else ""
            lines += [align + pieces[name] for name in field.names]
            end = group.at + offset + field.size
        whole = group.align  # what comes next begins behind whole records of this group
    return Edit(first, last, separator.join(lines))


def inside_out(program: SourceProgram, target: Target, record: Syntax) -> set[Refusal]:
    """Members of a split record that are records which point to it: what stands for pointers is longer, and so are they."""
    found = set()
    for node in record.members() if target.splits else ():
        if node.kind == "FIELD_DECL" and _points_back(program, target, node.shape):
            found.add(Refusal(node.file, node.line, f"member {node.name} holds pointers to {target.spelling}"))
    return found


def misplaced(target: Target, record: Syntax) -> set[Refusal]:
    """Members of a split record that lie elsewhere than their types alone would put them: a single record would not be an
    array of one."""
    if not target.splits:
        return set()
    lines, end = {node.name: node.line for node in record.members()}, 0
    for field in target.fields:
        if not field.bits and field.was_at != -(-end // field.shape.align) * field.shape.align:
            why = f"member {field.name} lies elsewhere than its type would put it (packed, or aligned more)"
            return {Refusal(record.file, lines[field.name], why)}
        end = field.was_at + field.shape.size
    if target.size != -(-end // target.align) * target.align or any(f.align > target.align for f in target.fields):
        return {Refusal(record.file, record.line, f"the size of {target.spelling} is not what its members need (packed)")}
    return set()


def _points_back(program: SourceProgram, target: Target, shape: CType) -> bool:
    while shape.form == "array" and shape.of is not None:
        shape = shape.of
    if shape.form != "record":
        return False
    for node in program.declared.get(shape.record, ()):
        for child in node.children if node.defines else ():
            of = child.shape
            while of.form == "array" and of.of is not None:
                of = of.of
            if child.kind == "FIELD_DECL" and (target.is_pointer(of) or _points_back(program, target, of)):
                return True
    return False


def _bits_obstacle(target: Target, record: Syntax) -> str:
    """Why bit fields would not lie where they have to in the new order; empty where they do."""
    if any(field.bits for field in target.fields) and any(n.kind == "FIELD_DECL" and not n.name for n in record.children):
        return "bit fields without a name, where the members get another order"
    end = 0  # in bits
    for group in target.groups:
        for field, offset in zip(group.fields, group.offsets, strict=True):
            begin = (group.at + offset) * 8
            for bit in field.bits:
                size = bit.type.size * 8
                at = end if end % size + bit.width <= size else -(-end // size) * size
                if at != begin + bit.at:
                    return f"bit field {bit.name} would lie elsewhere in the new order"
                end = at + bit.width
            end = end if field.bits else begin + field.size * 8
    return ""


def _declaration(text: str, node: Syntax, inner: list[Edit], alone: bool) -> str | None:
    """One member's declaration, with its type, whoever stood between them; ``alone``: nobody did."""
    start = node.start
    end = node.end
    if "{" in text[start:end]:
        whole = applied(text[start:end], [e for e in inner if start <= e.start and e.end <= end], start)
        return f"{whole};" if alone else None
    between = text[start : node.name_at]
    comma = between.rfind(",")
    if comma < 0:
        return applied(text[start:end], [e for e in inner if start <= e.start and e.end <= end], start) + ";"
    kind = _type_length(between)
    declarator = start + comma + 1
    if kind is None or "(" in between:
        return None
    # what stands for a pointer takes the first declarator's star in, too; of later ones it is taken away by itself
    typed = [e for e in inner if start <= e.start < start + kind]
    stop = max([start + kind, *(e.end for e in typed)])
    if stop > declarator:
        return None
    head = applied(text[start:stop], typed, start).rstrip()
    own = [e for e in inner if declarator <= e.start and e.end <= end]
    return f"{head} {applied(text[declarator:end], own, declarator).strip()};"


def _type_length(between: str) -> int | None:
    """How far the type goes in ``unsigned long a, b, ``: up to the first declarator."""
    head = re.split("[,=:]", between, maxsplit=1)[0]
    stop = next((at for at, letter in enumerate(head) if letter in "*[("), len(head))
    words = head[:stop].rstrip()
    if stop < len(head) and head[stop] == "*":
        return len(words)
    name = len(words)
    while name > 0 and words[name - 1] in WORDS:
        name -= 1
    return name if words[:name].strip() else None


def initialiser_edits(program: SourceProgram, target: Target, node: Syntax) -> list[Edit] | Refusal:
    """Positions become names: ``{1, 2}`` is ``{.x = 1, .y = 2}``."""
    if not target.reorders or not target.is_value(node.shape) or not node.children:
        return []
    text = "".join(program.text(node).split())
    if program.in_cxx:
        return Refusal(node.file, node.line, "an initialiser by position, where the members get another order")
    if text == "{0}" or any(
        child.kind == "UNEXPOSED_EXPR" and program.text(child).startswith(".") for child in node.children
    ):
        return []
    members = [(field, name) for field in target.fields for name in field.names]
    if len(node.children) > len(members):
        return Refusal(node.file, node.line, "an initialiser without inner brackets")
    edits = []
    for (field, name), child in zip(members, node.children, strict=False):
        aggregate = field.shape.form in ("array", "record")
        if child.in_macro and program.text(child) not in ("NULL",):
            return Refusal(child.file, child.line, "a macro is in an initialiser", child.start)
        if aggregate and child.kind not in ("INIT_LIST_EXPR", "STRING_LITERAL") and child.shape != field.shape:
            return Refusal(node.file, node.line, "an initialiser without inner brackets")
        edits.append(Edit(child.start, child.start, f".{name} = "))
    return edits
