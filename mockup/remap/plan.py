"""Re-indexing: every access to a restructured structure as digits (one per dimension) that are linear in loop counters.

An old address is ``base + sum(digit[k] * stride[k]) + field``. The part of an address that no enclosing loop changes is cut
into digits once at run time, by division, before the outermost loop where it is known; a division per access would hide
any gain (it was tried). The coefficient of every other atom (a loop counter, a loaded index) is cut into digits now,
exactly, or the candidate is rejected. That the digits are the canonical ones is not proved here: the check build compares
every new address with the map applied to the old one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from layout_advise.errors import RemapError, RowsError
from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout
from layout_advise.mockup.evidence.binding import Access, Binding, Key, accesses, grid_range, key_of, span
from layout_advise.mockup.evidence.streams import hull, steps_of
from layout_advise.mockup.ir.lifted import Atomic, Item, Lifted, LiftedLoop, Linear, Load, Operand, Store, everything
from layout_advise.mockup.remap.element_fields import (
    covered_fields,
    described,
    digits_of,
    element_offset,
    field_pieces,
    first_element,
    places_of,
)
from layout_advise.mockup.remap.field_runs import Run, RunPiece, distances, even_moves, runs_over_fields
from layout_advise.mockup.remap.indices.cut_address import CutAddress, cut_address, cut_in_loops, rows_told
from layout_advise.mockup.remap.indices.operand_levels import Levels, is_loaded, read_again
from layout_advise.mockup.remap.indices.row_steps import Given
from layout_advise.mockup.remap.indices.rows_seen import RowsSeen, rows_of
from layout_advise.mockup.remap.moved_arrays import in_bytes, in_one, moves_as_one
from layout_advise.mockup.remap.picked_fields import array_field, moves_in_field, picked_fields
from layout_advise.mockup.remap.sites import ElementPlace, RemapPlan, Site
from layout_advise.mockup.remap.tested_ranges import tested_names, untaken_places


def plan(lifted: Lifted, candidate: Candidate | None, binding: Binding) -> RemapPlan:
    """Places every access to a structure that ``candidate`` restructures.

    Raises RemapError with the reason where one of them does not decompose.
    """
    if candidate is None:
        return RemapPlan()
    relayouts = {r.structure.id: in_bytes(r) if moves_as_one(r) else r for r in candidate.relayouts}
    for name, relayout in relayouts.items():
        if name in binding.impossible:
            raise RemapError(f"candidate {candidate.id}", binding.impossible[name])
        _check_extent(relayout)
    structures = [r.structure for r in candidate.relayouts]
    tested = tested_names(binding, relayouts)
    alone, among = untaken_places(lifted.body, structures, binding, tested)
    tested |= {key: name for key, (name, _) in among.items()}
    others = {**alone, **among}
    names = {key: name for key, (name, _) in others.items()} | tested | binding.structure_of
    moved = [(a, chain) for a, chain in _with_loops(lifted.body, ()) if names.get(key_of(a), "") in relayouts]
    copies: dict[Key, list[Access]] = {}
    for access, _ in moved:
        copies.setdefault(key_of(access), []).append(access)
    planner = _Planner(Levels(lifted, binding))
    for access, chain in moved:
        key = key_of(access)
        relayout = relayouts[names[key]]
        size, seen = relayout.structure.element_bytes, partial(places_of, access, relayout, binding)
        held = array_field(relayout.structure, seen()) if key not in others else None
        runs = runs_over_fields(access.address, chain, size, seen) if held is None else ()
        if held is None and not runs and len({(a.address.const - a.part) % size for a in copies[key]}) == 1:
            runs = planner.picked(access, chain, relayout, binding)
        if key in others:
            offset = (others[key][1] + access.part) % relayout.structure.element_bytes
        elif held is not None:
            offset = held.offset
        else:
            offset = element_offset(access, copies[key], relayout, binding, runs)
        walked = steps_of(binding.streams[key]) if key in binding.streams else ()
        reached = hull(binding.streams[key]) if key in binding.streams and key not in tested else None
        ahead = _rows_seen(key, relayout, binding).ahead
        planner.place(
            access, chain, relayout, offset, runs, _SeenAs(key in tested, walked, held is not None, ahead, reached)
        )
    firsts = {}
    for access in (group[0] for key, group in copies.items() if len(group) == 1 and key not in tested):
        digits = first_element(access, relayouts[names[key_of(access)]], binding)
        if digits is not None:
            firsts[access.uid] = digits
    rows = ((a.uid, _rows_seen(key_of(a), relayouts[names[key_of(a)]], binding)) for a, _ in moved)
    still = {uid: one.still for uid, one in rows if one.still}
    lows = dict(_lows(moved, relayouts, names, binding))
    return replace(planner.result(lifted), firsts=firsts, lows=lows, still=still)


def _rows_seen(key: Key, relayout: Relayout, binding: Binding) -> RowsSeen:
    """The rows of the structure that a reference was seen to go over; of one that touches others too, by its accesses to
    this one."""
    structure, parts = relayout.structure, binding.shared.get(key)
    return rows_of(binding.streams.get(key) if parts is None else parts.get(structure.id), structure)


def _lows(
    moved: Sequence[tuple[Access, object]], relayouts: Mapping[str, Relayout], names: Mapping[Key, str], binding: Binding
) -> Iterator[tuple[int, tuple[int, ...]]]:
    for access, _ in moved:
        relayout, stream = relayouts[names[key_of(access)]], binding.streams.get(key_of(access))
        if relayout.merged is not None and stream is not None and key_of(access) not in binding.shared:
            yield access.uid, (*digits_of(hull(stream)[0] + access.part, relayout), stream.count)


@dataclass(frozen=True, slots=True)
class _SeenAs:
    """What the trace tells of an access: whether ``tested`` shows if it goes to an element, by how many bytes at a time it
    ``walked``, whether it goes anywhere ``inside`` its field, and how far ``ahead`` its rows are told apart."""

    tested: bool
    walked: Collection[int]
    inside: bool
    ahead: tuple[int, ...]
    reached: tuple[int, int] | None
    """From where to where it went; None where that is not known."""


class _Planner:
    """The places found so far, and the sites that they start from."""

    def __init__(self, levels: Levels) -> None:
        self.levels = levels
        self.places: dict[int, ElementPlace] = {}
        self.sites: dict[int, list[Site]] = {}
        self.written: set[tuple[str, int]] = set()
        self.by_pointer: set[int] = set()
        self.bounds: dict[int, list[Given]] = {}
        self.count = 0

    def result(self, lifted: Lifted) -> RemapPlan:
        """The whole plan."""
        over_fields = {atom for place in self.places.values() for atom, _ in place.along}
        found = ((loop.uid, self._strip_block(loop)) for loop in _loops_of_elements(lifted.body, over_fields))
        blocks = {uid: block for uid, block in found if block}
        written, loaded = frozenset(self.written), frozenset(self.by_pointer)
        return RemapPlan(self.places, self.sites, blocks, written, by_pointer=loaded, bounds=self.bounds)

    def place(
        self,
        access: Access,
        chain: tuple[LiftedLoop, ...],
        relayout: Relayout,
        offset: int,
        runs: Sequence[Run],
        seen: _SeenAs,
    ) -> None:
        """Places ``access``, which goes to byte ``offset`` of an element, or, ``inside``, anywhere in the field that begins
        there, and stands in the loops ``chain``."""
        structure, tested, inside = relayout.structure, seen.tested, seen.inside
        along: tuple[tuple[Operand, int], ...] = ()
        if inside:
            along = moves_in_field(self.levels.terms(access), chain, tuple(d.stride for d in structure.dims), self.levels)
        over = (*(atom for run in runs for atom, _ in run.parts), *(atom for atom, _ in along))
        cut = cut_address(self.levels, access, chain, relayout, frozenset(over), seen.walked)
        if chain and cut.depth < 0 and seen.reached is not None and not rows_told(cut, relayout, chain, seen.reached):
            cut = cut_in_loops(self.levels, cut, relayout, chain)
            if cut.depth < 0:
                raise RowsError(described(access, relayout), "its index counts on over the rows of the array")
        before = self._statement_before(access, chain, relayout, cut)
        start = Linear(access.address.const - structure.origin - offset, cut.fixed)
        moving = [any(term.digits[k] for term in cut.terms) for k in range(len(structure.dims))]
        ahead = tuple(by * on for by, on in zip(seen.ahead, moving, strict=False)) if cut.depth >= 0 else ()
        ahead = ahead if any(ahead) else ()
        bounds = tuple(self._bounds(access, runs, chain, cut.depth))
        site = self._site(before, Site(self.count, relayout, start, (*cut.given, *bounds), tested, inside, ahead))
        if moves_as_one(relayout):
            pieces: tuple[RunPiece, ...] = (in_one(access, relayout, start, site.offset),)
        else:
            pieces = field_pieces(access, offset, relayout)
        if runs:
            where = described(access, relayout)
            along = even_moves(pieces, offset, runs, lambda at: field_pieces(access, at, relayout), where)
        within = grid_range(structure) if tested else None
        self.places[access.uid] = ElementPlace(relayout, site, cut.terms, pieces, along, within)
        if isinstance(access, Store | Atomic):
            for _, moved in distances(runs):
                self.written.update((structure.id, number) for number in covered_fields(access, offset + moved, relayout))

    def picked(self, access: Access, chain: tuple[LiftedLoop, ...], relayout: Relayout, binding: Binding) -> tuple[Run, ...]:
        """The value that picks a field for ``access``, where there is one. What alone leads from element to element picks
        none: it is an index into numbers of which several make up an element."""
        structure, traced = relayout.structure, places_of(access, relayout, binding)
        terms = self.levels.terms(access)
        runs = picked_fields(terms, structure.element_bytes, traced)
        picking = {atom for run in runs for atom, _ in run.parts}
        if not picking or not chain or any(self.levels.level(atom, chain) >= 0 for atom, _ in terms if atom not in picking):
            return runs
        low, high = hull(binding.stream_in(key_of(access), structure.id))
        return runs if high - low < structure.element_bytes else ()

    def _bounds(self, access: Access, runs: Sequence[Run], chain: tuple[LiftedLoop, ...], depth: int) -> Iterator[Given]:
        """How often loops over fields go on at most. What is only known behind the site, as of an element that has its own
        number of them, is asked before the loop itself, and which field is picked where that is known."""
        for run in runs:
            if run.bound is None:
                continue
            given = Given(run.bound, run.most, most=True)
            before: Item
            if isinstance(run.bound, Linear):
                known = max(self.levels.level(atom, chain) for atom, _ in run.parts)
                before = chain[known + 1] if known + 1 < len(chain) else access
            elif self.levels.level(run.bound, chain) > depth:
                before = next(loop for loop in chain if (loop.counter, 1) in run.parts)
            else:
                yield given
                continue
            found = self.bounds.setdefault(before.uid, [])
            found += [given] if given not in found else []

    def _statement_before(self, access: Access, chain: tuple[LiftedLoop, ...], relayout: Relayout, cut: CutAddress) -> Item:
        """The statement before which the part of the address that no digit stands for is known."""
        if cut.depth + 1 < len(chain):
            return chain[cut.depth + 1]
        if not chain or any(isinstance(item, LiftedLoop) for item in chain[-1].body):
            return access
        changing = [atom for atom, _ in cut.fixed if self.levels.level(atom, chain) == cut.depth]
        if moves_as_one(relayout) or all(read_again(atom, chain[-1]) for atom in changing):
            return access  # as a source in the new layout does
        if all(is_loaded(atom, chain[-1]) or atom in self.levels.saved for atom in changing):
            self.by_pointer.add(access.uid)
            return access
        why = "its address has no part that an index can be made of (a pointer changes in the inner loop)"
        raise RemapError(described(access, relayout), why)

    def _site(self, before: Item, wanted: Site) -> Site:
        known = self.sites.setdefault(before.uid, [])
        for site in known:
            offset = wanted.offset
            if moves_as_one(wanted.relayout):  # what lies a constant further on is so in the new place, too
                offset = Linear(site.offset.const, offset.terms)
            if site.relayout is wanted.relayout and replace(site, number=wanted.number) == replace(wanted, offset=offset):
                return site
        known.append(wanted)
        self.count += 1
        return known[-1]

    def _strip_block(self, loop: LiftedLoop) -> int:
        """The block by which ``loop`` is to be strip-mined, the shortest of those that its accesses have; 0 where not all
        blocked ones run along its counter."""
        found: set[int] = set()
        within = [site for item in everything(loop.body) for site in self.sites.get(item.uid, ())]
        for item in accesses(loop.body):
            place = self.places.get(item.uid)
            for piece in place.pieces if place is not None else ():
                for axis in piece.map.axes:
                    if axis.part == "whole":
                        continue
                    assert place is not None
                    if place.relayout.chosen is not None or place.site in within or place.site.tested:
                        return 0  # neighbours share a place, so there are no lanes; or it is not known before the loop
                    own = [t for t in place.terms if t.atom == loop.counter]
                    other = [t for t in place.terms if t.atom != loop.counter and t.digits[axis.dim]]
                    if len(own) != 1 or own[0].digits[axis.dim] != 1 or own[0].shift or other or piece.inner:
                        return 0
                    found.add(axis.block)
        # of lengths that are powers of two the shortest begins and ends within each longer one
        even = all(block & (block - 1) == 0 for block in found)
        return min(found, default=0) if loop.trip is not None and even else 0


def _check_extent(relayout: Relayout) -> None:
    structure = relayout.structure
    last = structure.base + sum((d.count - 1) * d.stride for d in structure.dims)
    for mapped in relayout.fields:
        end = last + structure.fields[mapped.field].offset + structure.fields[mapped.field].bytes
        if end > span(structure)[1]:
            raise RemapError(f"structure {structure.name}", "its grid is larger than its memory")


def _with_loops(body: Sequence[Item], chain: tuple[LiftedLoop, ...]) -> Iterator[tuple[Access, tuple[LiftedLoop, ...]]]:
    for item in body:
        if isinstance(item, Load | Store | Atomic):
            yield item, chain
        elif isinstance(item, LiftedLoop):
            yield from _with_loops(item.body, (*chain, item))


def _loops_of_elements(body: Sequence[Item], over_fields: set[Operand]) -> Iterator[LiftedLoop]:
    """The innermost loops, but for those over fields."""
    for item in body:
        if isinstance(item, LiftedLoop) and item.counter not in over_fields:
            if all(one.counter in over_fields for one in everything(item.body) if isinstance(one, LiftedLoop)):
                yield item
            yield from _loops_of_elements(item.body, over_fields)
