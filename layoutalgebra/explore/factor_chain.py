"""The term of a part of a structure on its way by rewriting rules, with a name for each factor.

The names tell where a dimension, a half of a split one, or the fields stand, so that a plan can say in which order they are
to be. The steps are always the same: unused places between rows dropped (7), dimensions split (8, 5), factors brought into
their order (4), unused members dropped (7), records padded (8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.derive.chosen_elements import positions
from layout_advise.layoutalgebra.derive.structure import Chosen, Structure
from layout_advise.layoutalgebra.explore.plans import AxisStep, Group
from layout_advise.layoutalgebra.rules.rewriting import Rule
from layout_advise.layoutalgebra.rules.rules import Compact, CutStride, JoinArrays, Pad, PadUnit, Permute, SplitArray
from layout_advise.layoutalgebra.sets.index_set import IndexSet, index_set
from layout_advise.layoutalgebra.terms.term import A, Leaf, S, Term, factors_of, product, terms_of, union

Label = tuple[str, int]
"""A factor on its way: (whole, div, mod or class; the dimension), or one of the following."""
FIELD: Label = ("field", -1)
MEMBER: Label = ("member", -1)
BYTES: Label = ("bytes", -1)

SAMPLES = 3
"""Chosen elements at either end of a choice that the rules are applied to; the block alone decides which rules these are."""


@dataclass(frozen=True, slots=True)
class PartPlan:
    """Fields that become one part: those of one size in ``group``, or one from each of several alike groups
    (``outermost``). ``into`` is the factor that they are to become; where they are ``padded``, with what is inside."""

    fields: tuple[int, ...]
    group: Group
    buffers: tuple[int, ...]
    outermost: bool = False
    divided: bool = False
    into: Leaf | None = None
    padded: bool = False
    record: int = 0


def part_term(
    structure: Structure, numbers: Sequence[int], unit: int, counts: Sequence[int], chosen: Chosen | None
) -> tuple[Term, list[Label]]:
    """The given fields of all elements, in units of ``unit`` bytes, and the labels of the factors."""
    sizes = _sizes(structure, counts, chosen)
    factors = [S([range(count)], size) for count, size in zip(counts, sizes, strict=True)]
    factors.append(Leaf(units_of(structure, numbers, unit), structure.element_bytes // unit))
    labels = [*(("whole", k) for k in range(len(counts))), FIELD]
    return product(factors), [label for label, factor in zip(labels, factors, strict=True) if factor.size > 1]


def units_of(structure: Structure, numbers: Sequence[int], unit: int) -> IndexSet:
    """The units of an element that the fields take."""
    fields = [structure.fields[n] for n in numbers]
    return index_set(range(f.offset // unit, (f.offset + f.bytes) // unit) for f in fields)


def _sizes(structure: Structure, counts: Sequence[int], chosen: Chosen | None) -> list[int]:
    """The places of each dimension: from one index of the next outer one to its next, unused ones too."""
    strides = [dim.stride for dim in structure.dims]
    sizes = [counts[0], *(outer // inner for outer, inner in pairwise(strides))]
    return list(counts) if chosen is not None else sizes  # elements are chosen only where there are no gaps


class FactorChain:
    """A term on its way by rules, with the names of its factors. Where each place goes is computed later, if at all."""

    def __init__(self, term: Term, labels: Sequence[Label]) -> None:
        self.start = self.term = term
        self.labels = list(labels)
        self.rules: list[Rule] = []

    def step(self, rule: Rule) -> None:
        """One rule more."""
        self.rules.append(rule)
        self.term = union(map(product, rule.new_rows(self.term)[1]))

    def leaf(self, place: int) -> Leaf:
        """The factor at ``place`` in the first term of the ⊕."""
        return leaves_of(terms_of(self.term)[0])[place]

    def arrange(self, counts: Sequence[int], steps: Sequence[AxisStep], piece: PartPlan, width: int) -> None:
        """From the structure's factors to those of ``piece``, of fields that are ``width`` units wide."""
        for label in [label for label in self.labels if label != FIELD]:
            if not self.leaf(self.labels.index(label)).is_array:
                self.compact(label)  # unused places between rows
        for step in steps:
            if step.part == "mod":
                self.split(step.dim, counts[step.dim], step.block)
        outer, inner = steps[: len(piece.group.outer)], steps[len(piece.group.outer) :]
        self.split_fields(piece, width)
        before = [FIELD] if piece.outermost else []
        wanted = [*before, *map(_label, outer), FIELD, *map(_label, inner), MEMBER, BYTES]
        self.order([label for label in dict.fromkeys(wanted) if label in self.labels])
        if FIELD in self.labels and width == 1 and not self.leaf(self.labels.index(FIELD)).is_array:
            self.compact(FIELD, None if piece.padded else piece.into)
        if piece.padded and piece.into is not None:
            self.pad_record(piece.into, list(map(_label, inner)))

    def split(self, dim: int, count: int, block: int) -> None:
        """Rules 8 and 5: a dimension as blocks of ``block``."""
        if count < 2:
            raise AlgebraError(f"blocks of {block} in a dimension of one index", "there is nothing to split")
        place = self.labels.index(("whole", dim))
        padded = -(-count // block) * block
        if padded > count:
            self.step(Pad(place, padded))
        if padded == block:
            self.labels[place] = ("mod", dim)
            return
        self.step(SplitArray(place, block))
        self.labels[place : place + 1] = [("div", dim), ("mod", dim)]

    def split_fields(self, piece: PartPlan, width: int) -> None:
        """Cuts the factor of the fields where some stay together, or where a field has several units."""
        together = piece.group.together
        if width * together == 1:
            return
        if piece.into is not None and not piece.padded:
            self.compact(FIELD, Leaf(_widened(piece.into.indices, width), piece.into.size * width))
            return
        if FIELD in self.labels and not self.leaf(self.labels.index(FIELD)).is_array:
            self.compact(FIELD)
        for size, label in ((together * width, MEMBER), (width, BYTES)):
            if size > 1 and (label == BYTES or together > 1):
                self.split_off(size, label)

    def split_off(self, size: int, label: Label) -> None:
        """The last ``size`` places of the innermost factor as a factor of their own."""
        place = len(self.labels) - 1
        leaf = self.leaf(place)
        if leaf.size == size:
            self.labels[place] = label
            return
        self.step(SplitArray(place, size))
        self.labels.append(label)

    def order(self, wanted: Sequence[Label]) -> None:
        """Rule 4 until the factors stand as ``wanted``."""
        for goal, label in enumerate(wanted):
            for place in range(self.labels.index(label), goal, -1):
                self.labels[place - 1 : place + 1] = self.labels[place], self.labels[place - 1]
                self.step(Permute(place - 1))

    def compact(self, label: Label, into: Leaf | None = None) -> None:
        """Rule 7, after rule 8 where there are more places than before; a factor ``A_1`` is none."""
        place = self.labels.index(label)
        if into is not None and into.size > self.leaf(place).size:
            self.step(Pad(place, into.size))
        if self.leaf(place) == into:
            return
        if into is None and self.leaf(place).count == 1:
            del self.labels[place]
        self.step(Compact(place, into))

    def pad_record(self, into: Leaf, inner: Sequence[Label]) -> None:
        """Rule 8 on what stands in a record: one factor, or several arrays joined (rule 5 backwards)."""
        found = [self.labels.index(label) for label in (FIELD, *inner) if label in self.labels]
        if not found:
            place = len(self.labels) - (BYTES in self.labels)
            self.step(PadUnit(place, into.size))
            self.labels.insert(place, FIELD)
            return
        for _ in found[1:]:
            self.step(JoinArrays(found[0]))
            del self.labels[found[0] + 1]
        self.labels[found[0]] = FIELD
        if self.leaf(found[0]).size < into.size:
            self.step(Pad(found[0], into.size))


def _label(step: AxisStep) -> Label:
    return step.part, step.dim


def _widened(indices: IndexSet, width: int) -> IndexSet:
    """The units of the given fields of ``width`` units each."""
    return index_set(range(k * width, (k + 1) * width) for k in indices)


def leaves_of(term: Term) -> tuple[Leaf, ...]:
    return tuple(leaf for leaf in factors_of(term) if isinstance(leaf, Leaf) and leaf.size > 1)


def of_blocks(step: AxisStep, chosen: Chosen) -> AxisStep:
    """A step of the structure's dimension as one of the blocks of which one element each is stored."""
    if step.dim != chosen.dim:
        return step
    if step.part == "mod":
        return replace(step, div=1)
    block = step.block // chosen.block
    return AxisStep(step.dim, "div", block) if block > 1 else AxisStep(step.dim)


def sampled(structure: Structure, chosen: Chosen) -> list[tuple[int, ...]]:
    """Some chosen positions, as indices of the dimensions up to that of the choice."""
    found = positions(chosen).tolist()
    picked = dict.fromkeys([*found[:SAMPLES], *found[-SAMPLES:]])
    indices = []
    for position in picked:
        index: list[int] = []
        for dim in range(chosen.dim, -1, -1):
            position, digit = divmod(position, structure.dims[dim].count)
            index.insert(0, digit)
        indices.append(tuple(index))
    return indices


def chosen_apart(structure: Structure, chosen: Chosen, numbers: Sequence[int], unit: int) -> FactorChain:
    """Of each block only the chosen element: blocks cut (rule 3), the factor within them dropped (rule 7).

    Each sampled position is a term of its own. That rule 7 maps no two of all of them to one place was checked when they
    were chosen (:func:`layout_advise.layoutalgebra.derive.chosen_elements.choose_by`).
    """
    counts = [dim.count for dim in structure.dims]
    _, labels = part_term(structure, numbers, unit, counts, chosen)
    rows = []
    for index in sampled(structure, chosen):
        own = [S([i], n) for i, n in zip(index, counts, strict=False)]
        inner = [A(n) for n in counts[len(index) :]]
        rows.append(product([*own, *inner, Leaf(units_of(structure, numbers, unit), structure.element_bytes // unit)]))
    chain = FactorChain(union(rows), labels)
    label = ("whole", chosen.dim)
    place, count = chain.labels.index(label), counts[chosen.dim]
    blocks = -(-count // chosen.block)
    if count % chosen.block:
        chain.step(Pad(place, blocks * chosen.block))
    if blocks > 1:
        chain.step(CutStride(place, chosen.block))
        chain.labels[place : place + 1] = [label, ("class", chosen.dim)]
        place += 1
    chain.step(Compact(place))
    del chain.labels[place]
    return chain
