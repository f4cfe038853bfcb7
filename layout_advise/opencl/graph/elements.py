"""The element of a buffer that an access names, as the source spells it: by it a stencil is told from a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layout_advise.apply.rewrite.program import SourceProgram, peeled, uncast
from layout_advise.apply.rewrite.syntax import Syntax
from layout_advise.layoutalgebra.fieldgraph.memory_distance import Repeat, Step
from layout_advise.opencl.source.kernels import BufferRecord


def element_of(node: Syntax, program: SourceProgram, given: Mapping[str, str]) -> str:
    """The same text for accesses of one element, whichever member; ``given`` are the texts of a function's arguments where
    it is called, by parameter. An element that is spelled in two ways has two."""
    node = peeled(node)
    while node.children:
        inner = node.children[0]
        if node.kind == "MEMBER_REF_EXPR" and inner.shape.form != "pointer":
            node = peeled(inner)
        elif node.kind == "ARRAY_SUBSCRIPT_EXPR" and uncast(inner).shape.form == "array":
            node = uncast(inner)
        else:
            break
    return spelled(node.children[0] if node.kind == "MEMBER_REF_EXPR" and node.children else node, program, given)


def spelled(node: Syntax, program: SourceProgram, given: Mapping[str, str]) -> str:
    """An expression as text, with the arguments of the call in the place of parameters."""
    node = uncast(node)
    if node.kind == "DECL_REF_EXPR" and node.refers in given:
        return given[node.refers]
    if not node.children:
        return node.refers or program.text(node)
    inner = ",".join(spelled(child, program, given) for child in node.children)
    return f"{node.kind} {node.operator}{node.name}({inner})"


def elements_around(record: BufferRecord, kernels: Sequence[Sequence[Step]]) -> dict[str, int]:
    """Of how many elements a work item reads each member in one place of its loops: 1 of its own element alone, 5 of a
    five-point stencil."""
    found: dict[str, int] = {}

    def gone_through(steps: Sequence[Step]) -> None:
        here: dict[str, set[str]] = {}
        for step in steps:
            if isinstance(step, Repeat):
                gone_through(step.body)
            elif step.field is not None and step.field.startswith(f"{record.name}.") and step.kind != "written":
                here.setdefault(step.field.removeprefix(f"{record.name}."), set()).add(step.element)
        for name, elements in here.items():
            found[name] = max(len(elements), found.get(name, 1))

    for steps in kernels:
        gone_through(steps)
    return found
