"""The fields of an element that an access goes to, cut at their borders."""

from __future__ import annotations

from collections.abc import Sequence

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Relayout
from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.mockup.evidence.binding import Access, Binding, access_bytes, key_of
from layout_advise.mockup.evidence.streams import first_address, residue, residues
from layout_advise.mockup.ir.lifted import Atomic, Val
from layout_advise.mockup.remap.field_runs import COMPUTED, OVER_FIELDS, Run, RunPiece, start_of_runs, uncovered


def described(access: Access, relayout: Relayout) -> str:
    """The access in the words of an error."""
    return f"the access at {access.origin.pc:#x} to {relayout.structure.name}"


def element_offset(
    access: Access, copies: Sequence[Access], relayout: Relayout, binding: Binding, runs: Sequence[Run]
) -> int:
    """Returns the access's place in the element, in bytes.

    Where a loop over fields was written out, its iterations (``copies`` of one reference) are known from each other by their
    addresses' constants, and which fields they go to together by the trace. Raises RemapError where that is ambiguous; a
    wrong answer would not pass the check build.
    """
    structure = relayout.structure
    size = structure.element_bytes
    stream = binding.stream_in(key_of(access), structure.id)
    only = residue(stream, structure.base, size)
    if only is not None:
        return (only + access.part) % size
    if runs:
        alone = len(copies) == 1 or all(run.picked for run in runs)
        start = start_of_runs(stream, structure, runs) if alone else None
        if start is None:
            raise RemapError(described(access, relayout), OVER_FIELDS)
        return (start + access.part) % size
    apart = {(a.address.const - a.part - access.address.const + access.part) % size for a in copies}
    traced = residues(stream, structure.base, size) if len(apart) > 1 else None
    if traced is None:
        raise RemapError(described(access, relayout), _chosen_field(access, size))
    fitting = [r for r in traced if {(r + d) % size for d in apart} == traced]
    if len(fitting) > 1 and isinstance(stream, FoldedStream):  # all fields alike: the first copy runs first
        start = copies[0].address.const - copies[0].part - access.address.const + access.part
        fitting = [(first_address(stream) - structure.base - start) % size]
    if len(fitting) != 1:
        raise RemapError(described(access, relayout), "which fields a loop over them goes to is not clear from the trace")
    return (fitting[0] + access.part) % size


def places_of(access: Access, relayout: Relayout, binding: Binding) -> frozenset[int] | None:
    """The places in the elements of a structure where the traced access went; None where that is not known."""
    structure, key = relayout.structure, key_of(access)
    reached = binding.shared[key] if key in binding.shared else binding.structure_of.get(key, "")
    if structure.id not in ((reached,) if isinstance(reached, str) else reached):
        return None
    return residues(binding.stream_in(key, structure.id), structure.base, structure.element_bytes)


def _chosen_field(access: Access, size: int) -> str:
    """Why it is not known which field of an element of ``size`` bytes an access goes to."""
    if any(min(coef, (1 << 64) - coef) < size and isinstance(atom, Val) for atom, coef in access.address.terms):
        return COMPUTED
    return OVER_FIELDS


def field_pieces(access: Access, offset: int, relayout: Relayout) -> tuple[RunPiece, ...]:
    """Returns the access cut at field borders; neighbours that stay neighbours are one piece.

    Raises RemapError where it covers bytes of no field, or pieces that are no machine words.
    """
    where = described(access, relayout)
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


def covered_fields(access: Access, offset: int, relayout: Relayout) -> frozenset[int]:
    """Returns the numbers of all fields that the access has bytes of: joined pieces name their first field only."""
    structure = relayout.structure
    bytes_ = {(offset + k) % structure.element_bytes for k in range(access_bytes(access))}
    fields = ((m.field, structure.fields[m.field]) for m in relayout.fields)
    return frozenset(number for number, f in fields if any(b in bytes_ for b in f.place))


def _joins(first: RunPiece, second: RunPiece) -> bool:
    same = first.map.buffer == second.map.buffer and first.map.axes == second.map.axes and first.inner == second.inner
    joined = first.map.offset + first.delta + first.bytes == second.map.offset + second.delta
    return same and joined and (first.bytes + second.bytes) in (2, 4, 8)


def first_element(access: Access, relayout: Relayout, binding: Binding) -> tuple[int, ...] | None:
    """Returns the digits of the element where the first execution of the access's reference went; None where not known."""
    stream = binding.streams.get(key_of(access))
    if not isinstance(stream, FoldedStream) or access.lanes:
        return None
    return digits_of(first_address(stream) + access.part, relayout)


def digits_of(address: int, relayout: Relayout) -> tuple[int, ...]:
    """Returns the indices of the element that ``address`` lies in."""
    rest = address - relayout.structure.base
    digits = []
    for dim in relayout.structure.dims:
        digit, rest = divmod(rest, dim.stride)
        digits.append(digit)
    return tuple(digits)
