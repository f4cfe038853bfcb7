"""Several structures as one array of records: the rule from several arrays to a structure, right to left.

``(A_n ⊗ a) ⊕ (A_n ⊗ b)``, each in memory of its own, becomes ``A_n ⊗ S{a, b}``. No rewriting of one term does that, so it is
taken the other way round: a structure is thought of that has the fields of all the arrays; its structure of arrays (by the
rules) is what the program has, and its own layout, or another one of it, is the candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from layout_advise.layoutalgebra.derive.structure import Dim, Field, FieldMap, Part, Relayout, Structure
from layout_advise.layoutalgebra.explore.placement import aligned, alignment
from layout_advise.layoutalgebra.explore.plans import Group, LayoutPlan, whole
from layout_advise.layoutalgebra.explore.relayout import relayout, tight_plan
from layout_advise.layoutalgebra.explore.rewritten_parts import merging_steps, runs_of

MERGE = "merge"
"""Family, and step of the derivation: arrays used with one index put into one array of records."""
FEW = 3
"""So many arrays are named."""

Parts = tuple[Structure, ...]


def can_be_merged(structure: Structure) -> bool:
    """True if its elements can go into records with those of others."""
    return structure.inexact is None and structure.placed and structure.count > 1 and bool(structure.fields)


def thought_of(parts: Sequence[Structure]) -> Structure:
    """The structure that has the accessed fields of all ``parts``, the largest first, and as many elements as the longest of
    them; its fields are named after the arrays. It lies nowhere."""
    named = dict(zip(fields_of(parts), _names(parts), strict=True))
    fields: list[Field] = []
    end = 0
    for part, number in fields_of(parts):
        old = parts[part].fields[number]
        start = aligned(end, alignment(old))
        fields.append(replace(old, name=named[part, number], offset=start))
        end = start + old.bytes
    record = aligned(end, max(alignment(field) for field in fields))
    dims: list[Dim] = []
    stride = record
    for k in range(len(parts[0].dims) - 1, -1, -1):
        count = max(part.dims[k].count for part in parts)
        dims.insert(0, Dim(count, stride))
        stride *= count
    names = list(dict.fromkeys(part.name for part in parts))
    name = ", ".join(names) if len(names) <= FEW else f"{names[0]}, {names[1]} and {len(names) - 2} more"
    return Structure("+".join(part.id for part in parts), name, 0, stride, tuple(dims), tuple(fields), kind=parts[0].kind)


def fields_of(parts: Sequence[Structure]) -> list[tuple[int, int]]:
    """The fields of the structure thought of, in its order, each by the numbers of its part and of the field there."""
    every = [(k, number) for k, part in enumerate(parts) for number in range(len(part.fields))]
    return sorted(every, key=lambda one: -alignment(parts[one[0]].fields[one[1]]))


def _names(parts: Sequence[Structure]) -> Iterator[str]:
    """By the array, and by the field where it has several; each once."""
    taken: dict[str, int] = {}
    for part, number in fields_of(parts):
        structure = parts[part]
        name = structure.name if len(structure.fields) == 1 else f"{structure.name}.{structure.fields[number].name}"
        taken[name] = taken.get(name, 0) + 1
        yield name if taken[name] == 1 else f"{name} ({taken[name]})"


def merge(parts: Parts, plan: LayoutPlan | None = None) -> tuple[Relayout, ...]:
    """The layouts of ``parts`` as records that they share, stored as ``plan`` says of the structure thought of; without one
    as an array of these records. The rules check the structure of arrays that this starts from, and what it is stored as."""
    one = thought_of(parts)
    plans = LayoutPlan(tuple(Group((n,), whole(one)) for n in range(len(one.fields)))), plan or tight_plan(one)
    apart, stored = (relayout(one, each) for each in plans)
    rules = (*reversed(apart.rules), *stored.rules)
    before, after = ([part for _, run in runs_of(one, each) for part in run.parts] for each in plans)
    steps = merging_steps(before, after, MERGE)
    stored = replace(stored, rules=rules, buffers=tuple(replace(b, name=_buffer_name(one)) for b in stored.buffers))
    places = dict(zip(fields_of(parts), stored.fields, strict=True))
    layouts = []
    for k, part in enumerate(parts):
        maps = [replace(places[k, number], field=number) for number in range(len(part.fields))]
        shown = tuple(_shown(part, one, m, places[k, m.field], stored) for m in maps)
        layouts.append(Relayout(part, tuple(maps), stored.buffers, shown, stored.term, None, rules, stored, steps))
    return tuple(layouts)


def _shown(part: Structure, one: Structure, mapped: FieldMap, place: FieldMap, stored: Relayout) -> Part:
    """The field of an array with the term of what it is stored in."""
    field = part.fields[mapped.field]
    term = next(p.term for p in stored.parts if one.fields[place.field].name in p.fields)
    return Part((field.name,), field.bytes, term)


def _buffer_name(one: Structure) -> str:
    names = [field.name for field in one.fields]
    tail = names if len(names) <= FEW else [names[0], f"and_{len(names) - 1}_more"]
    return re.sub(r"\W+", "_", "_".join(tail)).strip("_")
