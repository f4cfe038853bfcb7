"""Index maps as sympy expressions and as C11 functions. sympy is imported only when it is asked for."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from layout_advise.errors import AlgebraError, MachineError
from layout_advise.layoutalgebra.rules.index_map import OFFSET, Guard, IndexMap
from layout_advise.layoutalgebra.sets.index_expressions import (
    Digit,
    Expr,
    Index,
    LinearIndex,
    Nth,
    Rank,
    digit,
    render,
    spelled_out,
)
from layout_advise.layoutalgebra.sets.index_set import IndexSet
from layout_advise.layoutalgebra.terms.term import Leaf, Term, factors_of, terms_of

TABLE = 1 << 16
"""Elements of an irregular set that a table in C may have."""


def _sympy() -> Any:
    try:
        import sympy
    except ImportError as error:
        hint = "pip install 'layout-advise[algebra]'"
        raise MachineError("cannot write the map for sympy", "sympy is not installed", hint) from error
    return sympy


def to_sympy(mapping: IndexMap) -> Any:
    """The map as a sympy expression in ``Symbol("x", integer=True, nonnegative=True)``; a ``Piecewise`` for several pieces.

    Raises :class:`AlgebraError` where an irregular set of more than :data:`TABLE` elements would have to be listed, and
    :class:`MachineError` without sympy (``pip install layout-advise[algebra]``).
    """
    sympy = _sympy()
    if mapping.uniform is not None:
        return expr_to_sympy(mapping.uniform)
    cases = []
    for piece in mapping.pieces:
        held = [_member_sympy(expr, term) for expr, term in piece.guard]
        cases.append((expr_to_sympy(piece.to), sympy.And(*held)))
    return sympy.Piecewise(*cases)


def expr_to_sympy(expr: Expr) -> Any:
    """One expression; indices become non-negative integer symbols of their names."""
    sympy = _sympy()
    match spelled_out(expr):
        case Index(name=name):
            return sympy.Symbol(name, integer=True, nonnegative=True)
        case Digit(of=of, div=div, mod=mod):
            value = sympy.floor(expr_to_sympy(of) / div)
            return sympy.Mod(value, mod) if mod else value
        case LinearIndex(terms=terms, const=const):
            return sympy.Integer(const) + sum(coef * expr_to_sympy(part) for coef, part in terms)
        case Rank(of=of, indices=indices):
            at = expr_to_sympy(of)
            below = (sympy.ceiling((at - run[0]) / run.step) for run in indices.runs)
            counts = (sympy.Max(0, sympy.Min(len(run), number)) for run, number in zip(indices.runs, below, strict=True))
            return sum(counts, sympy.Integer(0))
        case Nth(of=of, indices=indices):
            return _nth_sympy(expr_to_sympy(of), indices)


def _nth_sympy(number: Any, indices: IndexSet) -> Any:
    sympy = _sympy()
    cases, done = [], 0
    ordered = all(a[-1] < b[0] for a, b in pairwise(indices.runs))
    for run in indices.runs if ordered else [range(v, v + 1) for v in _few(indices)]:
        done += len(run)
        cases.append((run[0] + run.step * (number - (done - len(run))), number < done))
    return sympy.Piecewise(*cases[:-1], (cases[-1][0], True))


def _few(indices: IndexSet) -> list[int]:
    if indices.count > TABLE:
        why = f"{indices.count} irregular elements would have to be listed"
        raise AlgebraError("the index map is too large to print", why, "compact a factor of fewer places")
    return list(indices)


def _member_sympy(expr: Expr, term: Term) -> Any:
    sympy = _sympy()

    def leaf(at: Expr, indices: IndexSet) -> Any:
        value = expr_to_sympy(at)
        return sympy.Or(*(
            sympy.And(value >= run[0], value <= run[-1], sympy.Eq(sympy.Mod(value - run[0], run.step), 0))
            for run in indices.runs
        ))  # fmt: skip

    parts = (sympy.And(*(leaf(at, part.indices) for at, part in _digits(expr, row))) for row in terms_of(term))
    return sympy.Or(*parts)


def _digits(expr: Expr, term: Term) -> list[tuple[Expr, Leaf]]:
    """The index of ``expr`` in each factor of a product, where not all of the factor is accessed."""
    found, inner = [], 1
    for factor in reversed(factors_of(term)):
        if not isinstance(factor, Leaf):
            raise AlgebraError("not a product of S and A", str(term), "simplify() multiplies it out")
        if not factor.is_array:
            found.append((digit(expr, inner, factor.size), factor))
        inner *= factor.size
    return found


class _C:
    """Writes expressions as C and gathers the tables that they need."""

    def __init__(self, name: str) -> None:
        self.name, self.tables = name, list[str]()

    def expr(self, expr: Expr) -> str:
        return render(spelled_out(expr), self._irregular, "/")

    def _irregular(self, part: Rank | Nth, kind: str) -> str:
        at, indices = self.expr(part.of), part.indices
        if kind == "rank":
            return "(" + " + ".join(f"below({at}, {run[0]}u, {run.step}u, {len(run)}u)" for run in indices.runs) + ")"
        table = f"{self.name}_nth_{len(self.tables)}"
        values = ", ".join(f"{value}u" for value in _few(indices))
        self.tables.append(f"static const uint64_t {table}[] = {{{values}}};")
        return f"{table}[{at}]"

    def holds(self, guard: Guard) -> str:
        tests = [self._member(expr, term) for expr, term in guard]
        return " && ".join(test for test in tests if test) or "1"

    def _member(self, expr: Expr, term: Term) -> str:
        rows = []
        for row in terms_of(term):
            tests = [self._in(self.expr(at), leaf.indices) for at, leaf in _digits(expr, row)]
            rows.append(" && ".join(tests) or "1")
        return rows[0] if len(rows) == 1 else "(" + " || ".join(f"({row})" for row in rows) + ")"

    def _in(self, at: str, indices: IndexSet) -> str:
        return "(" + " || ".join(f"among({at}, {run[0]}u, {run.step}u, {run[-1]}u)" for run in indices.runs) + ")"


def to_c(mapping: IndexMap, name: str = "place") -> str:
    """A self-contained piece of C11: ``static inline uint64_t name(uint64_t x)`` and what it needs.

    For accessed offsets only, as the map. Raises :class:`AlgebraError` where a table would pass :data:`TABLE` elements.
    """
    writer = _C(name)
    if mapping.uniform is not None:
        lines = [f"    return {writer.expr(mapping.uniform)};"]
    else:
        lines = [f"    if ({writer.holds(p.guard)})\n        return {writer.expr(p.to)};" for p in mapping.pieces]
        lines.append(f"    return {OFFSET}; /* not accessed */")
    body = "\n".join(lines)
    helpers = [text for word, text in _HELPERS.items() if f"{word}(" in body]
    head = f"/* {mapping.old} -> {mapping.new} */" if len(str(mapping.old)) < 200 else ""
    function = f"{head}\nstatic inline uint64_t {name}(uint64_t {OFFSET})\n{{\n{body}\n}}\n"
    return "\n".join(["#include <stdint.h>", "", *helpers, *writer.tables, function])


_HELPERS = {
    "below": """/* how many of first, first + step, ... (count of them) are smaller than v */
static inline uint64_t below(uint64_t v, uint64_t first, uint64_t step, uint64_t count)
{
    uint64_t n = v <= first ? 0 : (v - first + step - 1) / step;
    return n < count ? n : count;
}
""",
    "among": """/* whether v is one of first, first + step, ..., last */
static inline int among(uint64_t v, uint64_t first, uint64_t step, uint64_t last)
{
    return v >= first && v <= last && (v - first) % step == 0;
}
""",
}
