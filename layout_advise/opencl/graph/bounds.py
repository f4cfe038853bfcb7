"""How often a kernel's loops run, as far as the source says; what it leaves open is assumed as in the paper.

Kofler, Cosenza, Fahringer: Automatic data layout optimizations for GPUs (Euro-Par 2015), section 3: a bound that is the size
of a work group counts as 256, that of the NDRange as 10^6, any other as 512,000.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from layout_advise.apply.rewrite.program import SourceProgram, peeled, uncast
from layout_advise.apply.rewrite.syntax import Syntax

GROUP_ITEMS = 256
"""Iterations assumed of a loop over a work group."""
RANGE_ITEMS = 1_000_000
"""Iterations assumed of a loop over an NDRange."""
OTHER_ITEMS = 512_000
"""Iterations assumed of any other loop whose bound is not known."""

_SIZES = {"get_local_size": GROUP_ITEMS, "get_enqueued_local_size": GROUP_ITEMS, "get_global_size": RANGE_ITEMS,
          "get_num_groups": RANGE_ITEMS // GROUP_ITEMS, "get_local_id": 0, "get_global_id": 0, "get_group_id": 0,
          "get_global_offset": 0, "get_local_linear_id": 0, "get_global_linear_id": 0}  # fmt: skip
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*")
_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b if b else a,
    "%": lambda a, b: a % b if b else 0,
    "<<": lambda a, b: a << min(max(b, 0), 63),
    ">>": lambda a, b: a >> min(max(b, 0), 63),
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
}


class LoopBounds:
    """Evaluates the bounds of one program's loops; ``known`` are values of kernel parameters, by name."""

    def __init__(self, program: SourceProgram, known: Mapping[str, int] | None = None) -> None:
        self.program, self.known = program, dict(known or {})
        self.variables = {
            node.declares: node
            for unit in program.units
            for top in unit.declarations
            for node in top.walk()
            if node.kind in ("VAR_DECL", "PARM_DECL") and node.declares
        }
        self.bound: dict[str, int] = {}
        """Values of parameters of functions that are being gone through."""

    def value(self, node: Syntax, depth: int = 0) -> int | None:
        """The value of an expression; None for what is not known."""
        node = uncast(node)
        if node.kind in ("INTEGER_LITERAL", "CHARACTER_LITERAL"):
            found = _NUMBER.fullmatch(self.program.text(node))
            return int(found[1], 0 if found[1][:2] in ("0x", "0X") else 10) if found else None
        if node.kind == "CALL_EXPR":
            return self._called(node, depth)
        if node.kind == "UNARY_OPERATOR" and node.operator in ("-", "+"):
            inner = self.value(node.children[0], depth)
            return None if inner is None else -inner if node.operator == "-" else inner
        if node.kind == "BINARY_OPERATOR" and node.operator in _ARITHMETIC:
            sides = [self.value(child, depth) for child in node.children]
            if sides[0] is None or sides[1] is None:
                return None
            return _ARITHMETIC[node.operator](sides[0], sides[1])
        if node.kind == "CXX_UNARY_EXPR" and node.children:
            return node.children[-1].shape.size or None
        if node.kind == "DECL_REF_EXPR":
            return self._variable(node, depth)
        return None

    def _called(self, node: Syntax, depth: int) -> int | None:
        if node.name in _SIZES:
            return _SIZES[node.name]
        if node.name in ("min", "max") and len(node.children) == 3:
            sides = [self.value(child, depth) for child in node.children[1:]]
            known = [side for side in sides if side is not None]
            return (min(known) if node.name == "min" else max(known)) if known else None
        return None

    def _variable(self, node: Syntax, depth: int) -> int | None:
        if node.refers in self.bound:
            return self.bound[node.refers]
        found = self.variables.get(node.refers)
        if found is None or depth > 20:
            return None
        if found.kind == "PARM_DECL":
            return self.known.get(found.name)
        initial = found.children[-1] if found.children and found.children[-1].kind != "TYPE_REF" else None
        return None if initial is None else self.value(initial, depth + 1)

    def trips(self, loop: Syntax) -> int:
        """How often the body of a loop runs: at least once."""
        limit = None
        if loop.kind == "FOR_STMT" and len(loop.children) >= 3:
            limit = self._counted(loop)
        return max(1, limit if limit is not None else self._assumed(loop))

    def _assumed(self, loop: Syntax) -> int:
        """The assumption for a loop whose condition mentions a size, or nothing that is known."""
        head = loop.children[:-1] if loop.kind != "DO_STMT" else loop.children[-1:]
        named = {inner.name for node in head for inner in node.walk() if inner.kind == "CALL_EXPR"}
        if "get_local_size" in named:
            return GROUP_ITEMS
        return RANGE_ITEMS if "get_global_size" in named else OTHER_ITEMS

    def _counted(self, loop: Syntax) -> int | None:
        condition = next((c for c in map(peeled, loop.children[:-1]) if c.operator in ("<", "<=", ">", ">=", "!=")), None)
        step = next((c for c in map(peeled, loop.children[:-1]) if _steps(c)), None)
        if condition is None or step is None:
            return None
        variable = uncast(step.children[0])
        left, right = condition.children
        flipped = any(inner.refers == variable.refers for inner in right.walk() if inner.kind == "DECL_REF_EXPR")
        bound = self.value(left if flipped else right)
        start = self._start(loop, variable)
        if bound is None:
            return None
        return _count(step, self.value, start or 0, bound, condition.operator)

    def _start(self, loop: Syntax, variable: Syntax) -> int | None:
        """The value that the loop's variable begins with."""
        first = peeled(loop.children[0])
        if first.kind == "BINARY_OPERATOR" and first.operator == "=" and peeled(first.children[0]).refers == variable.refers:
            return self.value(first.children[1])
        return self._variable(variable, 0)


def _steps(node: Syntax) -> bool:
    """True for an expression that moves a variable."""
    if node.kind == "UNARY_OPERATOR":
        return node.operator.removeprefix("post") in ("++", "--")
    return node.kind == "COMPOUND_ASSIGNMENT_OPERATOR" and node.operator in ("+=", "-=", "*=", "/=", "<<=", ">>=")


def _count(step: Syntax, value: Callable[[Syntax], int | None], start: int, bound: int, relation: str) -> int:
    """Iterations from ``start`` until the condition fails."""
    amount = 1 if step.kind == "UNARY_OPERATOR" else abs(value(step.children[1]) or 1)
    operator = step.operator.removeprefix("post")
    if operator in ("++", "--", "+=", "-="):
        distance = abs(bound - start) + (relation in ("<=", ">="))
        return -(-distance // amount)
    factor = 2**amount if operator in ("<<=", ">>=") else amount
    least, most = sorted((max(1, abs(start)), max(1, abs(bound))))
    return int(math.log(most / least, factor)) + 1 if factor > 1 else 1
