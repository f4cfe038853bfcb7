"""Vectorised and unrolled loops written as the source had them: one element an iteration.

The hotspot's compiler made B elements of one; lifted lane by lane, its compiler finds the vectors again in the old layout
but often not in a new one. A loop that :mod:`layout_advise.mockup.rewrite.unrolled_copies` recognises becomes a loop over
single elements, where running the lanes one after the other is seen to change nothing: no lane may load or store what
another one stores in the same iteration, unless both orders are the same. Reductions with several accumulators stay as they
are: rerolled they would add in another order; those in the order of the elements are rerolled. The second product are the
loops whose iterations are independent of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from layout_advise.mockup.evidence.binding import Access, accesses, key_of
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.independence import Independence, LoopAccess
from layout_advise.mockup.ir.lifted import (
    Atomic,
    Call,
    Item,
    Let,
    LetLinear,
    Lifted,
    LiftedLoop,
    Load,
    OpaqueCall,
    Origin,
    RuntimeCall,
    Store,
    Val,
    everything,
)
from layout_advise.mockup.ir.linear_forms import form_of
from layout_advise.mockup.ir.loop_body import (
    Body,
    constant_names,
    defined,
    first_free_number,
    operands,
    straight,
    used,
)
from layout_advise.mockup.rewrite.reroll_around_loops import reroll_around
from layout_advise.mockup.rewrite.reroll_branchy_loops import reroll_copies
from layout_advise.mockup.rewrite.single_element import SingleElementWriter, access_copies, scaled_trip
from layout_advise.mockup.rewrite.unrolled_copies import UnrolledCopies, find_copies


def reroll(lifted: Lifted, evidence: Evidence) -> Lifted:
    """Returns ``lifted`` with its loops over several elements rerolled, and independent loops marked.

    Needs: the traced addresses, to show that lanes one after the other do the same; read-only data, for constants kept in
    memory; field loops written out, where they are to be (:mod:`layout_advise.mockup.rewrite.unroll_field_loops`).
    Gives: one element an iteration; ``lanes`` tells the references that an access stands for; ``independent``, ``abreast``
    and ``known`` of each loop.
    Keeps: loops that the trace does not prove apart, and reductions with several accumulators.
    """
    return _Reroller(lifted, evidence).run()


class _Reroller:
    """The pass over one hotspot."""

    def __init__(self, lifted: Lifted, evidence: Evidence) -> None:
        self.lifted, self.evidence = lifted, evidence
        self.names = constant_names(lifted, evidence.constant)
        # a loop that was written out has an access for each iteration
        per_key = Counter(
            key for key, *_ in {(key_of(a), home, a.address.const - a.part) for a, home in _homes(lifted.body, 0)}
        )
        alone = frozenset(key for key, count in per_key.items() if count == 1)
        self.independence = Independence(evidence.binding, evidence.structures, alone)
        self.next = first_free_number(lifted)
        self.uses = Counter(used(lifted.body))
        self.uses.update(out.operand for out in lifted.live_outs)

    def run(self) -> Lifted:
        """The whole hotspot."""
        return replace(self.lifted, body=self._items(self.lifted.body))

    def _items(self, items: Sequence[Item]) -> tuple[Item, ...]:
        found: list[Item] = []
        for item in items:
            if isinstance(item, LiftedLoop):
                found += self._loop(item)
            else:
                found.append(item)
        return tuple(found)

    def _loop(self, loop: LiftedLoop) -> list[Item]:
        if any(isinstance(item, LiftedLoop) for item in loop.body):
            before, loop = self._rerolled_around(replace(loop, body=self._items(loop.body)))
            return [*before, replace(loop, abreast=not _has_independent_loop(loop.body) and self._independent(loop))]
        before, loop, vectors = self._rerolled(loop)
        independent = self._independent(loop)
        return [
            *before,
            replace(loop, independent=independent, known=independent and vectors and _has_computed_address(loop)),
        ]

    def _rerolled(self, loop: LiftedLoop) -> tuple[list[Item], LiftedLoop, bool]:
        """Returns what is done before the rerolled loop, that loop, and whether vector instructions ran its iterations."""
        if not straight(loop):
            return self._rerolled_copies(loop)
        body = Body(loop, self.names)
        unrolled = find_copies(body, self._grain)
        if unrolled is None or not self._complete(body, unrolled) or not self._order_free(body, unrolled):
            return [], loop, False
        rolled = SingleElementWriter(body, unrolled, self.next).loop()
        if rolled is None:
            return [], loop, False
        self.next = rolled.next
        return [rolled.trip], rolled.loop, _by_vectors(body, unrolled)

    def _rerolled_copies(self, loop: LiftedLoop) -> tuple[list[Item], LiftedLoop, bool]:
        """The same of a loop with branches that was unrolled."""
        inside = Counter(used(loop.body))
        found = reroll_copies(loop, self._grain_of_all, {o for o, n in self.uses.items() if n != inside[o]})
        if found is None or loop.trip is None:
            return [], loop, False
        rolled, count = found
        return *self._counted(rolled, count), False

    def _rerolled_around(self, loop: LiftedLoop) -> tuple[list[Item], LiftedLoop]:
        """The same of a loop around others that did several iterations side by side."""
        inside = Counter(used(loop.body))
        behind = {o for o, n in self.uses.items() if n != inside[o]}
        found = reroll_around(loop, self.names, self._grain_of_all, self._apart, behind)
        return ([], loop) if found is None else self._counted(*found)

    def _counted(self, rolled: LiftedLoop, count: int) -> tuple[list[Item], LiftedLoop]:
        """A rerolled loop with so many times its iterations, and what counts them before it."""
        assert rolled.trip is not None
        trip = Val(self.next, "i64")
        self.next += 1
        return [LetLinear(trip, scaled_trip(rolled.trip, count), Origin(rolled.head))], replace(rolled, trip=trip)

    def _apart(self, first: Access, second: Access) -> bool:
        return self.independence.hulls_apart(first, second) or self.independence.fields_apart(first, second)

    def _grain_of_all(self, group: Sequence[Access], step: int) -> bool:
        return self._one_structure(group) and self._grain(group[0], step)

    def _grain(self, access: Access, step: int) -> bool:
        """Lanes are whole elements of a structure: copies of one expression for several fields of an element stay."""
        names = self.evidence.reached_by(access)
        return all(step % s.element_bytes == 0 for s in self.evidence.structures if s.id in names)

    def _one_structure(self, group: Sequence[Access]) -> bool:
        """Returns whether all copies of an access reach the same structures."""
        return len({self.evidence.reached_by(access) for access in group}) == 1

    def _complete(self, body: Body, unrolled: UnrolledCopies) -> bool:
        """Returns whether the lanes are all that the body does, no value of it is used elsewhere, and all copies of an
        access belong to one structure."""
        covered = {body.items[k].uid for stores in unrolled.stores for k in stores}
        covered |= {body.defined[n].uid for partner in unrolled.partners for n in partner.values()}
        covered |= {item.uid for n, item in body.defined.items() if n in body.names}
        if any(item.uid not in covered for item in body.items if isinstance(item, Load | Store | Call)):
            return False
        inside = Counter(operand for item in body.items for operand in operands(item))
        used = {o: n for o, n in self.uses.items() if isinstance(o, Val) and o.number in body.defined}
        if any(n != inside[o] for o, n in used.items()):
            return False
        return all(self._one_structure(group) for group in access_copies(body, unrolled))

    def _order_free(self, body: Body, unrolled: UnrolledCopies) -> bool:
        """Returns whether the lanes one after the other load and store the same as in the order of the body."""
        spots = [
            _LaneAccess(lane, group[0], access)
            for group in access_copies(body, unrolled)
            for lane, access in enumerate(group)
        ]
        known: dict[tuple[int, int], bool] = {}
        for one in (s for s in spots if isinstance(s.access, Store)):
            for other in spots:
                if one.access is other.access:
                    continue
                if one.before(other, body) == (body.position[one.access.uid] < body.position[other.access.uid]):
                    continue
                pair = one.access.uid, other.access.uid
                if pair not in known:
                    known[pair] = self.independence.apart(_spot(body, one.access), _spot(body, other.access))
                if not known[pair]:
                    return False
        return True

    def _independent(self, loop: LiftedLoop) -> bool:
        """Returns whether no iteration stores what another one touches."""
        if any(isinstance(item, Atomic | OpaqueCall | RuntimeCall) for item in everything(loop.body)):
            return False  # other threads, or code that is not lifted, have a say in what its iterations see
        spots = loop_accesses(accesses(loop.body), loop)
        stores = [s for s in spots if isinstance(s.access, Store)]
        return bool(stores) and all(self.independence.iterations_apart(s, other) for s in stores for other in spots)


def loop_accesses(found: Iterable[Access], loop: LiftedLoop) -> list[LoopAccess]:
    """Accesses of a loop, or that it could make, with their addresses as forms."""
    changed = set(defined(loop.body)) | {loop.counter}
    forms = ((access, form_of(access.address, loop.counter)) for access in found)
    return [LoopAccess(access, form, not any(a in changed for a, _ in form.atoms)) for access, form in forms]


@dataclass(frozen=True, slots=True)
class _LaneAccess:
    """One lane's execution of an access of the rerolled body; ``first`` is the access of lane 0."""

    lane: int
    first: Access
    access: Access

    def before(self, other: _LaneAccess, body: Body) -> bool:
        """Returns whether it comes first once the loop is rerolled."""
        return (self.lane, body.position[self.first.uid]) < (other.lane, body.position[other.first.uid])


