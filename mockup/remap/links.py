"""Pointers from records to records that a layout moves: in the new arrays they are the numbers of the records.

A source in the new layout has an index where it had a pointer to an element. What is copied in is translated once, and a
loaded link is the place of the next element without a division (``docs/decisions/0107``). A link's *code* is 1 + the number
of an element, or the old value where that is the address of none: nothing is lost, and NULL stays 0. Where all fields of an
element are equally far from those of the next one, the number is counted in bytes, so that nothing is multiplied. Where they
lie in one record of their own, the code is the new address of that: a source has pointers there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure, first_buffers
from layout_advise.mockup.evidence.binding import Access, access_bytes, accesses
from layout_advise.mockup.evidence.pools import spans_of
from layout_advise.mockup.ir.lifted import (
    Assign,
    Imm,
    Let,
    LetLinear,
    Lifted,
    Load,
    Operand,
    Store,
    Val,
    Var,
    everything,
)
from layout_advise.mockup.remap.conversion_view import FieldKey
from layout_advise.mockup.remap.moved_arrays import in_bytes, moves_as_one
from layout_advise.mockup.remap.sites import ElementPlace, RemapPlan, Site

POINTER = WORD = 8


@dataclass(frozen=True, slots=True)
class OnePiece:
    """New elements that lie in one array, with all their fields: its number, and the bytes from one to the next."""

    buffer: int
    step: int


@dataclass(frozen=True, slots=True)
class Links:
    """By field (structure id, number) and by operand the structure whose elements it leads to; the accesses to such fields,
    and the sites that start from a code, by their numbers."""

    fields: Mapping[FieldKey, Structure] = field(default_factory=dict)
    codes: Mapping[Operand, Structure] = field(default_factory=dict)
    accesses: Mapping[int, Structure] = field(default_factory=dict)
    sites: frozenset[int] = frozenset()
    steps: Mapping[str, int] = field(default_factory=dict)
    """By structure id the distance of the codes of neighbours, where it is not 1."""
    shifts: Mapping[Operand, int] = field(default_factory=dict)
    """By operand with a code, and by register at the entry, how far behind the element's begin it leads, where it does."""
    entered: Mapping[Val, Structure] = field(default_factory=dict)
    """The values at the entry, whole general registers, whose codes are asked for."""

    def step(self, structure: Structure) -> int:
        """The distance of the codes of two neighbours in ``structure``."""
        return self.steps.get(structure.id, 1)


NO_LINKS = Links()
Led = dict[Operand, set[tuple[str, int]]]
"""By operand the structures (id) that it leads to elements of, and how far behind their begin."""


def find_links(
    lifted: Lifted,
    plan: RemapPlan,
    candidate: Candidate | None,
    *,
    words: bool = False,
    registers: Collection[Val] = (),
) -> Links:
    """The links among the structures of ``candidate``: what is loaded of one of their fields, as a whole pointer each time,
    and leads to elements of one of them; with ``words`` only those that are words of memory by themselves, as the program's
    own are put there word by word. What is chosen among links and ``registers`` at the entry has a code, too."""
    targets = (
        {r.structure.id: r.structure for r in candidate.relayouts if _can_be_led_to(r)} if candidate is not None else {}
    )
    starts = {site.number: start for sites in plan.sites.values() for site in sites if (start := _start(site)) is not None}
    sources, led = _sources(lifted), Led()
    for site in (site for sites in plan.sites.values() for site in sites):
        structure = site.relayout.structure
        if site.number in starts and structure.id in targets:
            for operand, shift in _reached(*starts[site.number], structure.dims[0].stride, sources):
                led.setdefault(operand, set()).add((structure.id, shift))
    one = {operand: next(iter(places)) for operand, places in led.items() if len(places) == 1}
    fields = _fields(lifted, plan, {o: name for o, (name, shift) in one.items() if not shift}, words)
    whole = {key: targets[name] for key, name in fields.items()}
    found = {a.uid: whole[key] for a in accesses(lifted.body) for key in _field_keys(plan.places.get(a.uid)) if key in whole}
    loaded: dict[Operand, Structure] = {
        a.value: found[a.uid] for a in accesses(lifted.body) if isinstance(a, Load) and a.uid in found
    }
    codes, entered = {**loaded}, set(registers)
    for operand, (name, shift) in one.items():
        stride = targets[name].dims[0].stride
        if operand in sources and _has_code(operand, shift, stride, sources, loaded, entered):
            codes.setdefault(operand, targets[name])
    sites = {
        site.number
        for every in plan.sites.values()
        for site in every
        if (start := starts.get(site.number)) is not None
        and codes.get(start[0]) is site.relayout.structure
        and one.get(start[0]) == (site.relayout.structure.id, start[1])
    }
    if not sites or candidate is None:
        return NO_LINKS
    steps = {r.structure.id: step for r in candidate.relayouts if r.structure.id in targets and (step := _step(r))}
    asked = {operand for coded in codes for operand, _ in sources.get(coded, ())}
    brought = {value: targets[one[value][0]] for value in registers if value in one and value in asked}
    shifts = {o: one[o][1] for o in (*codes, *brought) if o in one and one[o][1]}
    return Links(whole, codes, found, frozenset(sites), steps, shifts, brought)


def _can_be_led_to(relayout: Relayout) -> bool:
    """Returns whether each of its elements lies where the number of it says."""
    structure = relayout.structure
    return len(structure.dims) == 1 and structure.via is None and relayout.chosen is None and relayout.merged is None


