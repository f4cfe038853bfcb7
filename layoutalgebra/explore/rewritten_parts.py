"""A layout plan carried out by the rewriting rules, on the term of the structure that it is for.

Fields of one size make a part, with a term in units of that size. The plan says in which order the part's factors are to
stand; the rules that bring them there are found here, applied, and named in the report. Two things are no rewriting of one
term and stay with the bytes (:mod:`layout_advise.layoutalgebra.explore.relayout`): where a record that fields of several
sizes share has the sub-array of each, since a term has one unit; and which element of each block is a chosen one, since that
set can have millions of pieces. Both are compared with the rules' places at elements that determine a map of this form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from itertools import product as cartesian
from math import gcd, prod

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.structure import Chosen, DerivationStep, FieldMap, Part, Structure
from layout_advise.layoutalgebra.explore.factor_chain import (
    BYTES,
    FIELD,
    FactorChain,
    Label,
    PartPlan,
    chosen_apart,
    leaves_of,
    of_blocks,
    part_term,
    sampled,
    units_of,
)
from layout_advise.layoutalgebra.explore.placement import place_group
from layout_advise.layoutalgebra.explore.plans import Group, LayoutPlan
from layout_advise.layoutalgebra.rules.rewriting import Rewrite, Rule
from layout_advise.layoutalgebra.rules.rules import (
    divide,
)
from layout_advise.layoutalgebra.sets.set_operations import quotients
from layout_advise.layoutalgebra.terms.term import A, Leaf, S, Term, product, terms_of


@dataclass(frozen=True, slots=True)
class RewrittenPart:
    """Fields of one size (by number), from their term in the structure to their layout.

    ``stages`` are terms, each with the rules for it: of the chosen elements, where there are some, then of what is stored.
    They map units of ``unit_bytes`` of the structure to units of ``buffers``, one laid behind the
    other. ``term`` is the last one, ``labels`` name its factors. ``record`` is the size in bytes of a record that is shared
    with fields of other sizes and that the term says nothing of, 0 where there is none; then ``inner`` values of each field
    stand together.
    """

    fields: tuple[int, ...]
    buffers: tuple[int, ...]
    unit_bytes: int
    stages: tuple[tuple[Term, tuple[Rule, ...]], ...]
    term: Term
    labels: tuple[Label, ...]
    divided: bool
    record: int
    inner: int
    classes: int

    def steps(self) -> list[Rewrite]:
        """The rules applied. Raises :class:`AlgebraError` where one would put two accessed units in one place."""
        done: list[Rewrite] = []
        for term, rules in self.stages:
            for rule in rules:
                done.append(rule.apply(term))
                term = done[-1].new
        return done

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that were applied, in order, each once."""
        numbers = [rule.number for _, rules in self.stages for rule in rules]
        return tuple(dict.fromkeys(["9", *numbers] if self.divided else numbers))


@dataclass(frozen=True, slots=True)
class LaidOut:
    """Groups of fields as buffers: the maps of the fields and the bytes of each buffer, and the parts by the rules."""

    maps: tuple[tuple[FieldMap, ...], ...]
    bytes: tuple[int, ...]
    parts: tuple[RewrittenPart, ...]
    shown: tuple[Part, ...]


def runs_of(structure: Structure, plan: LayoutPlan, *, checked: bool = True) -> list[tuple[tuple[int, ...], LaidOut]]:
    """The groups of ``plan`` by number, laid out: those of one field each, of one size and order, with each other.

    Raises :class:`AlgebraError` where a rule is refused and, if ``checked``, where the places in bytes are not the rules'.
    """
    single = all(len(group.fields) == 1 for group in plan.groups)
    alike: dict[object, list[int]] = {}
    for number, group in enumerate(plan.groups):
        size = structure.fields[group.fields[0]].bytes
        several = len(group.fields) > 1 or group.record
        alike.setdefault(number if several else (size, group.outer, group.inner), []).append(number)
    found: list[tuple[tuple[int, ...], LaidOut]] = []
    for numbers in alike.values():
        fields = [n for k in numbers for n in plan.groups[k].fields]
        for run in [tuple(numbers)] if fields == sorted(fields) else [(number,) for number in numbers]:
            divided = len(plan.groups) > len(run) and not (single and len(run) > 1)
            found.append((run, _laid_out(structure, tuple(plan.groups[k] for k in run), plan.chosen, divided, checked)))
    return found


