"""Which arrays the hotspot accesses with one index: what a source in another layout could store together."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.layoutalgebra.explore.relayout import relayout, tight_plan
from layout_advise.layoutalgebra.merge.merged_candidates import SharedIndex
from layout_advise.layoutalgebra.merge.records import can_be_merged
from layout_advise.layoutalgebra.sets.footprints import touched
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.mockup.evidence.binding import Access, Binding, bind, key_of
from layout_advise.mockup.evidence.streams import hull
from layout_advise.mockup.ir.lifted import Atomic, Item, Lifted, LiftedLoop, Load, Store
from layout_advise.mockup.remap.plan import plan
from layout_advise.mockup.remap.sites import RemapPlan
from layout_advise.tracer.trace.trace import Trace

MOST_BOXES = 1000
"""References with more nests than these are compared by their addresses in the code only."""


FEWEST = 1000
"""Of so many accesses to structures, one at least has the index: fewer could not be seen in the times even if each of them
went to memory and no other did."""


def shared_indices(lifted: Lifted, trace: Trace, structures: Sequence[Structure]) -> tuple[SharedIndex, ...]:
    """The structures whose elements ``lifted`` accesses with the same index in the same loop, those together that have one,
    directly or by a third one. Left out are structures it cannot be re-indexed for, and indices of very few accesses."""
    binding = bind(lifted, trace, structures)
    loops: dict[Hashable, dict[str, int]] = {}
    counts: dict[Hashable, int] = {}
    order = [binding.structure_of.get(key_of(access), "") for access, _ in _in_loops(lifted.body, ())]
    fit = [one for one in structures if can_be_merged(one) and one.id not in binding.impossible]
    for placed in _placed(lifted, fit, binding) if len(fit) > 1 else ():
        for access, chain in _in_loops(lifted.body, ()):
            if access.uid in placed.places:
                for index in _indices(access, chain, placed, binding):
                    name = placed.places[access.uid].relayout.structure.id
                    loops.setdefault(index, {})[name] = chain[-1].uid
                    counts[index] = counts.get(index, 0) + binding.streams[key_of(access)].count
    every = sum(binding.streams[key].count for key in binding.structure_of)
    together = [names for index, names in loops.items() if len(names) > 1 and counts[index] * FEWEST >= every]
    return tuple(_connected(together, order))


def _placed(lifted: Lifted, structures: Sequence[Structure], binding: Binding) -> Iterator[RemapPlan]:
    """Where the accesses to ``structures`` go that ``lifted`` can be re-indexed for: all at once, or one by one."""
    layouts = tuple(relayout(structure, tight_plan(structure)) for structure in structures)
    try:
        yield plan(lifted, Candidate("", layouts, (), ()), binding)
    except RemapError:
        for layout in layouts:
            with suppress(RemapError):
                yield plan(lifted, Candidate("", (layout,), (), ()), binding)


def _in_loops(body: Sequence[Item], chain: tuple[LiftedLoop, ...]) -> Iterator[tuple[Access, tuple[LiftedLoop, ...]]]:
    """The accesses in loops, with the loops around them."""
    for item in body:
        if isinstance(item, Load | Store | Atomic) and chain:
            yield item, chain
        elif isinstance(item, LiftedLoop):
            yield from _in_loops(item.body, (*chain, item))


def _indices(access: Access, chain: tuple[LiftedLoop, ...], placed: RemapPlan, binding: Binding) -> Iterator[Hashable]:
    """The index of the access, equal for those with the same one in the same loop: as its addresses show it, and as the code
    makes it, where all that changes in the loops around is in the terms; where it starts tells the trace."""
    stream = binding.streams.get(key_of(access))
    if stream is None:
        return  # on a way that the traced call does not take
    loop, place = chain[-1].uid, placed.places[access.uid]
    structure = place.relayout.structure
    rows = tuple(dim.stride // structure.element_bytes for dim in structure.dims)
    boxes = _boxes(stream, structure)
    if boxes is not None:
        yield loop, rows, boxes
    if place.site in placed.sites.get(chain[0].uid, ()) and place.terms:
        low = (hull(stream)[0] - structure.base) // structure.element_bytes
        yield loop, rows, frozenset(place.terms), low, stream.count


def _boxes(stream: Stream, structure: Structure) -> Hashable | None:
    """The elements accessed, in nests; None where these are not exact, or go on by parts of elements."""
    what = touched(stream)
    size = structure.element_bytes
    if what is None or what.chosen is not None or len(what.boxes) > MOST_BOXES:
        return None
    if any(stride % size for box in what.boxes for stride, _ in box.levels):
        return None
    return tuple(
        ((box.start - structure.base) // size, tuple((stride // size, trip) for stride, trip in box.levels), box.count)
        for box in what.boxes
    )


def _connected(groups: Sequence[dict[str, int]], order: Sequence[str]) -> Iterator[SharedIndex]:
    """Those of ``groups`` (loops by id) with an id in common as one, its ids in the ``order`` of the code; behind them those
    that no access reaches alone, as it is tested at run time which structure it comes to."""
    places = {name: number for number, name in enumerate(dict.fromkeys((*order, *itertools.chain(*groups))))}
    left = list(groups)
    while left:
        names, joined = set(left[0]), [left.pop(0)]
        while more := [group for group in left if names & group.keys()]:
            joined += more
            left = [group for group in left if group not in more]
            names.update(*more)
        ordered = sorted(names, key=places.__getitem__)
        yield SharedIndex({name: frozenset(group[name] for group in joined if name in group) for name in ordered})
