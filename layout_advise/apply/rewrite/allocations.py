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
    if not call.foreign and not _allocates(program, call.refers):
        return None
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


def _allocates(program: SourceProgram, function: str, seen: frozenset[str] = frozenset()) -> bool:
    """True if a function of the program calls one that allocates, or gives back what it is given."""
    if function not in program.functions or function in seen:
        return False
    body = program.functions[function]
    calls = [node for node in body.walk() if node.kind == "CALL_EXPR"]
    foreign = {node.name for node in calls if node.foreign}
    if foreign & {*BYTES, "calloc", "posix_memalign"} or _gives_back_any(program, function):
        return not foreign & {"free"}
    return any(_allocates(program, node.refers, seen | {function}) for node in calls if not node.foreign)


def _gives_back_any(program: SourceProgram, function: str) -> bool:
    return any(_gives_back(program, function, k) for k in range(len(program.parameters(function) or ())))


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


def is_null(program: SourceProgram, node: Syntax) -> bool:
    """True for a null pointer as one writes it."""
    node = uncast(node)
    return node.kind in ("INTEGER_LITERAL", "GNU_NULL_EXPR") and program.text(node) in ("0", "NULL", "((void *)0)")


def gives_null(program: SourceProgram, function: str) -> bool:
    """True if a function of the program returns a null pointer, always: ``p = released(p);``."""
    body = program.functions.get(function)
    returns = [node for node in body.walk() if node.kind == "RETURN_STMT"] if body is not None else []
    return bool(returns) and all(node.children and is_null(program, node.children[0]) for node in returns)


def _gives_back(program: SourceProgram, function: str, k: int) -> bool:
    """True if a function of the program returns its ``k``-th parameter, always."""
    parameters = program.parameters(function)
    if parameters is None or k >= len(parameters):
        return False
    returns = [node for node in program.functions[function].walk() if node.kind == "RETURN_STMT"]
    return bool(returns) and all(
        node.children and uncast(node.children[0]).refers == parameters[k].declares for node in returns
    )


def releases(program: SourceProgram, function: str, k: int, seen: frozenset[str] = frozenset()) -> bool:
    """True if a function of the program only frees its ``k``-th parameter, as wrappers of ``free`` do."""
    parameters = program.parameters(function)
    if parameters is None or k >= len(parameters) or parameters[k].shape.text != "void *" or function in seen:
        return False
    frees = False
    for use in program.uses[parameters[k].declares]:
        up = program.parent(use, "UNEXPOSED_EXPR", "PAREN_EXPR")
        if up is None or (up.kind not in ("IF_STMT", "CALL_EXPR") and up.operator not in ("!", "==", "!=", "&&", "||")):
            return False
        if up.kind == "CALL_EXPR":
            at = [place for place, argument in enumerate(arguments(up)) if uncast(argument) is use]
            known = (up.foreign and up.name == "free") or (
                not up.foreign and bool(at) and releases(program, up.refers, at[0], seen | {function})
            )
            if not known:
                return False
            frees = True
    return frees
