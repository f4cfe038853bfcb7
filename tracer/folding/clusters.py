"""Sets of addresses that lie far apart: one exact set for each part of memory, where one bitmap over all would be too large.

An instruction that reaches the heap and a mapping, or the stack, has addresses as far from each other as the address space
is wide. Its few places are then found in a second pass over the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from layout_advise.layoutalgebra.sets.nests import AddressSet, Stream

ADDRESS_BITS = 48
"""A record is ``address | site << 48``: user space ends below 2**47 on x86-64."""

FAR = 1 << 26
"""Bytes without an access between two clusters."""
MOST_PLACES = 1 << 22
"""Addresses of all references together beyond which none is written out: 32 MB, and as much for how often."""
MOST_APART = 1 << 29
"""Places that a set of ``tracer/nlr`` has a bitmap for."""
MOST_CLUSTERS = 256
MOST_BITS = 1 << 26
"""Places of one cluster: 8 MB of bitmap."""
_AT_ONCE = 1 << 22

Words = NDArray[np.uint64]
Counts = NDArray[np.int64]


def with_clusters(records: Words, streams: Sequence[Stream | None]) -> list[Stream | None]:
    """``streams`` of the raw ``records`` (``address | site << 48``), the inexact sets among them as clusters where their
    addresses are few enough."""
    inexact = [k for k, one in enumerate(streams) if isinstance(one, AddressSet) and _is_wide(one)]
    found = _counted(records, inexact, len(streams)) if inexact else None
    result = list(streams)
    if found is None:
        return result
    places, counts = found
    sites = (places >> np.uint64(ADDRESS_BITS)).astype(np.int64)
    for k in inexact:
        low, high = np.searchsorted(sites, [k, k + 1])
        whole = result[k]
        assert isinstance(whole, AddressSet)
        own = (places[low:high] & np.uint64((1 << ADDRESS_BITS) - 1)).astype(np.int64)
        parts = list(_clusters(own, counts[low:high]))
        if len(parts) <= MOST_CLUSTERS and all(part is not None for part in parts):
            result[k] = replace(whole, clusters=tuple(part for part in parts if part is not None))
    return result


def _is_wide(found: AddressSet) -> bool:
    """Returns whether a set is inexact for no other reason than how far its addresses lie apart."""
    return not found.exact and (found.maximum - found.minimum) // max(found.gcd, 1) > MOST_APART


def _counted(records: Words, wanted: Sequence[int], sites: int) -> tuple[Words, Counts] | None:
    """The distinct records of the sites ``wanted``, ascending, and how often each occurs; None where they are too many."""
    chosen = np.zeros(sites, dtype=bool)
    chosen[list(wanted)] = True
    places, counts = np.empty(0, np.uint64), np.empty(0, np.int64)
    for start in range(0, len(records), _AT_ONCE):
        part = records[start : start + _AT_ONCE]
        own, times = np.unique(part[chosen[part >> np.uint64(ADDRESS_BITS)]], return_counts=True)
        both = np.concatenate([places, own])
        places, back = np.unique(both, return_inverse=True)
        if places.size > MOST_PLACES:
            return None
        counts = np.bincount(back, weights=np.concatenate([counts, times]), minlength=places.size).astype(np.int64)
    return places, counts


def _clusters(places: NDArray[np.int64], counts: Counts) -> Iterator[AddressSet | None]:
    """A set for each run of ascending ``places`` without a wide gap; None for one whose bitmap would be too large."""
    borders = [0, *(np.flatnonzero(np.diff(places) > FAR) + 1).tolist(), places.size]
    for start, end in pairwise(borders):
        own = places[start:end]
        low, high = int(own[0]), int(own[-1])
        step = int(np.gcd.reduce(own - low))
        length = (high - low) // step + 1 if step else 1
        if length > MOST_BITS:
            yield None
            continue
        bits = np.zeros(length, dtype=np.uint8)
        bits[(own - low) // max(step, 1)] = 1
        yield AddressSet(low, high, step, int(counts[start:end].sum()), np.packbits(bits, bitorder="little").tobytes())
