"""The forms of a record for which no other types can stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

from layout_advise.apply.rewrite.program import Refusal, SourceProgram
from layout_advise.apply.rewrite.syntax import Syntax
from layout_advise.apply.rewrite.target import Target


def obstacles(program: SourceProgram, target: Target, record: Syntax) -> Iterator[Refusal]:
    """The places of the record's own declaration that stand in the way."""
    if program.texts[record.file][record.name_at : record.name_at + len(target.name)] != target.name:
        yield Refusal(record.file, record.line, f"{target.spelling} has its name from a typedef")
    specifiers = [node for node in record.children if node.kind == "CXX_BASE_SPECIFIER"]
    for node in specifiers if len(specifiers) > len(record.bases) or len(specifiers) > 1 else ():
        yield Refusal(record.file, node.line, f"{target.spelling} has several base classes, or one that was not read")
    for node in specifiers:
        if re.search(r"\bvirtual\b", program.text(node)):
            yield Refusal(record.file, node.line, f"{target.spelling} has a virtual base class")
    for node in record.members():
        if node.kind in ("CXX_METHOD", "DESTRUCTOR") and program.text(node).lstrip().startswith("virtual"):
            yield Refusal(node.file, node.line, f"{target.spelling} has virtual methods")
        if node.kind == "FUNCTION_TEMPLATE":
            yield Refusal(node.file, node.line, f"{target.spelling} has templates of its own")
    around = program.parents.get(record)
    while around is not None:
        if around.kind in ("FUNCTION_DECL", "CXX_METHOD", "CLASS_TEMPLATE", "FUNCTION_TEMPLATE", "LAMBDA_EXPR"):
            yield Refusal(record.file, record.line, f"{target.spelling} is declared in a function or a template")
        around = program.parents.get(around)
