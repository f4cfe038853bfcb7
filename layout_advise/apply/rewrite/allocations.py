"""How many elements an allocation is for, from the expression that computes its bytes."""

from __future__ import annotations

from collections.abc import Callable

from layout_advise.apply.rewrite.program import SourceProgram, arguments, uncast
from layout_advise.apply.rewrite.syntax import Syntax
from layout_advise.apply.rewrite.target import Target

Render = Callable[[Syntax], str]
"""From a node to its new text."""

BYTES = {"malloc": 0, "valloc": 0, "aligned_alloc": 1, "memalign": 1}
IMPURE = ("CALL_EXPR", "COMPOUND_ASSIGNMENT_OPERATOR")


def allocated(program: SourceProgram, target: Target, node: Syntax, render: Render) -> str | None:
    """C for the number of elements that a ``void *`` expression allocates; None where that cannot be told."""
    call = uncast(node)
    if call.kind != "CALL_EXPR" or call.name == "realloc":
        return None
    given = arguments(call)
    if call.foreign and call.name not in (*BYTES, "calloc"):
        return None
    if call.foreign and call.name != "calloc":
        return _elements(program, target, given[BYTES[call.name]], render)
    sized = [argument for argument in given if _is_size(program, target, argument)]
    if len(given) == 2 and len(sized) == 1:
        other = next(argument for argument in given if argument is not sized[0])
        return _pure(other, render)
    if call.foreign:
        return None
    inner = [argument for argument in given if uncast(argument).kind == "CALL_EXPR" and argument.shape.form == "pointer"]
    if len(inner) == 1:
        k = given.index(inner[0])
        return allocated(program, target, inner[0], render) if _gives_back(program, call.refers, k) else None
    mentions = [argument for argument in given if any(_is_size(program, target, node) for node in argument.walk())]
    return _elements(program, target, mentions[0], render) if len(mentions) == 1 else None


def _is_size(program: SourceProgram, target: Target, node: Syntax) -> bool:
    """``sizeof`` the record, in brackets or not."""
    node = uncast(node)
    if node.kind != "CXX_UNARY_EXPR" or not node.children or not program.text(node).startswith("sizeof"):
        return False
    return target.is_value(uncast(node.children[-1]).shape) and "*" not in _type_named(program, node)


def _type_named(program: SourceProgram, node: Syntax) -> str:
    """The text in the brackets of ``sizeof (type)``; empty for an expression."""
    return program.text(node).split("(", 1)[-1] if node.children[-1].kind == "TYPE_REF" else ""


def _elements(program: SourceProgram, target: Target, size: Syntax, render: Render) -> str | None:
    """``n`` of ``n * sizeof(struct T)``; else the bytes over the record's."""
    if _is_size(program, target, size):
        return "1"
    product = uncast(size)
    if product.kind == "BINARY_OPERATOR" and product.operator == "*":
        left, right = product.children
        for factor, other in ((left, right), (right, left)):
            if _is_size(program, target, factor):
                return _pure(other, render)
    pure = _pure(size, render)
    return None if pure is None or target.new_size != target.size else f"({pure}) / sizeof({target.spelling})"


def _pure(node: Syntax, render: Render) -> str | None:
    """Its text where it may be computed twice."""
    for part in node.walk():
        if part.kind in IMPURE or part.operator in ("=", "++", "--", "post++", "post--"):
            return None
    return render(node)


def _gives_back(program: SourceProgram, function: str, k: int) -> bool:
    """True if a function of the program returns its ``k``-th parameter, always."""
    parameters = program.parameters(function)
    if parameters is None or k >= len(parameters):
        return False
    returns = [node for node in program.functions[function].walk() if node.kind == "RETURN_STMT"]
    return bool(returns) and all(
        node.children and uncast(node.children[0]).refers == parameters[k].declares for node in returns
    )
