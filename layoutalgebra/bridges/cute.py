"""CuTe's ``shape:stride`` for homogeneous terms, both ways, and composition.

A CuTe layout maps ``i`` (first mode fastest) to the sum of its coordinates times the strides. A term is homogeneous if it is
one product of arrays and evenly spaced S; its layout lists the accessed offsets, ascending. CuTe has no origin, so a term
whose first accessed offset is not 0 gives a layout with an ``offset`` besides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.rules.index_map import IndexMap
from layout_advise.layoutalgebra.sets.index_expressions import Digit, Index, LinearIndex, spelled_out
from layout_advise.layoutalgebra.sets.set_operations import progression
from layout_advise.layoutalgebra.terms.term import Leaf, S, Term, factors_of, product, terms_of

TRIED = 1 << 16
"""Compositions up to this size are compared with the definition at every index."""


@dataclass(frozen=True, slots=True)
class CuteLayout:
    """``shape:stride``, flat, first mode fastest; ``offset`` is added."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.stride) or not self.shape:
            raise AlgebraError(
                "not a layout", f"{len(self.shape)} sizes and {len(self.stride)} strides", "give one for each"
            )
        if min(self.shape) < 1 or min(self.stride) < 0:
            raise AlgebraError("not a layout", f"{self}", "sizes start at 1, strides at 0")

    @property
    def size(self) -> int:
        """How many indices it has."""
        return prod(self.shape)

    def __call__(self, index: int) -> int:
        total = self.offset
        for size, stride in zip(self.shape[:-1], self.stride[:-1], strict=True):
            index, coordinate = divmod(index, size)
            total += coordinate * stride
        return total + index * self.stride[-1]

    def __str__(self) -> str:
        text = f"{_tuple(self.shape)}:{_tuple(self.stride)}"
        return f"{self.offset}+{text}" if self.offset else text

    def coalesced(self) -> CuteLayout:
        """The same function with the fewest modes."""
        modes: list[tuple[int, int]] = []
        for size, stride in zip(self.shape, self.stride, strict=True):
            if size == 1:
                continue
            if modes and stride == modes[-1][0] * modes[-1][1]:
                modes[-1] = (modes[-1][0] * size, modes[-1][1])
            else:
                modes.append((size, stride))
        return _layout(modes, self.offset)


def parse_cute(text: str) -> CuteLayout:
    """From ``(2,(3,4)):(1,(2,6))``; nesting is flattened, which does not change the function.

    Raises :class:`AlgebraError` where the text is no layout, or shape and stride are nested differently.
    """
    match = re.fullmatch(r"\s*(?:(\d+)\s*\+)?\s*([\d(),\s]+):([\d(),\s]+)", text)
    if match is None:
        raise AlgebraError("not a layout", repr(text), "write shape:stride, as (2,256):(1,4)")
    shape, stride = match.group(2).strip(), match.group(3).strip()
    if re.sub(r"\d+|\s", "", shape) != re.sub(r"\d+|\s", "", stride):
        raise AlgebraError("not a layout", f"{shape} and {stride} are nested differently", "give each size its stride")
    sizes, strides = (tuple(map(int, re.findall(r"\d+", part))) for part in (shape, stride))
    return CuteLayout(sizes, strides, int(match.group(1) or 0))


def to_cute(term: Term) -> CuteLayout:
    """The layout whose i-th value is the term's i-th accessed offset.

    Raises :class:`AlgebraError` for a term that is not homogeneous: a ⊕, or an S that is not evenly spaced.
    """
    if len(terms_of(term)) > 1:
        raise AlgebraError("no shape:stride", "the term is a ⊕", "convert its terms one by one")
    modes, offset, weight = [], 0, 1
    for factor in reversed(factors_of(term)):
        steps = progression(factor.indices) if isinstance(factor, Leaf) else None
        if steps is None:
            raise AlgebraError("no shape:stride", f"{factor} is not evenly spaced", "compact it first (rule 7)")
        modes.append((len(steps), steps.step * weight))
        offset += steps.start * weight
        weight *= factor.size
    return _layout([mode for mode in modes if mode[0] > 1], offset)


