"""In which order the hotspot's pieces of code ran, folded by the same NLR as the addresses.

A piece is a run of references whose numbers follow each other and that always run together: between the places where
execution came from elsewhere or left for elsewhere. The stream of pieces is folded like a stream of addresses; a piece is
given as a random number there, lest pieces that happen to be evenly spaced look like a loop. An order that does not fold
within the limits of NLR, or takes more than ``MOST_NODES`` nodes, is left out with the reason.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.sets.nests import Affine, Loop, Node, Point
from layout_advise.tracer.folding.clusters import ADDRESS_BITS
from layout_advise.tracer.folding.fold import fold_parts, open_records
from layout_advise.tracer.trace.trace import Control

MOST_NODES = 1024
"""Nodes of a folded order that is kept."""

_PART = 1 << 20
_NAME_BITS = 46


def fold_control(records: NDArray[np.uint64] | Path, references: int) -> Control:
    """The order of execution of ``records`` (``address | reference << 48``)."""
    data = open_records(records) if isinstance(records, Path) else records
    first = _piece_starts(data, references)
    bounds = [*np.flatnonzero(first).tolist(), references]
    pieces = tuple((start, end - 1) for start, end in pairwise(bounds))
    names = random.Random(0).sample(range(1, 1 << _NAME_BITS), len(pieces))
    table = np.zeros(references, dtype=np.uint64)
    table[bounds[:-1]] = names
    stream = fold_parts(table[sites[first[sites]]] for sites in _sites(data))
    if stream is None:
        return Control(None, pieces, "the order of execution is irregular: it does not fold")
    nodes = _numbered(stream.nodes, {name: number for number, name in enumerate(names)})
    if nodes is None or (count := count_nodes(nodes)) > MOST_NODES:
        detail = "pieces are evenly spaced by chance" if nodes is None else f"{count} terms"
        return Control(None, pieces, f"the order of execution folds badly: {detail}")
    return Control(nodes, pieces)


def fold_numbers(parts: Iterable[NDArray[np.uint8]], count: int) -> tuple[Node, ...] | None:
    """The order of numbers below ``count``, folded; None where it does not fold, or into too many nodes."""
    names = random.Random(0).sample(range(1, 1 << _NAME_BITS), count)
    table = np.array(names, dtype=np.uint64)
    stream = fold_parts(table[part] for part in parts)
    nodes = _numbered(stream.nodes, {name: number for number, name in enumerate(names)}) if stream is not None else None
    return nodes if nodes is None or count_nodes(nodes) <= MOST_NODES else None


def _sites(data: NDArray[np.uint64]) -> Iterator[NDArray[np.uint16]]:
    highest = data.view(np.uint16)[3::4]  # little-endian: the references' numbers
    for start in range(0, len(data), _PART):
        yield np.ascontiguousarray(highest[start : start + _PART])


def _piece_starts(data: NDArray[np.uint64], references: int) -> NDArray[np.bool_]:
    """For every reference, whether a piece begins with it."""
    first = np.zeros((1 << 16) + 1, dtype=np.bool_)
    last = np.zeros(1 << 16, dtype=np.bool_)
    first[0] = True
    before = None
    for sites in _sites(data):
        if before is not None and sites[0] != before + 1:
            first[[int(sites[0]), before + 1]] = True
        broken = np.flatnonzero(sites[1:] - sites[:-1] != 1)  # modulo 2**16
        first[sites[broken + 1]] = True
        last[sites[broken]] = True
        before = int(sites[-1])
    if before is not None:
        first[before + 1] = True  # what follows the last access did not run with it
    if len(data):
        first[int(data[0] >> np.uint64(ADDRESS_BITS))] = True
    first[1:] |= last
    return first[:references]


def _numbered(nodes: tuple[Node, ...], number: Mapping[int, int]) -> tuple[Node, ...] | None:
    """The same nests with the pieces' numbers for their names; ``None`` where a name depends on an index."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Point):
            if any(node.address.coefs):
                return None
            found.append(Point(Affine(number[node.address.const])))
            continue
        body = _numbered(node.body, number)
        if body is None:
            return None
        found.append(Loop(node.trip, body))
    return tuple(found)


def count_nodes(nodes: tuple[Node, ...]) -> int:
    """Points and loops."""
    return sum(1 if isinstance(node, Point) else 1 + count_nodes(node.body) for node in nodes)


def renumbered(control: Control, by: int) -> Control:
    """The same order where all references have ids that are ``by`` greater."""
    return replace(control, pieces=tuple((first + by, last + by) for first, last in control.pieces))


def of_kept(control: Control, keep: Sequence[int]) -> Control:
    """The same order among the references ``keep`` (ascending) only, which are numbered anew."""
    number = {old: new for new, old in enumerate(keep)}
    kept = [[number[k] for k in range(first, last + 1) if k in number] for first, last in control.pieces]
    pieces = tuple((ids[0], ids[-1]) for ids in kept if ids)
    left = {piece: new for new, piece in enumerate(k for k, ids in enumerate(kept) if ids)}
    nodes = None if control.nodes is None else tuple(_of_kept(control.nodes, left))
    return Control(nodes, pieces, control.reason)


def _of_kept(nodes: Sequence[Node], left: Mapping[int, int]) -> Iterator[Node]:
    for node in nodes:
        if isinstance(node, Point):
            if node.address.const in left:
                yield Point(Affine(left[node.address.const]))
        elif body := tuple(_of_kept(node.body, left)):
            yield Loop(node.trip, body)