@lru_cache(maxsize=4096)
def _laid_out(
    structure: Structure, groups: tuple[Group, ...], chosen: Chosen | None, divided: bool, checked: bool
) -> LaidOut:
    """One group, or several of one field each. Layouts of one structure have many of them in common."""
    placed = [place_group(structure, group, number) for number, group in enumerate(groups)]
    maps, sizes = tuple(tuple(own) for own, _ in placed), tuple(size for _, size in placed)
    if len(groups) > 1:
        fields = tuple(n for group in groups for n in group.fields)
        pieces = [PartPlan(fields, groups[0], tuple(range(len(groups))), outermost=True, divided=divided)]
    else:
        record = sizes[0] // prod(step.extent(structure) for step in groups[0].outer)
        offsets = {m.field: m.offset for m in maps[0]}
        pieces = [replace(p, divided=divided) for p in _of_group(structure, groups[0], record, offsets)]
    if divided and checked:
        _check_divided(structure, tuple(n for group in groups for n in group.fields))
    parts = tuple(_rewritten(structure, chosen, piece) for piece in pieces)
    for part in parts if checked else ():
        _check_places(structure, chosen, part, [m for own in maps for m in own], sizes)
    return LaidOut(maps, sizes, parts, tuple(_shown(structure, part) for part in parts))


def new_place(steps: Sequence[Rewrite], unit: int) -> int:
    """The place of an accessed unit after all of ``steps``."""
    for step in steps:
        unit = step.place(unit)
    return unit


def derivation(parts: Sequence[RewrittenPart]) -> tuple[str, ...]:
    """The rules of all parts, in the order of the part that takes most of them."""
    longest = max((part.rules for part in parts), key=len)
    others = dict.fromkeys(number for part in parts for number in part.rules if number not in longest)
    first = tuple(number for number in others if number == "9")
    return (*first, *longest, *(number for number in others if number != "9"))


def shown_steps(parts: Sequence[RewrittenPart]) -> tuple[DerivationStep, ...]:
    """Each rule with the term after it, of the part that takes most of them; rule 9 with the term that it divides off."""
    longest = max(parts, key=lambda part: len(part.rules))
    first = (DerivationStep("9", str(longest.stages[0][0])),) if longest.divided and longest.stages else ()
    return (*first, *(DerivationStep(step.number, str(step.new)) for step in longest.steps()))


def merging_steps(apart: Sequence[RewrittenPart], stored: Sequence[RewrittenPart], merge: str) -> tuple[DerivationStep, ...]:
    """The way from arrays to what they are stored as together: one behind the other (step ``merge``), back by the rules that
    would make arrays of their records, then on to ``stored``. Of the part that takes most rules; where the arrays have no
    part of the same fields it begins with their records."""
    last = max(stored, key=lambda part: len(part.rules))
    records = str(last.stages[0][0])
    arrays = next((p for p in apart if p.fields == last.fields and str(p.stages[0][0]) == records), None)
    done = arrays.steps() if arrays is not None else []
    first = DerivationStep(merge, str(done[-1].new) if done else records)
    back = [DerivationStep(step.number, str(step.old), True) for step in reversed(done)]
    if arrays is not None and arrays.divided:
        back.append(DerivationStep("9", records, True))
    return (first, *back, *(DerivationStep(step.number, str(step.new)) for step in last.steps()))


