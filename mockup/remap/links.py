"""Pointers from records to records that a layout moves: in the new arrays they are the numbers of the records.

A source in the new layout has an index where it had a pointer to an element. What is copied in is translated once, and a
loaded link is the place of the next element without a division (``docs/decisions/0107``). A link's *code* is 1 + the number
of an element, or the old value where that is the address of none: nothing is lost, and NULL stays 0. Where all fields of an
element are equally far from those of the next one, as in one record, the number is counted in bytes: a source has pointers
there, and does not multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure
from layout_advise.mockup.evidence.binding import Access, access_bytes, accesses
from layout_advise.mockup.evidence.pools import spans_of
from layout_advise.mockup.ir.lifted import Assign, Imm, Let, Lifted, Load, Operand, Store, Val, Var, everything
from layout_advise.mockup.remap.conversion_view import FieldKey
from layout_advise.mockup.remap.sites import ElementPlace, RemapPlan

POINTER = WORD = 8


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

    def step(self, structure: Structure) -> int:
        """The distance of the codes of two neighbours in ``structure``."""
        return self.steps.get(structure.id, 1)


NO_LINKS = Links()


def find_links(lifted: Lifted, plan: RemapPlan, candidate: Candidate | None, *, words: bool = False) -> Links:
    """The links among the structures of ``candidate``: what is loaded of one of their fields, as a whole pointer each time,
    and leads to elements of one of them; with ``words`` only those that are words of memory by themselves, as the program's
    own are put there word by word."""
    targets = (
        {r.structure.id: r.structure for r in candidate.relayouts if _can_be_led_to(r)} if candidate is not None else {}
    )
    starts = {site.number: atom for sites in plan.sites.values() for site in sites if (atom := _start(site.offset.terms))}
    led: dict[Operand, set[str]] = {}
    sources = _sources(lifted)
    for site in (site for sites in plan.sites.values() for site in sites):
        structure = site.relayout.structure
        if site.number in starts and structure.id in targets and (site.offset.const + structure.origin) % (1 << 64) == 0:
            for operand in _reached(starts[site.number], sources):
                led.setdefault(operand, set()).add(structure.id)
    fields = _fields(lifted, plan, {o: next(iter(names)) for o, names in led.items() if len(names) == 1}, words)
    whole = {key: targets[name] for key, name in fields.items()}
    found = {a.uid: whole[key] for a in accesses(lifted.body) for key in _field_keys(plan.places.get(a.uid)) if key in whole}
    loaded: dict[Operand, Structure] = {
        a.value: found[a.uid] for a in accesses(lifted.body) if isinstance(a, Load) and a.uid in found
    }
    codes: dict[Operand, Structure] = {**loaded}
    for operand, names in led.items():
        if len(names) == 1 and operand in sources and any(one in loaded for one in _reached(operand, sources)):
            codes.setdefault(operand, targets[next(iter(names))])
    sites = {s.number for found_ in plan.sites.values() for s in found_ if _starts_from(s.number, starts, codes, s.relayout)}
    if not sites or candidate is None:
        return NO_LINKS
    steps = {r.structure.id: step for r in candidate.relayouts if r.structure.id in targets and (step := _step(r))}
    return Links(whole, codes, found, frozenset(sites), steps)


def _can_be_led_to(relayout: Relayout) -> bool:
    """Returns whether each of its elements lies where the number of it says."""
    structure = relayout.structure
    return len(structure.dims) == 1 and structure.via is None and relayout.chosen is None and relayout.merged is None


def _step(relayout: Relayout) -> int:
    """The bytes from each field to that of the next element, where these are the same for all; else 0."""
    steps = {tuple((axis.part, axis.stride) for axis in mapped.axes) for mapped in relayout.fields}
    ((part, stride), *others), *apart = steps
    return stride if part == "whole" and not others and not apart else 0


def _start(terms: tuple[tuple[Operand, int], ...]) -> Operand | None:
    return terms[0][0] if len(terms) == 1 and terms[0][1] == 1 else None


def _starts_from(number: int, starts: Mapping[int, Operand], codes: Mapping[Operand, Structure], moved: Relayout) -> bool:
    atom = starts.get(number)
    return atom is not None and codes.get(atom) is moved.structure


def _sources(lifted: Lifted) -> dict[Operand, list[Operand]]:
    """The values that variables and choices are given."""
    found: dict[Operand, list[Operand]] = {}
    for item in everything(lifted.body):
        if isinstance(item, Assign):
            found.setdefault(item.variable, []).append(item.operand)
        elif isinstance(item, Let) and item.name == "select" and item.value.ty == "i64":
            found[item.value] = list(item.args[1:])
    return found


def _reached(start: Operand, sources: Mapping[Operand, list[Operand]]) -> list[Operand]:
    """``start``, and the values and variables that it may have its value from."""
    found, work = {start: None}, [start]
    while work:
        for operand in sources.get(work.pop(), ()):
            if operand not in found and isinstance(operand, Val | Var):
                found[operand] = None
                work.append(operand)
    return list(found)


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
