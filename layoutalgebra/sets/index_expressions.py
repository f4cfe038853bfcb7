"""Integer expressions of an offset or of indices: what index maps are made of.

Everything is built from an index, digits of it (``x // div % mod``), ranks in an index set (rule 7) and their inverse, and
sums with integer coefficients. The constructors :func:`linear`, :func:`digit`, :func:`rank` and :func:`nth` simplify while
building, with the bounds of their operands, and so may return another class than their name says. Simplifications hold on
accessed offsets, the only ones that an index map is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from math import gcd

from layout_advise.layoutalgebra.sets.index_set import IndexSet
from layout_advise.layoutalgebra.sets.set_operations import progression


@dataclass(frozen=True, slots=True)
class Index:
    """A variable with values in ``[0, size)``."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Digit:
    """``of // div % mod``; no remainder is taken where ``mod`` is 0."""

    of: Expr
    div: int
    mod: int


@dataclass(frozen=True, slots=True)
class Rank:
    """How many elements of ``indices`` are smaller than ``of``, which is one of them."""

    of: Expr
    indices: IndexSet


@dataclass(frozen=True, slots=True)
class Nth:
    """The element of ``indices`` of rank ``of``."""

    of: Expr
    indices: IndexSet


@dataclass(frozen=True, slots=True)
class LinearIndex:
    """``const + sum(coef * expr)``; greatest coefficients first, no expression twice."""

    terms: tuple[tuple[int, Expr], ...]
    const: int = 0


Expr = Index | Digit | Rank | Nth | LinearIndex


