"""An address cut into indices: the terms that become digits now, and the rest that is cut once at run time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from layout_advise.layoutalgebra.derive.structure import Relayout
from layout_advise.mockup.evidence.binding import Access
from layout_advise.mockup.ir.lifted import Imm, LiftedLoop, Operand, Val
from layout_advise.mockup.remap.indices.index_terms import IndexTerm, index_term
from layout_advise.mockup.remap.indices.operand_levels import Levels
from layout_advise.mockup.remap.indices.row_steps import Given, row_steps, runs_on


@dataclass(frozen=True, slots=True)
class CutAddress:
    """An address as ``terms`` of indices and the ``fixed`` rest, which takes ``given`` for granted; ``depth`` is the
    index of the innermost loop that changes the rest, -1 where none does."""

    terms: tuple[IndexTerm, ...]
    fixed: tuple[tuple[Operand, int], ...]
    given: tuple[Given, ...]
    depth: int


def cut_address(
    levels: Levels,
    access: Access,
    chain: tuple[LiftedLoop, ...],
    relayout: Relayout,
    over_fields: frozenset[Operand],
    walked: Collection[int],
) -> CutAddress:
    """The terms of the address that become digits, and those that stay in the site."""
    strides = tuple(d.stride for d in relayout.structure.dims)
    terms: list[IndexTerm] = []
    fixed: list[tuple[Operand, int]] = []
    given: list[Given] = []
    depth = -1
    for atom, coef in _with_row_steps(levels, access, chain, relayout, given, walked):
        if atom in over_fields:
            continue
        level = levels.level(atom, chain)
        term = index_term(atom, coef, strides) if level >= 0 else None
        if term is None:
            fixed.append((atom, coef))
            depth = max(depth, level)
        else:
            terms.append(term)
    found = CutAddress(tuple(terms), tuple(fixed), tuple(given), depth)
    return cut_in_loops(levels, found, relayout, chain, depth)


def cut_in_loops(
    levels: Levels, cut: CutAddress, relayout: Relayout, chain: tuple[LiftedLoop, ...], most: int | None = None
) -> CutAddress:
    """``cut`` with what may lead on over rows, as no loop counts it, cut at a site in the loops that change it: of those
    up to the index ``most``, else of all but the innermost, where an index would be made for each access."""
    strides, counters = tuple(d.stride for d in relayout.structure.dims), {loop.counter for loop in chain}
    most = len(chain) - 2 if most is None else most
    carried = {t: levels.level(t.atom, chain) for t in cut.terms if t.atom not in counters and any(t.digits[1:])}
    known = {term: level for term, level in carried.items() if level <= most}
    fixed = tuple((t.atom, sum(d * s for d, s in zip(t.digits, strides, strict=True)) >> t.shift) for t in known)
    terms = tuple(term for term in cut.terms if term not in known)
    return replace(cut, terms=terms, fixed=(*cut.fixed, *fixed), depth=max([cut.depth, *known.values()]))


def _with_row_steps(
    levels: Levels,
    access: Access,
    chain: tuple[LiftedLoop, ...],
    relayout: Relayout,
    given: list[Given],
    walked: Collection[int],
) -> Sequence[tuple[Operand, int]]:
    """The terms of an address, products as the steps over rows that they are, which add to what is ``given``."""
    terms = dict(levels.terms(access))
    found: list[tuple[Operand, int]] = []
    within: set[Operand] = set()
    for atom, coef in terms.items():
        product = levels.products.get(atom.number) if isinstance(atom, Val) else None
        steps = row_steps(product, coef, relayout, lambda operand: levels.level(operand, chain), terms, walked)
        if steps is None:
            found.append((atom, coef))
            continue
        given.append(steps.given)
        found.append((steps.moving, steps.coef))
        within |= {steps.moving} if steps.whole else set()
    own = {(atom, terms[atom]) for atom in within}
    return [term for term in found if term not in own]


def rows_told(cut: CutAddress, relayout: Relayout, chain: Sequence[LiftedLoop], reached: tuple[int, int]) -> bool:
    """Returns whether no index goes beyond the dimension that its coefficient speaks of: no term says in which row it then
    is. Such are what is no loop's counter (the start of a thread's chunk), and the counter of a loop that is known to go on
    so far. The address is cut before the loops ``chain``."""
    dims = relayout.structure.dims
    trips: dict[Operand, int] = {loop.counter: loop.trip.value if isinstance(loop.trip, Imm) else 0 for loop in chain}

    def is_within(term: IndexTerm) -> bool:
        far = [abs(digit) * (trips.get(term.atom, 0) - 1) for digit in term.digits[1:]]
        return term.atom in trips and all(moved < dim.count for moved, dim in zip(far, dims[1:], strict=True))

    if all(map(is_within, cut.terms)) or runs_on(relayout):
        return True
    moved = {k for term in cut.terms for k, digit in enumerate(term.digits) if digit}
    return reached[1] - reached[0] <= sum((dims[k].count - 1) * dims[k].stride for k in moved) + dims[-1].stride
