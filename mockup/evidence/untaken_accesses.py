"""Accesses that the traced call did not come to, and which fields they go to all the same.

A branch that the data of one call never takes may use fields that no other code of the hotspot does (a counter of rare
events). Its address differs by a constant from one that was traced, of the same element: nothing else is taken for known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.mockup.evidence.binding import Access, Key, access_bytes, accesses, key_of
from layout_advise.mockup.evidence.streams import residue
from layout_advise.mockup.ir.lifted import Item, Val


@dataclass(frozen=True, slots=True)
class Unseen:
    """``access`` goes to ``offset`` (bytes from the start of an element) of the structure with the id ``structure``."""

    access: Access
    structure: str
    offset: int


def unseen(
    body: Sequence[Item], structures: Sequence[Structure], structure_of: Mapping[Key, str], streams: Mapping[Key, Stream]
) -> Iterator[Unseen]:
    """The accesses without a traced address that have one in common with a traced access, but for a constant.

    Values are defined once, so that the same ones in one iteration are the same element. Variables are not, and what they
    are a part of is left out.
    """
    by_id = {s.id: s for s in structures}
    known: dict[object, tuple[str, int]] = {}
    for access in accesses(body):
        structure = by_id.get(structure_of.get(key_of(access), ""))
        if structure is None or access.lanes or not _of_values(access):
            continue
        start = residue(streams[key_of(access)], structure.base, structure.element_bytes)
        if start is not None:
            first = (start + access.part - access.address.const) % structure.element_bytes
            known.setdefault(access.address.terms, (structure.id, first))
    for access in accesses(body):
        found = known.get(access.address.terms)
        if found is not None and key_of(access) not in streams and not access.lanes:
            yield Unseen(access, found[0], (found[1] + access.address.const) % by_id[found[0]].element_bytes)


def _of_values(access: Access) -> bool:
    return all(isinstance(atom, Val) for atom, _ in access.address.terms)


def residues_of(found: Iterator[Unseen], structures: Sequence[Structure]) -> dict[Key, tuple[str, int]]:
    """By reference: the structure and where in its elements part 0 of the access begins; of those that lie in its fields as
    a whole, and of which all copies agree."""
    by_id = {s.id: s for s in structures}
    result: dict[Key, tuple[str, int]] = {}
    refused: set[Key] = set()
    for one in found:
        structure, key = by_id[one.structure], key_of(one.access)
        held = {b for f in structure.fields for b in f.place}
        place = one.structure, (one.offset - one.access.part) % structure.element_bytes
        inside = {one.offset + k for k in range(access_bytes(one.access))} <= held
        if not inside or result.setdefault(key, place) != place:
            refused.add(key)
    return {key: place for key, place in result.items() if key not in refused}