def bounds(expr: Expr) -> tuple[int, int]:
    """The least and the greatest value that ``expr`` may take."""
    match expr:
        case Index(size=size):
            return 0, size - 1
        case Digit(of=of, div=div, mod=mod):
            low, high = (bound // div for bound in bounds(of))
            return (0, min(mod - 1, high) if low >= 0 else mod - 1) if mod else (low, high)
        case Rank(indices=indices):
            return 0, indices.count - 1
        case Nth(indices=indices):
            return indices.first, indices.last
        case LinearIndex(terms=terms, const=const):
            ends = [sorted(coef * bound for bound in bounds(part)) for coef, part in terms]
            return const + sum(low for low, _ in ends), const + sum(high for _, high in ends)


def indices_of(expr: Expr) -> frozenset[str]:
    """The names of the indices in ``expr``."""
    match expr:
        case Index(name=name):
            return frozenset({name})
        case Digit(of=of) | Rank(of=of) | Nth(of=of):
            return indices_of(of)
        case LinearIndex(terms=terms):
            return frozenset().union(*(indices_of(part) for _, part in terms))


def evaluate(expr: Expr, values: Mapping[str, int]) -> int:
    """The value at the given values of its indices."""
    match expr:
        case Index(name=name):
            return values[name]
        case Digit(of=of, div=div, mod=mod):
            quotient = evaluate(of, values) // div
            return quotient % mod if mod else quotient
        case Rank(of=of, indices=indices):
            return indices.rank(evaluate(of, values))
        case Nth(of=of, indices=indices):
            return indices.nth(evaluate(of, values))
        case LinearIndex(terms=terms, const=const):
            return const + sum(coef * evaluate(part, values) for coef, part in terms)


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """``expr`` with its indices replaced, simplified anew."""
    match expr:
        case Index(name=name):
            return values.get(name, expr)
        case Digit(of=of, div=div, mod=mod):
            return digit(substitute(of, values), div, mod)
        case Rank(of=of, indices=indices):
            return rank(substitute(of, values), indices)
        case Nth(of=of, indices=indices):
            return nth(substitute(of, values), indices)
        case LinearIndex(terms=terms, const=const):
            return linear(((coef, substitute(part, values)) for coef, part in terms), const)


def constant(value: int) -> Expr:
    """An expression without indices."""
    return LinearIndex((), value)


def linear(terms: Iterable[tuple[int, Expr]], const: int = 0) -> Expr:
    """``const + sum(coef * expr)``, with sums in sums flattened and digits that belong together joined."""
    found: dict[Expr, int] = {}
    for coef, part in terms:
        if isinstance(part, LinearIndex):
            const += coef * part.const
            for inner, atom in part.terms:
                found[atom] = found.get(atom, 0) + coef * inner
        else:
            found[part] = found.get(part, 0) + coef
    found = {part: coef for part, coef in found.items() if coef}
    while (joined := _join_two(found)) is not None:
        found = joined
    if any(isinstance(part, LinearIndex) for part in found):
        return linear(((coef, part) for part, coef in found.items()), const)
    if const == 0 and len(found) == 1 and next(iter(found.values())) == 1:
        return next(iter(found))
    return LinearIndex(tuple(sorted(((c, p) for p, c in found.items()), key=lambda t: (-t[0], show(t[1])))), const)


def _join_two(found: dict[Expr, int]) -> dict[Expr, int] | None:
    """``c·m·(x // (d·m) % n) + c·(x // d % m)`` is ``c·(x // d % (m·n))``."""
    for low, coef in found.items():
        if not isinstance(low, Digit) or not low.mod:
            continue
        for high, other in found.items():
            of, div, mod = (high.of, high.div, high.mod) if isinstance(high, Digit) else (high, 1, 0)
            if of == low.of and div == low.div * low.mod and other == coef * low.mod:
                rest = {part: c for part, c in found.items() if part not in (low, high)}
                merged = digit(of, low.div, mod * low.mod)
                rest[merged] = rest.get(merged, 0) + coef
                return rest
    return None


def digit(of: Expr, div: int, mod: int = 0) -> Expr:
    """``of // div % mod``."""
    low, high = bounds(of)
    if low >= 0 and mod and high // div < mod:
        mod = 0
    if div == 1 and mod == 0:
        return of
    if mod == 1 or (low == high and mod) or (low >= 0 and high < div):
        return constant(low // div % mod if low == high and mod > 1 else 0)
    if isinstance(of, Digit) and (nested := _digit_of_digit(of, div, mod)) is not None:
        return nested
    if isinstance(of, LinearIndex):
        return _digit_of_sum(of, div, mod)
    return Digit(of, div, mod)


def _digit_of_digit(of: Digit, div: int, mod: int) -> Expr | None:
    if of.mod == 0:
        return digit(of.of, of.div * div, mod)
    if of.mod % div == 0 and (mod == 0 or (of.mod // div) % mod == 0):
        return digit(of.of, of.div * div, mod or of.mod // div)
    return None


def _digit_of_sum(of: LinearIndex, div: int, mod: int) -> Expr:
    """``(g·u + r) // div`` is ``u // (div / g)`` for ``0 <= r < g`` and g a divisor of ``div``; alike for remainders.

    What is a multiple of ``div`` (or of ``mod``, without a division) is taken out first.
    """
    by = div if div > 1 else mod
    rest = linear(((coef, part) for coef, part in of.terms if coef % by), of.const % by)
    if bounds(rest)[0] >= 0 and rest != of:
        if div == 1:
            return digit(rest, 1, mod)
        multiples = [(coef // div, part) for coef, part in of.terms if coef % div == 0]
        return digit(linear([*multiples, (1, digit(rest, div))], of.const // div), 1, mod)
    for place in range(len(of.terms), -1, -1):
        great = gcd(div if div > 1 else mod, *(coef for coef, _ in of.terms[:place]))
        if great == 1:
            continue
        upper = linear(((coef // great, part) for coef, part in of.terms[:place]), of.const // great)
        rest = linear(of.terms[place:], of.const % great)
        low, high = bounds(rest)
        if low >= 0 and high < great:
            if div > 1:
                return digit(digit(upper, div // great), 1, mod) if mod else digit(upper, div // great)
            return linear([(great, digit(upper, 1, mod // great)), (1, rest)])
    return Digit(of, div, mod)


def rank(of: Expr, indices: IndexSet) -> Expr:
    """The number of elements of ``indices`` below ``of``."""
    if indices.count == 1:
        return constant(0)
    if indices.last == indices.count - 1:  # 0, 1, 2, ...
        return of
    return of.of if isinstance(of, Nth) and of.indices == indices else Rank(of, indices)


def nth(of: Expr, indices: IndexSet) -> Expr:
    """The inverse of :func:`rank`."""
    if indices.count == 1:
        return constant(indices.first)
    if indices.last == indices.count - 1:
        return of
    return of.of if isinstance(of, Rank) and of.indices == indices else Nth(of, indices)


def spelled_out(expr: Expr) -> Expr:
    """``expr`` with ranks in single progressions written as quotients: only ranks in irregular sets remain."""
    match expr:
        case Rank(of=of, indices=indices) | Nth(of=of, indices=indices):
            inner, steps = spelled_out(of), progression(indices)
            if steps is None:
                return Rank(inner, indices) if isinstance(expr, Rank) else Nth(inner, indices)
            if isinstance(expr, Nth):
                return linear([(steps.step, inner)], steps.start)
            return linear([(1, digit(inner, steps.step))], -(steps.start // steps.step))
        case Digit(of=of, div=div, mod=mod):
            return digit(spelled_out(of), div, mod)
        case LinearIndex(terms=terms, const=const):
            return linear(((coef, spelled_out(part)) for coef, part in terms), const)
    return expr


def show(expr: Expr) -> str:
    """As Python would write it: ``256*(x % 4) + x // 4``."""
    return render(expr, lambda part, kind: f"{kind}({show(part.of)}, {list(islice(part.indices, 8))})")


def render(expr: Expr, irregular: Callable[[Rank | Nth, str], str], slash: str = "//") -> str:
    """The expression as text; ``irregular`` writes ranks and their inverses, ``slash`` divides integers."""

    def again(part: Expr) -> str:
        return render(part, irregular, slash)

    def inside(part: Expr) -> str:
        return again(part) if isinstance(part, Index | Rank | Nth) else f"({again(part)})"

    match expr:
        case Index(name=name):
            return name
        case Rank():
            return irregular(expr, "rank")
        case Nth():
            return irregular(expr, "nth")
        case Digit(of=of, div=div, mod=mod):
            text = inside(of) if div == 1 else f"{inside(of)} {slash} {div}"
            return text if not mod else f"{text} % {mod}"
        case LinearIndex(terms=terms, const=const):
            parts = [again(part) if coef == 1 else f"{coef}*{inside(part)}" for coef, part in terms]
            tail = [str(const)] if const > 0 or not parts else []
            text = " + ".join([*parts, *tail])
            return f"{text} - {-const}" if const < 0 and parts else text
