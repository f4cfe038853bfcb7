"""A candidate's index map, reached again by rewriting rules from the term of its structure.

:mod:`layout_advise.layoutalgebra.explore.relayout` builds maps directly, in bytes and for fields of any sizes. Where all
fields have one size the same map must come out of the rules; :func:`replay` finds the rules with their positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.derive.structure import Axis, FieldMap, Relayout, Structure
from layout_advise.layoutalgebra.rules.rewriting import Rewrite, Rule, rewrite
from layout_advise.layoutalgebra.rules.rules import Compact, Pad, Permute, SplitArray, divide
from layout_advise.layoutalgebra.sets.index_set import index_set
from layout_advise.layoutalgebra.terms.term import Leaf, S, Term, factors_of, product, terms_of

Label = tuple[str, int]
"""A factor on its way: (whole, div, mod or field; the dimension)."""
FIELD: Label = ("field", -1)


@dataclass(frozen=True, slots=True)
class Replayed:
    """``rewrite`` maps units of ``unit_bytes`` of the structure to units of ``buffers``, one laid behind the other.

    ``fields`` (by number) are those that lie in these buffers.
    """

    buffers: tuple[int, ...]
    fields: tuple[int, ...]
    rewrite: Rewrite
    unit_bytes: int


def term_of(structure: Structure, unit: int) -> Term:
    """All accessed fields of all elements, in units of ``unit`` bytes (a divisor of every stride, offset and size)."""
    sizes = [d.count for d in structure.dims[:1]]
    sizes += [a.stride // b.stride for a, b in zip(structure.dims, structure.dims[1:], strict=False)]
    dims = [S([range(dim.count)], size) for dim, size in zip(structure.dims, sizes, strict=True)]
    used = index_set(range(f.offset // unit, (f.offset + f.bytes) // unit) for f in structure.fields)
    return product([*dims, Leaf(used, structure.element_bytes // unit)])


def replay(layout: Relayout) -> tuple[Replayed, ...] | None:
    """The layout by rules; ``None`` where fields differ in size, or lie in another order than in the structure."""
    structure = layout.structure
    sizes = {field.bytes for field in structure.fields}
    unit = sizes.pop()
    strides = [d.stride for d in structure.dims] + [f.offset for f in structure.fields]
    if sizes or any(stride % unit for stride in strides):
        return None
    groups: dict[int, list[FieldMap]] = {}
    for one in layout.fields:
        groups.setdefault(one.buffer, []).append(one)
    single = all(len(maps) == 1 and maps[0].axes == layout.fields[0].axes for maps in groups.values())
    if single and [m.buffer for m in layout.fields] == list(range(len(groups))):
        found = [_by_rules(structure, layout.fields, unit, outermost=True)]
    else:
        found = [_by_rules(structure, maps, unit, outermost=False) for _, maps in sorted(groups.items())]
    return None if any(one is None for one in found) else tuple(one for one in found if one is not None)


def _by_rules(structure: Structure, maps: Sequence[FieldMap], unit: int, *, outermost: bool) -> Replayed | None:
    """The rules for one buffer, or for buffers of one field each (``outermost``: the field is the slowest index then)."""
    starts = [m.offset for m in maps]
    if starts != sorted(starts):
        return None
    term = term_of(structure, unit)
    numbers = tuple(m.field for m in maps)
    if len(numbers) < len(structure.fields):
        chosen = index_set(structure.fields[n].offset // unit for n in numbers)
        position = len(factors_of(terms_of(term)[0])) - 1
        term = divide(term, position, chosen)[0]
    labels = [("whole", k) for k, dim in enumerate(structure.dims) if dim.count > 1 or _padded(structure, k)]
    if structure.element_bytes > unit:
        labels.append(FIELD)
    done = rewrite(term, [])
    labels, done = _compacted(labels, done)
    labels, done = _split(structure, maps[0].axes, labels, done)
    wanted = _order(maps, outermost)
    record = _record(maps, outermost)
    for goal, label in enumerate(label for label in wanted if label in labels):
        for place in range(labels.index(label), goal, -1):
            labels[place - 1 : place + 1] = labels[place], labels[place - 1]
            done = _step(done, Permute(place - 1))
    if record and FIELD in labels:
        place = labels.index(FIELD)
        if record // unit > factors_of(terms_of(done.new)[0])[place].size:
            done = _step(done, Pad(place, record // unit))
    return Replayed(tuple(dict.fromkeys(m.buffer for m in maps)), numbers, done, unit)


def _step(done: Rewrite, rule: Rule) -> Rewrite:
    return done.then(rule) if done.number else rewrite(done.new, [rule])


def _padded(structure: Structure, k: int) -> bool:
    """Whether dimension ``k`` is a factor although it has one index: its stride leaves places unused."""
    return k > 0 and structure.dims[k - 1].stride // structure.dims[k].stride > 1


def _split(structure: Structure, axes: Sequence[Axis], labels: list[Label], done: Rewrite) -> tuple[list[Label], Rewrite]:
    """Rules 8 and 5 for every dimension of which the layout has quotient and remainder."""
    for axis in axes:
        if axis.part == "mod":
            place, count = labels.index(("whole", axis.dim)), structure.dims[axis.dim].count
            if count % axis.block:
                done = _step(done, Pad(place, -(-count // axis.block) * axis.block))
            done = _step(done, SplitArray(place, axis.block))
            labels[place : place + 1] = [("div", axis.dim), ("mod", axis.dim)]
    return labels, done


def _compacted(labels: list[Label], done: Rewrite) -> tuple[list[Label], Rewrite]:
    """Rule 7 for the unused members, and for unused places between rows."""
    for label in list(labels):
        place = labels.index(label)
        column = [factors_of(part)[place] for part in terms_of(done.new)]
        if label[0] in ("field", "whole") and all(isinstance(f, Leaf) and not f.is_array for f in column):
            if all(f.count == 1 for f in column):
                labels.remove(label)  # A_1 is no factor
            done = _step(done, Compact(place))
    return labels, done


def _order(maps: Sequence[FieldMap], outermost: bool) -> list[Label]:
    """The factors of the new layout, slowest first."""
    found: list[tuple[int, int, Label]] = [(-a.stride, 0, (a.part, a.dim)) for a in maps[0].axes]
    if outermost:
        return [FIELD, *(label for _, _, label in sorted(found, key=lambda f: f[:2]))]
    between = maps[1].offset - maps[0].offset if len(maps) > 1 else 0
    found.append((-between, 1, FIELD))
    return [label for _, _, label in sorted(found, key=lambda f: f[:2])]


def _record(maps: Sequence[FieldMap], outermost: bool) -> int:
    """The record's size in bytes where the fields are the fastest index: the smallest stride."""
    strides = [a.stride for a in maps[0].axes]
    between = maps[1].offset - maps[0].offset if len(maps) > 1 else 0
    return min(strides) if strides and not outermost and 0 < between < min(strides) else 0