def _shown(structure: Structure, part: RewrittenPart) -> Part:
    """The part as the report prints it: with the padding of split dimensions as elements, of chosen elements one class."""
    columns = zip(*(leaves_of(row) for row in terms_of(part.term)), strict=True)
    size = structure.fields[part.fields[0]].bytes
    width = 1 if BYTES in part.labels else size // part.unit_bytes  # units of a field that are no factor
    factors: list[Term] = [S([0], part.classes)] if part.classes else []
    for label, column in zip(part.labels, columns, strict=True):
        indices = column[0].indices
        for leaf in column[1:]:
            indices = indices.union(leaf.indices)
        if label == FIELD and width > 1:
            factors.append(Leaf(quotients(indices, width), column[0].size // width))
        elif label != BYTES:
            factors.append(A(column[0].size) if label[0] in ("div", "mod") else Leaf(indices, column[0].size))
    names = tuple(structure.fields[number].name for number in part.fields)
    return Part(names, size, str(product(factors)))


def _check_places(
    structure: Structure, chosen: Chosen | None, part: RewrittenPart, maps: Sequence[FieldMap], sizes: Sequence[int]
) -> None:
    """Raises :class:`AlgebraError` where the places in bytes are not those of the rules.

    Both maps are sums over the digits of the indices, so they are equal where they are equal at the elements tried here.
    """
    by_field = {m.field: m for m in maps}
    begins = dict(zip(part.buffers, accumulate([0, *(sizes[b] for b in part.buffers)]), strict=False))
    tried = list(_witnesses(structure, chosen, by_field[part.fields[0]]))
    steps = part.steps()
    for number in part.fields:
        one, field = by_field[number], structure.fields[number]
        for index in tried if number == part.fields[0] else (tried[0], tried[-1]):
            old = sum(i * d.stride for i, d in zip(index, structure.dims, strict=True)) + field.offset
            new = new_place(steps, old // part.unit_bytes) * part.unit_bytes
            if part.record:
                run = part.inner * field.bytes
                record, rest = divmod(new, len(part.fields) * run)
                new = record * part.record + one.offset + rest % run
            if new != begins[one.buffer] + one.place(index):
                why = f"{field.name} of element {index} goes to byte {one.place(index)}, by the rules to {new}"
                raise AlgebraError(f"the layout of {structure.name} is not what the rules make", why)


def _witnesses(structure: Structure, chosen: Chosen | None, mapped: FieldMap) -> Iterator[tuple[int, ...]]:
    """The first element, elements at which one digit of the map changes, the last one; or the sampled chosen ones."""
    counts = [dim.count for dim in structure.dims]
    if chosen is not None:
        for start in sampled(structure, chosen):
            inner = [sorted({0, 1 % n, n - 1}) for n in counts[len(start) :]]
            yield from ((*start, *rest) for rest in cartesian(*inner))
        return
    yield (0,) * len(counts)
    for axis in mapped.axes:
        for value in {1, axis.block, axis.block - 1, counts[axis.dim] - 1}:
            if 0 < value < counts[axis.dim]:
                yield tuple(value if k == axis.dim else 0 for k in range(len(counts)))
    yield tuple(n - 1 for n in counts)


def _of_group(structure: Structure, group: Group, record: int, offsets: dict[int, int]) -> Iterator[PartPlan]:
    """The parts of one buffer with records of ``record`` bytes, by the size of the fields."""
    by_size: dict[int, list[int]] = {}
    for number in group.fields:
        by_size.setdefault(structure.fields[number].bytes, []).append(number)
    for size, numbers in sorted(by_size.items()):
        ascending = numbers == sorted(numbers)
        for fields in [tuple(numbers)] if ascending else [(number,) for number in numbers]:
            places = [offsets[n] // size for n in fields]
            own = len(fields) * size * group.inner_count(structure)
            fits = record % size == 0 and all(offsets[n] % size == 0 for n in fields)
            if record == own:
                yield PartPlan(fields, group, (0,))
            elif fits and len(fields) == len(group.fields):
                yield PartPlan(fields, group, (0,), into=S([range(own // size)], record // size), padded=True)
            elif fits and not group.inner:
                yield PartPlan(fields, group, (0,), into=S(places, record // size))
            else:
                yield PartPlan(fields, group, (0,), record=record)


def _rewritten(structure: Structure, chosen: Chosen | None, piece: PartPlan) -> RewrittenPart:
    """The rules for one part."""
    size = structure.fields[piece.fields[0]].bytes
    unit = gcd(size, *(structure.fields[n].offset for n in piece.fields), *(d.stride for d in structure.dims))
    stages: list[tuple[Term, tuple[Rule, ...]]] = []
    counts, steps = [dim.count for dim in structure.dims], list(piece.group.steps)
    if chosen is not None:
        chain = chosen_apart(structure, chosen, piece.fields, unit)
        counts[chosen.dim] = -(-counts[chosen.dim] // chosen.block)
        steps = [of_blocks(step, chosen) for step in steps]
        stages.append((chain.start, tuple(chain.rules)))
    chain = FactorChain(*part_term(structure, piece.fields, unit, counts, chosen))
    chain.arrange(counts, steps, piece, size // unit)
    inner = piece.group.inner_count(structure)
    divided = piece.divided or (
        chosen is not None and chosen.elements < prod(dim.count for dim in structure.dims[: chosen.dim + 1])
    )
    classes = chosen.block if chosen is not None else 0
    stages.append((chain.start, tuple(chain.rules)))
    labels = tuple(chain.labels)
    return RewrittenPart(
        piece.fields, piece.buffers, unit, tuple(stages), chain.term, labels, divided, piece.record, inner, classes
    )


def _check_divided(structure: Structure, fields: tuple[int, ...]) -> None:
    """Rule 9 on all accessed fields gives ``fields`` as a structure of their own."""
    numbers = range(len(structure.fields))
    unit = gcd(*(n for f in structure.fields for n in (f.offset, f.bytes)), *(d.stride for d in structure.dims))
    counts = [dim.count for dim in structure.dims]
    term, labels = part_term(structure, numbers, unit, counts, None)
    apart = divide(term, len(labels) - 1, units_of(structure, fields, unit))[0]
    if apart != part_term(structure, fields, unit, counts, None)[0]:
        raise AlgebraError("rule 9 does not divide the fields as planned", f"{apart}")