def from_cute(layout: CuteLayout, size: int | None = None) -> Term:
    """The term that accesses what the layout reaches, its factors cut at the strides; ``size`` of the domain.

    Raises :class:`AlgebraError` where the strides do not nest (each a multiple of the one below and beyond its reach): then
    it is no product.
    """
    modes = sorted((stride, count) for count, stride in zip(layout.shape, layout.stride, strict=True) if count > 1)
    strides, counts = [stride for stride, _ in modes], dict(modes)
    if 0 in counts or len(counts) < len(modes):
        raise AlgebraError("no term", f"{layout} reaches an offset twice", "drop the mode that repeats it")
    reach = layout.offset + sum(stride * (count - 1) for stride, count in modes) + 1
    whole = max(strides, default=1)
    total = size or -(-reach // whole) * whole
    if total < reach:
        raise AlgebraError("no term", f"{layout} reaches beyond {total}", f"give a size of at least {reach}")
    bounds = [*([1] if not strides or strides[0] > 1 else []), *strides, total]
    factors: list[Term] = []
    for low, high in pairwise(bounds):
        if high % low:
            raise AlgebraError("no term", f"{high} is no multiple of {low} in {layout}", "strides must nest")
        room, count, first = high // low, counts.get(low, 1), layout.offset // low % (high // low)
        if first + count > room:
            raise AlgebraError("no term", f"the mode {count}:{low} of {layout} runs over the next one", "strides must nest")
        factors.append(S([range(first, first + count)], room))
    return product(reversed(factors))


def map_to_cute(mapping: IndexMap) -> CuteLayout:
    """An index map as a layout: from the old offset (every one, accessed or not) to the new one.

    Raises :class:`AlgebraError` where it is none: ⊕ terms that move differently, or ranks that do not start at 0.
    """
    expr = None if mapping.uniform is None else spelled_out(mapping.uniform)
    parts = expr.terms if isinstance(expr, LinearIndex) else ((1, expr),)
    digits: list[tuple[int, int, int]] = []
    for coef, part in parts:
        if isinstance(part, Index):
            digits.append((1, 0, coef))
        elif isinstance(part, Digit) and isinstance(part.of, Index):
            digits.append((part.div, part.mod, coef))
        else:
            why = f"the map {mapping} is not linear in digits of x"
            raise AlgebraError("no shape:stride", why, "convert its terms one by one")
    modes, place = [], 1
    for div, mod, coef in sorted(digits):
        if div % place or coef < 0:
            raise AlgebraError("no shape:stride", f"the digits of {mapping} overlap", "convert the rewritings one by one")
        if div > place:
            modes.append((div // place, 0))  # members that are never accessed apart
        count = mod or -(-mapping.old.size // div)
        modes.append((count, coef))
        place = div * count
    return _layout(modes, expr.const if isinstance(expr, LinearIndex) else 0)


def compose(outer: CuteLayout, inner: CuteLayout) -> CuteLayout:
    """The layout ``i -> outer(inner(i))``; the last mode of ``outer`` goes on for ever, as CuTe's does.

    Raises :class:`AlgebraError` where that function is not a layout, or cannot be seen to be one: never a wrong result.
    """
    size = inner.size
    if size <= TRIED:
        fitted = _fitted([outer(inner(i)) for i in range(size)])
        if fitted is None:
            raise AlgebraError(
                f"{outer} after {inner} is no layout", "its values are not evenly spaced", "cut the inner one"
            )
        return fitted
    if inner.offset:
        raise AlgebraError(f"{outer} after {inner} cannot be composed", "the inner one has an offset", "shift the outer one")
    ordered = sorted(zip(inner.stride, inner.shape, strict=True))
    if any(high % (low * count) for (low, count), (high, _) in pairwise(ordered) if low):
        raise AlgebraError(f"{outer} after {inner} cannot be composed", "the inner strides do not nest", "sort or cut them")
    coarse, modes = outer.coalesced(), list[tuple[int, int]]()
    for count, stride in zip(inner.shape, inner.stride, strict=True):
        modes.extend(_walk(coarse, count, stride))
    return _layout(modes, outer.offset).coalesced()


def _walk(outer: CuteLayout, count: int, stride: int) -> list[tuple[int, int]]:
    """The modes of one evenly spaced walk through ``outer``."""
    found = []
    for place, (size, step) in enumerate(zip(outer.shape, outer.stride, strict=True)):
        last = place == len(outer.shape) - 1
        if not last and stride % size == 0:
            stride //= size
            continue
        here = count if last else min(count, size // stride) if size % stride == 0 else 0
        if here == 0 or count % here:
            why = f"{size} and a walk of {count} by {stride} do not divide"
            what = f"{count}:{stride} cannot be taken through {outer}"
            raise AlgebraError(what, why, "cut the inner layout at the outer's sizes")
        found.append((here, step * stride))
        count, stride = count // here, 1
        if count == 1:
            break
    return found


def _fitted(values: Sequence[int]) -> CuteLayout | None:
    """The layout with these values, with the fewest modes; ``None`` where there is none."""
    modes, rest = [], [value - values[0] for value in values]
    while len(rest) > 1:
        step, count = rest[1], 1
        while count < len(rest) and rest[count] == count * step:
            count += 1
        if len(rest) % count or step < 0:
            return None
        heads = rest[::count]
        if any(rest[k] != heads[k // count] + k % count * step for k in range(len(rest))):
            return None
        modes.append((count, step))
        rest = heads
    return _layout(modes, values[0])


def _layout(modes: Sequence[tuple[int, int]], offset: int) -> CuteLayout:
    kept = list(modes) or [(1, 0)]
    return CuteLayout(tuple(size for size, _ in kept), tuple(stride for _, stride in kept), offset)


def _tuple(values: tuple[int, ...]) -> str:
    return str(values[0]) if len(values) == 1 else f"({','.join(map(str, values))})"
