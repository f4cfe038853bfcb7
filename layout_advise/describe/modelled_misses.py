"""Cache misses of each reference, modelled: the folded streams, interleaved, through caches that keep what was used last.

Of the lines a part is looked at, chosen by a hash of their numbers, and the caches are smaller by as much (Waldspurger and
others, "Efficient MRC construction with SHARDS", FAST 2015). What the model leaves out: sets, prefetching, other data
between the calls, the order within a call of references that do not run at an even pace, and the first of two lines that
an access lies in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layout_advise.describe.policy import CHECKS
from layout_advise.layoutalgebra.sets.nests import AddressSet, Stream
from layout_advise.mockup.evidence.streams import expand_array
from layout_advise.reports.model.contract import Machine

Misses = tuple[float, ...]
"""Lines that one call fetches from behind each level of the caches, the first level first."""
HASH = 0x9E3779B97F4A7C15
"""An odd number near 2^64 over the golden ratio (Knuth, TAOCP 3, 6.4): neighbours lie apart."""
PARTS = 1 << 24
"""Lines are chosen by so many values of the hash."""


@dataclass(frozen=True, slots=True)
class CacheSizes:
    """Bytes of a line, and of each level that is known."""

    line: int
    levels: tuple[int, ...]


def cache_sizes(machine: Machine) -> CacheSizes:
    """The caches of a machine; levels of unknown size are left out with all behind them."""
    found: list[int] = []
    for size in (machine.l1d_bytes, machine.l2_bytes, machine.l3_bytes):
        if size <= 0:
            break
        found.append(size)
    return CacheSizes(machine.line_bytes, tuple(found))


def modelled_misses(accesses: Sequence[tuple[Stream | None, int]], caches: CacheSizes) -> tuple[Misses, ...] | None:
    """The misses of each of ``accesses`` (stream, bytes of an access), in a call behind another one that did the same.

    None where there are too many accesses, addresses that are not known, or no caches known."""
    total = sum(stream.count for stream, _ in accesses if stream is not None)
    if not caches.levels or total > CHECKS.most_modelled:
        return None
    lines = [_lines(stream, size, caches.line) for stream, size in accesses]
    known = [one for one in lines if one is not None]
    if len(known) < len(lines):
        return None
    distinct = len(np.unique(np.concatenate([np.unique(one) for one in known]))) if known else 0
    none = (0.0,) * len(caches.levels)
    if distinct * caches.line <= caches.levels[0]:
        return (none,) * len(accesses)
    part = min(1.0, max(CHECKS.modelled_accesses / max(total, 1), CHECKS.modelled_lines / distinct))
    order, owners = _interleaved([_chosen(one, part) for one in known], [len(one) for one in known])
    return _counted(order, owners, len(accesses), [part * size / caches.line for size in caches.levels], part)


def _lines(stream: Stream | None, size: int, line: int) -> NDArray[np.uint64] | None:
    """The numbers of the lines that the accesses touch, in order; of a set in an order drawn by lot."""
    if stream is None:
        return np.empty(0, np.uint64)
    if isinstance(stream, AddressSet):
        places = _members(stream)
        if places is None:
            return None
        drawn = np.random.default_rng(1).permutation(np.resize(places, stream.count))
        return (drawn + np.uint64(size - 1)) // np.uint64(line)
    return (expand_array(stream) + np.uint64(size - 1)) // np.uint64(line)


def _members(stream: AddressSet) -> NDArray[np.uint64] | None:
    """All addresses of a set, None where they are not known."""
    if stream.clusters:
        parts = [_members(one) for one in stream.clusters]
        return None if any(one is None for one in parts) else np.concatenate([one for one in parts if one is not None])
    if stream.bitmap is None:
        return None
    bits = np.unpackbits(np.frombuffer(stream.bitmap, np.uint8), bitorder="little")
    return np.uint64(stream.minimum) + np.flatnonzero(bits).astype(np.uint64) * np.uint64(stream.gcd)


def _chosen(lines: NDArray[np.uint64], part: float) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The places in time and the numbers of the lines that are looked at."""
    if part >= 1.0:
        return np.arange(len(lines), dtype=np.int64), lines
    with np.errstate(over="ignore"):
        hashed = (lines * np.uint64(HASH)) >> np.uint64(40)
    places = np.flatnonzero(hashed < np.uint64(int(part * PARTS))).astype(np.int64)
    return places, lines[places]


def _interleaved(
    chosen: Sequence[tuple[NDArray[np.int64], NDArray[np.uint64]]], counts: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The lines of all references in one order, in which each runs at an even pace from the call's begin to its end, and
    whose they are. One access right after another one to its line cannot miss, and is left out."""
    times = np.concatenate([(places + 0.5) / max(count, 1) for (places, _), count in zip(chosen, counts, strict=True)])
    owners = np.concatenate([np.full(len(places), number) for number, (places, _) in enumerate(chosen)])
    lines = np.concatenate([own for _, own in chosen])
    order = np.lexsort((owners, times))
    lines, owners = lines[order], owners[order]
    kept = np.ones(len(lines), bool)
    kept[1:] = lines[1:] != lines[:-1]
    return lines[kept].tolist(), owners[kept].astype(int).tolist()


def _counted(
    order: Sequence[int], owners: Sequence[int], references: int, rooms: Sequence[float], part: float
) -> tuple[Misses, ...]:
    """The misses of each reference in the second of two runs through the order, by level."""
    found = [[0.0] * len(rooms) for _ in range(references)]
    for level, room in enumerate(rooms):
        kept: OrderedDict[int, None] = OrderedDict()
        most = max(1, round(room))
        for again in (False, True):
            for line, owner in zip(order, owners, strict=True):
                if line in kept:
                    kept.move_to_end(line)
                    continue
                found[owner][level] += again
                kept[line] = None
                if len(kept) > most:
                    kept.popitem(last=False)
    return tuple(tuple(count / part for count in counts) for counts in found)