def pieces_of(candidate: Candidate | None) -> Mapping[str, OnePiece]:
    """By structure id those of which an element's new address says all of where its fields are; an array that moves as one
    is of bytes, as where its places are planned."""
    relayouts = candidate.relayouts if candidate is not None else ()
    planned = [in_bytes(relayout) if moves_as_one(relayout) else relayout for relayout in relayouts]
    return {
        relayout.structure.id: OnePiece(first + relayout.fields[0].buffer, step)
        for relayout, first in zip(planned, first_buffers(relayouts), strict=True)
        if _can_be_led_to(relayout) and len({mapped.buffer for mapped in relayout.fields}) == 1 and (step := _step(relayout))
    }


def _step(relayout: Relayout) -> int:
    """The bytes from each field to that of the next element, where these are the same for all; else 0."""
    steps = {tuple((axis.part, axis.stride) for axis in mapped.axes) for mapped in relayout.fields}
    ((part, stride), *others), *apart = steps
    return stride if part == "whole" and not others and not apart else 0


def _start(site: Site) -> tuple[Operand, int] | None:
    """The operand that a site starts from, and how far behind an element's begin that leads, of what leads into one."""
    (first, *others), structure = site.offset.terms or ((None, 0),), site.relayout.structure
    atom, coefficient = first
    shift = -(site.offset.const + structure.origin) % (1 << 64)
    alone = atom is not None and not others and coefficient == 1 and len(structure.dims) == 1
    return (atom, shift) if alone and atom is not None and shift < structure.dims[0].stride else None


Sources = Mapping[Operand, Sequence[tuple[Operand, int]]]
"""By variable or value the operands that it has its value from, and how far behind these it is."""


def _sources(lifted: Lifted) -> Sources:
    """The values that variables and choices are given, and those that sums with a constant are made of."""
    found: dict[Operand, list[tuple[Operand, int]]] = {}
    for item in everything(lifted.body):
        if isinstance(item, Assign):
            found.setdefault(item.variable, []).append((item.operand, 0))
        elif isinstance(item, Let) and item.name == "select" and item.value.ty == "i64":
            found[item.value] = [(one, 0) for one in item.args[1:]]
        elif isinstance(item, LetLinear) and (beside := _beside(item)) is not None:
            found[item.value] = [beside]
    return found


def _beside(item: LetLinear) -> tuple[Operand, int] | None:
    """The one operand that a sum is a constant behind of; None where it is another sum."""
    terms, constant = item.linear.terms, item.linear.const
    if len(terms) != 1 or terms[0][1] != 1:
        return None
    return terms[0][0], constant - (1 << 64) if constant >> 63 else constant


def _reached(start: Operand, shift: int, stride: int, sources: Sources) -> list[tuple[Operand, int]]:
    """``start``, and the values and variables that it may have its value from, each with how far behind an element's begin
    it leads; what leads out of the element is left out."""
    found, work = {(start, shift): None}, [(start, shift)]
    while work:
        operand, behind = work.pop()
        for source, further in sources.get(operand, ()):
            one = source, behind - further
            if one not in found and isinstance(source, Val | Var) and 0 <= one[1] < stride:
                found[one] = None
                work.append(one)
    return list(found)


def _has_code(
    operand: Operand,
    shift: int,
    stride: int,
    sources: Sources,
    loaded: Mapping[Operand, Structure],
    entered: Set[Operand],
) -> bool:
    """Tells whether an operand comes from a link, or from nothing but pointers at the entry: then its code is known."""
    reached = _reached(operand, shift, stride, sources)
    if any(one in loaded and not behind for one, behind in reached):
        return True
    inner = dict(reached)
    for one, behind in reached:
        if one in entered:
            continue
        given = sources.get(one)
        if given is None or any(not is_null(o) and inner.get(o) != behind - further for o, further in given):
            return False
    return True


def _fields(lifted: Lifted, plan: RemapPlan, led: Mapping[Operand, str], words: bool) -> dict[FieldKey, str]:
    """The fields of which each load gives a pointer to elements of one structure, and that are only accessed whole."""
    found: dict[FieldKey, set[str]] = {}
    refused: set[FieldKey] = set()
    for access in accesses(lifted.body):
        place = plan.places.get(access.uid)
        for key in _field_keys(place):
            assert place is not None
            if not _is_whole(access, place) or (words and not _is_word(place)):
                refused.add(key)
            elif isinstance(access, Load) and access.value in led:
                found.setdefault(key, set()).add(led[access.value])
    return {key: next(iter(names)) for key, names in found.items() if len(names) == 1 and key not in refused}


def _field_keys(place: ElementPlace | None) -> Iterator[FieldKey]:
    if place is not None:
        for piece in place.pieces:
            yield place.relayout.structure.id, piece.map.field


def _is_whole(access: Access, place: ElementPlace) -> bool:
    """Returns whether it goes to one field, all of it, in the new arrays only."""
    if not isinstance(access, Load | Store) or access.lanes or place.within is not None or place.along or place.site.inside:
        return False
    ty = access.value.ty if isinstance(access, Load) else access.ty
    held = place.relayout.structure.fields[place.pieces[0].map.field]
    alone = len(place.pieces) == 1 and place.pieces[0].delta == 0 and not (isinstance(access, Load) and access.guarded)
    return alone and ty == "i64" and held.bytes == access_bytes(access) == POINTER and _can_be_led_to(place.relayout)


def _is_word(place: ElementPlace) -> bool:
    """Returns whether the field is a word of memory by itself in each element."""
    structure = place.relayout.structure
    starts, _ = spans_of(structure)
    offset = structure.fields[place.pieces[0].map.field].offset
    return structure.element_bytes % WORD == 0 and not ((starts + offset) % WORD).any()


def is_null(operand: Operand) -> bool:
    """Returns whether it is the pointer to nothing, of which the code is 0 whatever it leads to."""
    return isinstance(operand, Imm) and operand.value == 0