def _by_vectors(body: Body, unrolled: UnrolledCopies) -> bool:
    """Returns whether one instruction did something for several lanes: they ran side by side, and were not written out
    only."""
    first, second = (
        {n: item.origin.pack for n in partner.values() if isinstance(item := body.defined[n], Let | Load)}
        for partner in unrolled.partners[:2]
    )
    return bool({p for p in first.values() if p is not None} & set(second.values()))


def _has_computed_address(loop: LiftedLoop) -> bool:
    """Returns whether an access's address hangs on what its iteration has loaded or worked out."""
    changed = set(defined(loop.body))
    forms = (form_of(access.address, loop.counter) for access in accesses(loop.body))
    return any(atom in changed for form in forms for atom, _ in form.atoms)


def _spot(body: Body, access: Access) -> LoopAccess:
    form = body.addresses[access.uid]
    return LoopAccess(access, form, not any(body.inside(a) for a, _ in form.atoms))


def _homes(items: Sequence[Item], home: int) -> Iterator[tuple[Access, int]]:
    """Every access with the loop whose body it is directly in."""
    for item in items:
        if isinstance(item, Load | Store | Atomic):
            yield item, home
        elif isinstance(item, LiftedLoop):
            yield from _homes(item.body, item.uid)


def _has_independent_loop(items: Sequence[Item]) -> bool:
    """Returns whether a loop among or in ``items`` is known to be independent."""
    return any(isinstance(i, LiftedLoop) and (i.independent or i.abreast or _has_independent_loop(i.body)) for i in items)
