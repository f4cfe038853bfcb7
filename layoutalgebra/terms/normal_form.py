"""The normal form of a set on a grid of given factor sizes: one form for one set, by arithmetic on progressions.

The paper's rules 1-3 and the merging of ⊕ are not confluent (``docs/algebra.md`` has the counter-examples), so the form is
defined by the set instead: the index sets of the last factor are grouped by the rows that have exactly that set, and so on
outwards. The terms of the ⊕ are disjoint then. Time and memory grow with the number of terms, not with what they describe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import lcm, prod

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.sets.index_set import ENUMERABLE, IndexSet, index_set
from layout_advise.layoutalgebra.sets.products import Row, common_part, overlap
from layout_advise.layoutalgebra.sets.set_operations import difference, subset
from layout_advise.layoutalgebra.terms.simplify import simplify
from layout_advise.layoutalgebra.terms.term import Leaf, Term, product, rows_of, union

CELLS, PERIODS = 4096, 4096
"""More disjoint pieces, or a longer period of a cut progression, and the set is called irregular."""


def normal_form(term: Term, sizes: Sequence[int] | None = None) -> Term:
    """The normal form of ``term`` on factors of ``sizes`` (by default those that it has, where all its terms agree).

    Equal functions give equal terms. Raises :class:`AlgebraError` where the sizes do not multiply to the term's size or do
    not refine its factors (nothing is joined), and for irregular sets.
    """
    rows = rows_of(term)
    shapes = {tuple(leaf.size for leaf in row) for row in rows}
    if sizes is None:
        if len(shapes) > 1:
            raise AlgebraError("the terms of the ⊕ have different factors", str(term), "give the sizes to cut them to")
        sizes = shapes.pop()
    wanted = tuple(size for size in sizes if size > 1) or (1,)
    if prod(wanted) != term.size or any(size < 1 for size in sizes):
        raise AlgebraError("the factor sizes do not fit", f"their product is not {term.size}")
    cut: list[Row] = []
    for row in rows:
        cut.extend(_cut_row(row, wanted))
    return term_of_rows(normal_rows(cut), wanted)


def term_of_rows(rows: Iterable[Row], sizes: Sequence[int]) -> Term:
    """The ⊕ of the products, sorted."""
    return simplify(union(product(Leaf(s, n) for s, n in zip(row, sizes, strict=True)) for row in rows))


def _cut_row(row: Sequence[Leaf], sizes: tuple[int, ...]) -> list[Row]:
    """A product cut at further places, so that its factors have ``sizes``."""
    found: list[Row] = [()]
    left = list(sizes)
    for leaf in row:
        if leaf.size == 1:
            continue
        mine: list[int] = []
        while prod(mine) < leaf.size and left:
            mine.append(left.pop(0))
        if prod(mine) != leaf.size:
            raise AlgebraError(
                "the factor sizes do not fit", f"{leaf} cannot be cut into {mine}", "they must refine the term's"
            )
        found = [(*head, *tail) for head in found for tail in cut(leaf.indices, mine)]
        if len(found) > CELLS:
            raise AlgebraError("the set is irregular", f"it needs more than {CELLS} products")
    return found or [(index_set([0]),)]


def cut(indices: IndexSet, sizes: Sequence[int]) -> list[Row]:
    """A flat set as products on ``sizes`` (left slowest), one progression at a time: rules 1-3 where they do apply."""
    if len(sizes) == 1:
        return [(indices,)]
    inner = prod(sizes[1:])
    found: list[Row] = []
    for run in indices.runs:
        for outer, within in _cut_run(run, inner):
            found.extend((outer, *tail) for tail in cut(within, sizes[1:]))
    return found


def _cut_run(run: range, by: int) -> list[tuple[IndexSet, IndexSet]]:
    """A progression as pairs (quotients, remainders): whole blocks, a part before and after them, or by its period."""
    first, last, step = run[0], run[-1], run.step
    if first // by == last // by:
        return [(index_set([first // by]), index_set([range(first % by, last % by + 1, step)]))]
    if step % by == 0:
        return [(index_set([range(first // by, last // by + 1, step // by)]), index_set([first % by]))]
    if by % step == 0:
        pairs = []
        begin, end = first // by, last // by + 1
        if first % by >= step:
            pairs.append((index_set([begin]), index_set([range(first % by, by, step)])))
            begin += 1
        if last % by < by - step:
            end -= 1
            pairs.append((index_set([end]), index_set([range(first % step, last % by + 1, step)])))
        if begin < end:
            pairs.append((index_set([range(begin, end)]), index_set([range(first % step, by, step)])))
        return pairs
    return _cut_by_period(run, by)


def _cut_by_period(run: range, by: int) -> list[tuple[IndexSet, IndexSet]]:
    """One pair for each phase of the progression within a block; phases repeat every lcm(step, by)."""
    period = lcm(run.step, by) // run.step
    if min(period, len(run)) > PERIODS:
        raise AlgebraError("the set is irregular", f"a progression of step {run.step} has {period} phases in blocks of {by}")
    every = period * run.step // by
    pairs = []
    for phase in range(min(period, len(run))):
        same = run[phase::period]
        blocks = range(same[0] // by, same[-1] // by + 1, every)
        pairs.append((index_set([blocks]), index_set([same[0] % by])))
    return pairs


def normal_rows(rows: Sequence[Row]) -> list[Row]:
    """The disjoint products of the normal form; ``rows`` may overlap. Raises :class:`AlgebraError` beyond CELLS pieces."""
    if len(rows[0]) == 1:
        return [(_united([row[0] for row in rows]),)]
    cells: list[tuple[Row, IndexSet]] = []
    by_last: dict[IndexSet, list[Row]] = {}
    for row in rows:
        by_last.setdefault(row[-1], []).append(row[:-1])
    for last, prefixes in by_last.items():
        for prefix in dict.fromkeys(prefixes):
            cells = _inserted(cells, prefix, last)
            if len(cells) > CELLS:
                raise AlgebraError("the set is irregular", f"it falls into more than {CELLS} pieces")
    groups: dict[IndexSet, list[Row]] = {}
    for prefix, last in cells:
        groups.setdefault(last, []).append(prefix)
    return [(*outer, last) for last, prefixes in groups.items() for outer in normal_rows(prefixes)]


def _united(sets: list[IndexSet]) -> IndexSet:
    runs = sorted((run for one in sets for run in one.runs), key=lambda run: run.start)
    if sum(map(len, runs)) > ENUMERABLE and all(a.stop + max(a.step, b.step) < b.start for a, b in pairwise(runs)):
        return IndexSet(tuple(runs))  # far apart: nothing to join
    return _interleaved(runs) or index_set(runs)


def _interleaved(runs: list[range]) -> IndexSet | None:
    """Progressions of one step whose starts follow each other evenly make one: even and odd numbers are all numbers."""
    if len(runs) < 2 or len({run.step for run in runs}) > 1 or len({len(run) for run in runs}) > 1:
        return None
    step, starts = runs[0].step, [run.start for run in runs]
    gaps = {b - a for a, b in pairwise([*starts, starts[0] + step])}
    if len(runs[0]) < 2 or len(gaps) > 1 or 0 in gaps:
        return None
    return index_set([range(starts[0], runs[-1][-1] + 1, gaps.pop())])


def _inserted(cells: list[tuple[Row, IndexSet]], prefix: Row, last: IndexSet) -> list[tuple[Row, IndexSet]]:
    """The cells with ``last`` accessed in all rows of ``prefix`` too; cells stay disjoint."""
    kept: list[tuple[Row, IndexSet]] = []
    fresh = [prefix]
    for place, (box, inner) in enumerate(cells):
        if not fresh:
            kept.extend(cells[place:])
            break
        if not any(overlap(box, new) for new in fresh):
            kept.append((box, inner))
            continue
        old = [box]
        for new in list(fresh):
            for part in list(old):
                common = common_part(part, new)
                if common is None:
                    continue
                kept.append((common, inner if subset(last, inner) else _united([inner, last])))
                old = [p for o in old for p in (_minus(o, common) if o == part else [o])]
        kept.extend((part, inner) for part in old)
        fresh = [p for new in fresh for p in _minus(new, box)]
    kept.extend((new, last) for new in fresh)
    return kept


def _minus(one: Row, other: Row) -> list[Row]:
    """The box ``one`` without ``other``: at most one box for each factor."""
    if not overlap(one, other):
        return [one]
    parts: list[Row] = []
    for place, (a, b) in enumerate(zip(one, other, strict=True)):
        rest = difference(a, b)
        if rest is not None:
            inside = [x.intersection(y) for x, y in zip(one[:place], other[:place], strict=True)]
            parts.append((*(s for s in inside if s is not None), rest, *one[place + 1 :]))
    return parts
