"""Comparisons of many bytes of which a number has a bit each: ``pcmpeqb`` and ``pmovmskb``, one vector statement again.

Hash tables, searches for a byte and parsers live on them. Lifted, they are a comparison, a shift and an ``or`` for each
byte, which no compiler puts together again (zstd: the unchanged layout took twice as long as the original).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from layout_advise.mockup.emit.packs.pack import Plain
from layout_advise.mockup.ir.lifted import Imm, Item, Let, Lifted, LiftedLoop, Load, Operand, Store, Val

WIDTHS = (32, 16)
_SIGNS = {"eq": "==", "slt": "<"}


@dataclass(frozen=True, slots=True)
class ByteMask:
    """Bit k is whether ``left[k] sign right[k]``, of signed bytes. ``loads`` are those by which a side's bytes come from one
    place after another, which nothing writes to before the comparison; empty for a side that comes otherwise."""

    sign: str
    left: tuple[Operand, ...]
    right: tuple[Operand, ...]
    loads: tuple[tuple[Load, ...], tuple[Load, ...]]


_Leaf = tuple[str, Operand, Operand]


def byte_masks(lifted: Lifted, most: int) -> Mapping[int, ByteMask]:
    """The masks of up to ``most`` bytes in the code, by the number of the statement that has the last bit."""
    return {uid: mask for uid, mask in _in_body(lifted.body) if len(mask.left) <= most}


def _in_body(items: Sequence[Item]) -> Iterator[tuple[int, ByteMask]]:
    for plain, run in groupby(items, key=lambda item: isinstance(item, Plain)):
        if plain:
            yield from _in_segment([item for item in run if isinstance(item, Plain)])
        else:
            for item in run:
                if isinstance(item, LiftedLoop):
                    yield from _in_body(item.body)


def _in_segment(items: Sequence[Plain]) -> Iterator[tuple[int, ByteMask]]:
    """Of statements without control flow."""
    bits: dict[int, dict[int, _Leaf]] = {}
    loads: dict[int, tuple[int, Load]] = {}
    lets: dict[int, Let] = {}
    stored = 0
    for k, item in enumerate(items):
        if isinstance(item, Store):
            stored = k
        elif isinstance(item, Load):
            loads[item.value.number] = k, item
        elif isinstance(item, Let):
            lets[item.value.number] = item
            found = _bits(item, lets, bits)
            if found is None:
                continue
            bits[item.value.number] = found
            if len(found) in WIDTHS and set(found) == set(range(len(found))):
                since = {n: load for n, (at, load) in loads.items() if at >= stored}
                mask = _mask([found[lane] for lane in range(len(found))], since)
                if mask is not None:
                    yield item.uid, mask


def _bits(item: Let, lets: Mapping[int, Let], known: Mapping[int, dict[int, _Leaf]]) -> dict[int, _Leaf] | None:
    """By bit of the value, the comparison that it tells of; None where a bit is something else."""
    parts = [known.get(a.number) if isinstance(a, Val) else None for a in item.args]
    if item.name == "zext" and isinstance(item.args[0], Val):
        let = lets.get(item.args[0].number)
        compared = let is not None and let.name in _SIGNS and all(a.ty == "i8" for a in let.args)
        return {0: (let.name, let.args[0], let.args[1])} if let is not None and compared else parts[0]
    if item.name == "or" and parts[0] is not None and parts[1] is not None and not parts[0].keys() & parts[1].keys():
        return parts[0] | parts[1]
    if item.name in ("mul", "shl") and parts[0] is not None and isinstance(item.args[1], Imm):
        by = item.args[1].value if item.name == "shl" else item.args[1].value.bit_length() - 1
        moved = item.name == "shl" or item.args[1].value == 1 << by
        return {bit + by: leaf for bit, leaf in parts[0].items()} if moved else None
    return None


def _mask(leaves: Sequence[_Leaf], loads: Mapping[int, Load]) -> ByteMask | None:
    name = leaves[0][0]
    if any(leaf[0] != name for leaf in leaves):
        return None
    pairs = [(left, right) for _, left, right in leaves]
    if name == "eq":  # which side a value stands on says nothing
        pairs = _sorted_sides(pairs, loads)
    left, right = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    return ByteMask(_SIGNS[name], left, right, (_in_a_row(left, loads), _in_a_row(right, loads)))


def _sorted_sides(pairs: Sequence[tuple[Operand, Operand]], loads: Mapping[int, Load]) -> list[tuple[Operand, Operand]]:
    """The pairs with the bytes of one register on one side, as far as these were loaded together or are one value."""

    def source(operand: Operand) -> object:
        load = loads.get(operand.number) if isinstance(operand, Val) else None
        return operand if load is None else (load.origin.pc, load.address.terms)

    first = source(pairs[0][0])
    return [(a, b) if source(a) == first or source(b) != first else (b, a) for a, b in pairs]


def _in_a_row(side: Sequence[Operand], loads: Mapping[int, Load]) -> tuple[Load, ...]:
    found = [loads[a.number] for a in side if isinstance(a, Val) and a.number in loads]
    if len(found) < len(side) or any(load.guarded for load in found):
        return ()
    first = found[0].address
    lined = all(
        load.address.terms == first.terms and (load.address.const - first.const) % (1 << 64) == k
        for k, load in enumerate(found)
    )
    return tuple(found) if lined else ()
