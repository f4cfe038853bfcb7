"""Fields that a source reads again where it uses them: what the hotspot never writes, beside stores to other arrays.

That two fields of a record do not overlap every compiler knows; of two arrays behind pointers it does not, and reads again
after each store what is not in a variable of the source's own. A mock-up keeps what the machine code has read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layout_advise.layoutalgebra.derive.structure import Relayout
from layout_advise.mockup.evidence.binding import Access, accesses
from layout_advise.mockup.ir.effects import Ty
from layout_advise.mockup.ir.lifted import Item, Load, Store, Val
from layout_advise.mockup.remap.conversion_view import FieldKey
from layout_advise.mockup.remap.sites import ElementPlace, RemapPlan


def is_apart(relayout: Relayout) -> bool:
    """Tells whether the layout has fields of an element in several arrays."""
    return len({mapped.buffer for mapped in relayout.fields}) > 1


def read_where_used(body: Sequence[Item], plan: RemapPlan, hoisted: frozenset[int]) -> frozenset[int]:
    """The loads (statement numbers) whose places can be read at each use of the value, and hold the same there; none where
    the hotspot stores to nothing that is re-laid. ``hoisted``: the values that are used where the places are not known."""
    if not plan.written:
        return frozenset()
    loads = (item for item in accesses(body) if isinstance(item, Load) and item.value.number not in hoisted)
    return frozenset(load.uid for load in loads if not load.guarded and _stays(plan.places.get(load.uid), plan))


def _stays(place: ElementPlace | None, plan: RemapPlan) -> bool:
    if place is None or place.within is not None or place.along or len(place.pieces) != 1 or not is_apart(place.relayout):
        return False
    known = all(isinstance(term.atom, Val) for term in place.terms)
    return known and (place.relayout.structure.id, place.pieces[0].map.field) not in plan.written


def of_one_type(body: Sequence[Item], plan: RemapPlan) -> frozenset[FieldKey]:
    """The fields that are accessed whole and as one type each time: arrays of that type in a source."""
    found: dict[FieldKey, set[Ty | None]] = {}
    for item in accesses(body):
        if (place := plan.places.get(item.uid)) is not None:
            for key, ty in _typed(item, place):
                found.setdefault(key, set()).add(ty)
    return frozenset(key for key, types in found.items() if len(types) == 1 and None not in types)


def _typed(item: Access, place: ElementPlace) -> Iterator[tuple[FieldKey, Ty | None]]:
    """The fields that an access goes to, each with its type; None where it is not of the whole field alone."""
    structure = place.relayout.structure
    ty = item.value.ty if isinstance(item, Load) else item.ty if isinstance(item, Store) else None
    alone = len(place.pieces) == 1 and not place.along and not place.site.inside and place.within is None
    for piece in place.pieces:
        whole = alone and piece.bytes == structure.fields[piece.map.field].bytes
        yield (structure.id, piece.map.field), ty if whole else None
    for number in range(len(structure.fields)) if place.along or place.site.inside else ():
        yield (structure.id, number), None
