"""Re-indexing: every access to a restructured structure as digits (one per dimension) that are linear in loop counters.

An old address is ``base + sum(digit[k] * stride[k]) + field``. The part of an address that no enclosing loop changes is cut
into digits once at run time, by division, before the outermost loop where it is known; a division per access would hide
any gain (it was tried). The coefficient of every other atom (a loop counter, a loaded index) is cut into digits now,
exactly, or the candidate is rejected. That the digits are the canonical ones is not proved here: the check build compares
every new address with the map applied to the old one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout
from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.mockup.evidence.binding import Access, Binding, Key, access_bytes, accesses, key_of, span
from layout_advise.mockup.evidence.streams import first_address, residue, residues
from layout_advise.mockup.evidence.untaken_accesses import residues_of, unseen
from layout_advise.mockup.ir.lifted import (
    Atomic,
    Item,
    Lifted,
    LiftedLoop,
    Linear,
    Load,
    Operand,
    Store,
    Val,
    everything,
)
from layout_advise.mockup.remap.field_runs import (
    Run,
    RunPiece,
    distances,
    even_moves,
    runs_over_fields,
    start_of_runs,
    uncovered,
)
from layout_advise.mockup.remap.operand_levels import Levels, read_again, read_as_it_goes
from layout_advise.mockup.remap.row_steps import Given, row_steps


@dataclass(frozen=True, slots=True)
class IndexTerm:
    """``(atom >> shift) * digits[k]`` is added to the index of dimension k."""

    atom: Operand
    digits: tuple[int, ...]
    shift: int = 0


@dataclass(frozen=True, slots=True)
class Site:
    """``offset`` (bytes from the structure's base, field offset taken off) is cut into digits once, before an item; the
    accesses take ``given`` for granted."""

    number: int
    relayout: Relayout
    offset: Linear
    given: tuple[Given, ...] = ()

    @property
    def choice(self) -> tuple[tuple[str, int], ...]:
        """The values that decide which field an address is of, as the compiler would see them: what is added in whole
        elements does not."""
        stride = self.relayout.structure.dims[-1].stride
        terms = ((repr(atom), coef % stride) for atom, coef in self.offset.terms if coef % stride)
        return ((self.relayout.structure.id, stride), *sorted(terms))


@dataclass(frozen=True, slots=True)
class ElementPlace:
    """Where an access goes; ``along`` are counters of loops over fields that go on by so many bytes each."""

    relayout: Relayout
    site: Site
    terms: tuple[IndexTerm, ...]
    pieces: tuple[RunPiece, ...]
    along: tuple[tuple[Val, int], ...] = ()


@dataclass(slots=True)
class RemapPlan:
    """By statement number: ``places`` of accesses, ``sites`` that are computed before a statement, ``blocks``: the block
    size of a loop that can be strip-mined. ``written`` are (structure id, field number) that the hotspot stores to."""

    places: dict[int, ElementPlace] = field(default_factory=dict)
    sites: dict[int, list[Site]] = field(default_factory=dict)
    blocks: dict[int, int] = field(default_factory=dict)
    written: set[tuple[str, int]] = field(default_factory=set)
    count: int = 0

    def chosen_at_run_time(self, relayout: Relayout) -> bool:
        """Whether sites of the structure start from different values: which field is accessed there (``[now]``, ``[next]``)
        was found by the trace, and the compiler of a program in the new layout would not know it."""
        return len({p.site.choice for p in self.places.values() if p.site.relayout is relayout}) > 1


def plan(lifted: Lifted, candidate: Candidate | None, binding: Binding) -> RemapPlan:
    """Place every access to a structure that ``candidate`` restructures.

    Raises RemapError with the reason where one of them does not decompose.
    """
    result = RemapPlan()
    if candidate is None:
        return result
    relayouts = {r.structure.id: r for r in candidate.relayouts}
    for name, relayout in relayouts.items():
        if name in binding.impossible:
            raise RemapError(f"candidate {candidate.id}", binding.impossible[name])
        _check_extent(relayout)
    levels = Levels(lifted, binding)
    structures = [r.structure for r in candidate.relayouts]
    others = residues_of(unseen(lifted.body, structures, binding.structure_of, binding.streams), structures)
    names = {key: name for key, (name, _) in others.items()} | binding.structure_of
    moved = [(a, chain) for a, chain in _with_loops(lifted.body, ()) if names.get(key_of(a), "") in relayouts]
    copies: dict[Key, list[Access]] = {}
    for access, _ in moved:
        copies.setdefault(key_of(access), []).append(access)
    for access, chain in moved:
        key = key_of(access)
        relayout = relayouts[names[key]]
        runs = runs_over_fields(access.address, chain, relayout.structure.element_bytes)
        if key in others:
            offset = (others[key][1] + access.part) % relayout.structure.element_bytes
        else:
            offset = _offset(access, copies[key], relayout, binding, runs)
        _place(access, chain, relayout, offset, levels, result, runs)
    over_fields = {counter for place in result.places.values() for counter, _ in place.along}
    for loop in _loops_of_elements(lifted.body, over_fields):
        block = _strip_block(loop, result)
        if block:
            result.blocks[loop.uid] = block
    return result


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


def _loops_of_elements(body: Sequence[Item], over_fields: set[Val]) -> Iterator[LiftedLoop]:
    """The innermost loops, but for those over fields."""
    for item in body:
        if isinstance(item, LiftedLoop) and item.counter not in over_fields:
            if all(one.counter in over_fields for one in everything(item.body) if isinstance(one, LiftedLoop)):
                yield item
            yield from _loops_of_elements(item.body, over_fields)


def is_innermost(loop: LiftedLoop) -> bool:
    """Whether the loop contains no other loop."""
    return not any(isinstance(item, LiftedLoop) for item in loop.body)


def decompose(coef: int, strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """Signed digits with ``sum(digit * stride) == coef`` and the smallest sum of magnitudes; None where there are none.

    >>> decompose(990, (1000, 10))
    (1, -1)
    """
    if len(strides) == 1:
        return (coef // strides[0],) if coef % strides[0] == 0 else None
    best: tuple[int, ...] | None = None
    for digit in (coef // strides[0], coef // strides[0] + 1):
        rest = decompose(coef - digit * strides[0], strides[1:])
        if rest is not None and (best is None or sum(map(abs, (digit, *rest))) < sum(map(abs, best))):
            best = (digit, *rest)
    return best


def _term(atom: Operand, coef: int, strides: tuple[int, ...]) -> IndexTerm | None:
    digits = decompose(coef, strides)
    if digits is not None:
        return IndexTerm(atom, digits)
    for shift in range(1, 13):  # an index that the code keeps scaled by a power of two
        digits = decompose(coef << shift, strides)
        if digits is not None and abs(coef) << shift >= strides[-1] and coef > 1:
            return IndexTerm(atom, digits, shift)
    return None


def _where(access: Access, relayout: Relayout) -> str:
    return f"the access at {access.origin.pc:#x} to {relayout.structure.name}"


def _offset(access: Access, copies: Sequence[Access], relayout: Relayout, binding: Binding, runs: Sequence[Run]) -> int:
    """The access's place in the element.

    Where a loop over fields was written out, its iterations (``copies`` of one reference) are known from each other by their
    addresses' constants, and which fields they go to together by the trace. Raises RemapError where that is ambiguous; a
    wrong answer would not pass the check build.
    """
    structure = relayout.structure
    size = structure.element_bytes
    stream = binding.streams[key_of(access)]
    only = residue(stream, structure.base, size)
    if only is not None:
        return (only + access.part) % size
    if runs:
        start = start_of_runs(stream, structure, runs) if len(copies) == 1 else None
        if start is None:
            raise RemapError(_where(access, relayout), "a loop runs over the fields of an element")
        return (start + access.part) % size
    apart = {(a.address.const - a.part - access.address.const + access.part) % size for a in copies}
    traced = residues(stream, structure.base, size) if len(apart) > 1 else None
    if traced is None:
        raise RemapError(_where(access, relayout), _chosen_field(access, size))
    fitting = [r for r in traced if {(r + d) % size for d in apart} == traced]
    if len(fitting) > 1 and isinstance(stream, FoldedStream):  # all fields alike: the first copy runs first
        start = copies[0].address.const - copies[0].part - access.address.const + access.part
        fitting = [(first_address(stream) - structure.base - start) % size]
    if len(fitting) != 1:
        raise RemapError(_where(access, relayout), "which fields a loop over them goes to is not clear from the trace")
    return (fitting[0] + access.part) % size


def _chosen_field(access: Access, size: int) -> str:
    """Why it is not known which field of an element of ``size`` bytes an access goes to."""
    if any(min(coef, (1 << 64) - coef) < size and isinstance(atom, Val) for atom, coef in access.address.terms):
        return "which field it goes to is computed there, as in a loop over fields or a choice of one of them"
    return "a loop runs over the fields of an element"


def _place(
    access: Access,
    chain: tuple[LiftedLoop, ...],
    relayout: Relayout,
    offset: int,
    levels: Levels,
    result: RemapPlan,
    runs: Sequence[Run],
) -> None:
    structure = relayout.structure
    strides = tuple(d.stride for d in structure.dims)
    where = _where(access, relayout)
    terms: list[IndexTerm] = []
    fixed: list[tuple[Operand, int]] = []
    given: list[Given] = []
    depth = -1
    counters = {run.counter for run in runs}
    for atom, coef in levels.terms(access):
        if atom in counters:
            continue
        product = levels.products.get(atom.number) if isinstance(atom, Val) else None
        steps = row_steps(product, coef, relayout, lambda operand: levels.level(operand, chain))
        if steps is not None:
            atom, coef = steps[:2]
            given.append(steps[2])
        level = levels.level(atom, chain)
        term = _term(atom, coef, strides) if level >= 0 else None
        if term is None:
            fixed.append((atom, coef))
            depth = max(depth, level)
        else:
            terms.append(term)
    if depth + 1 < len(chain):
        before: Item = chain[depth + 1]
    elif not chain or not is_innermost(chain[-1]):
        before = access
    elif all(read_again(atom, chain[-1]) for atom, _ in fixed if levels.level(atom, chain) == depth):
        before = access  # as a source in the new layout does
    elif any(read_as_it_goes(atom, chain[-1]) for atom, _ in fixed):
        raise RemapError(where, "its address is read from the element before, as in a linked list: there is no index")
    else:
        raise RemapError(where, "its address has no part that an index can be made of (a pointer changes in the inner loop)")
    site = _site(
        result, before, relayout, Linear(access.address.const - structure.base - offset, tuple(fixed)), tuple(given)
    )
    pieces = _pieces(access, offset, relayout, where)
    along = even_moves(pieces, offset, runs, lambda at: _pieces(access, at, relayout, where), where) if runs else ()
    result.places[access.uid] = ElementPlace(relayout, site, tuple(terms), pieces, along)
    if isinstance(access, Store | Atomic):
        for _, moved in distances(runs):
            result.written.update((structure.id, number) for number in _covered(access, offset + moved, relayout))


def _site(result: RemapPlan, before: Item, relayout: Relayout, offset: Linear, given: tuple[Given, ...]) -> Site:
    known = result.sites.setdefault(before.uid, [])
    for site in known:
        if site.offset == offset and site.relayout is relayout and site.given == given:
            return site
    known.append(Site(result.count, relayout, offset, given))
    result.count += 1
    return known[-1]


def _pieces(access: Access, offset: int, relayout: Relayout, where: str) -> tuple[RunPiece, ...]:
    """Cut the access at field borders; neighbours that stay neighbours are one piece."""
    structure = relayout.structure
    maps = {structure.fields[m.field].offset: m for m in relayout.fields}
    pieces: list[RunPiece] = []
    at, size = 0, access_bytes(access)
    while at < size:
        inner, local = divmod(offset + at, structure.element_bytes)
        start = max((o for o in maps if o <= local), default=None)
        if start is None or local >= start + structure.fields[maps[start].field].bytes:
            raise RemapError(f"the access at {access.origin.pc:#x}", uncovered(structure, local, size - at))
        mapped = maps[start]
        length = min(size - at, start + structure.fields[mapped.field].bytes - local)
        piece = RunPiece(at, length, mapped, local - start, inner)
        if pieces and _joins(pieces[-1], piece):
            piece = RunPiece(pieces[-1].at, pieces[-1].bytes + length, pieces[-1].map, pieces[-1].delta, pieces[-1].inner)
            pieces.pop()
        pieces.append(piece)
        at += length
    if any(p.bytes not in (1, 2, 4, 8) for p in pieces):
        raise RemapError(where, "it covers pieces of fields that are no machine words")
    if isinstance(access, Atomic) and len(pieces) > 1:
        raise RemapError(where, "it is atomic and covers several fields")
    return tuple(pieces)


def _covered(access: Access, offset: int, relayout: Relayout) -> frozenset[int]:
    """Numbers of all fields that the access has bytes of; pieces that were joined name their first field only."""
    structure = relayout.structure
    bytes_ = {(offset + k) % structure.element_bytes for k in range(access_bytes(access))}
    fields = ((m.field, structure.fields[m.field]) for m in relayout.fields)
    return frozenset(number for number, f in fields if any(b in bytes_ for b in range(f.offset, f.offset + f.bytes)))


def _joins(first: RunPiece, second: RunPiece) -> bool:
    same = first.map.buffer == second.map.buffer and first.map.axes == second.map.axes and first.inner == second.inner
    joined = first.map.offset + first.delta + first.bytes == second.map.offset + second.delta
    return same and joined and (first.bytes + second.bytes) in (2, 4, 8)


def _strip_block(loop: LiftedLoop, result: RemapPlan) -> int:
    """The block by which ``loop`` is to be strip-mined, 0 if not: all its blocked accesses must run along its counter."""
    found: set[int] = set()
    within = [site for item in everything(loop.body) for site in result.sites.get(item.uid, ())]
    for item in accesses(loop.body):
        place = result.places.get(item.uid)
        for piece in place.pieces if place is not None else ():
            for axis in piece.map.axes:
                if axis.part == "whole":
                    continue
                assert place is not None
                if place.relayout.chosen is not None or place.site in within:
                    return 0  # neighbours share a place, so there are no lanes; or it is not known before the loop
                own = [t for t in place.terms if t.atom == loop.counter]
                other = [t for t in place.terms if t.atom != loop.counter and t.digits[axis.dim]]
                if len(own) != 1 or own[0].digits[axis.dim] != 1 or own[0].shift or other or piece.inner:
                    return 0
                found.add(axis.block)
    block = found.pop() if len(found) == 1 else 0
    return block if loop.trip is not None and block & (block - 1) == 0 else 0
