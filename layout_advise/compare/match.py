"""The same regions and structures of two runs: by names and places of allocation, never by addresses or counts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.structure import StructureReport

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class MatchedStructure:
    """A structure in the older and the newer run; None where one of them has none."""

    old: StructureReport | None
    new: StructureReport | None


def source_name(region: HotspotReport) -> str:
    """The region's name in the source, without what compilers append (``step.isra.0``, ``step._omp_fn.0``)."""
    return re.sub(r"\.(isra|part|constprop|cold|lto_priv|_omp_fn|omp_outlined)\b.*$", "", region.name or region.symbol)


def matched_regions(
    old: Sequence[HotspotReport], new: Sequence[HotspotReport]
) -> tuple[tuple[HotspotReport, HotspotReport], ...]:
    """Pairs of one region: of one symbol, else of one name in files of one name, else of one name."""
    keys: tuple[Callable[[HotspotReport], Hashable], ...] = (
        lambda region: (region.symbol, region.region, _file(region.file), region.line),
        lambda region: (region.symbol, region.region),
        lambda region: (source_name(region), _file(region.file)),
        source_name,
    )
    return tuple(_paired(old, new, keys))


def matched_structures(old: HotspotReport, new: HotspotReport) -> tuple[MatchedStructure, ...]:
    """The structures of a region: those of one name and place of allocation, then those of one name, then those that
    were allocated at one place; then those that only one run has."""
    keys: tuple[Callable[[StructureReport], Hashable], ...] = (
        lambda one: (one.name, one.alloc_site),
        lambda one: one.name,
        lambda one: (one.type, one.alloc_site) if one.alloc_site else id(one),
        lambda one: one.alloc_site or id(one),
    )
    pairs = _paired(old.structures, new.structures, keys)
    both = [MatchedStructure(a, b) for a, b in pairs]
    gone = [MatchedStructure(a, None) for a in old.structures if all(a is not pair[0] for pair in pairs)]
    come = [MatchedStructure(None, b) for b in new.structures if all(b is not pair[1] for pair in pairs)]
    return (*both, *gone, *come)


def _paired(old: Sequence[_T], new: Sequence[_T], keys: Sequence[Callable[[_T], Hashable]]) -> list[tuple[_T, _T]]:
    """Pairs that agree in a key, the strictest key first; each is in one pair at most. A key that several share in either
    run tells nothing."""
    pairs: list[tuple[_T, _T]] = []
    for key in keys:
        left = [a for a in old if all(a is not pair[0] for pair in pairs)]
        right = [b for b in new if all(b is not pair[1] for pair in pairs)]
        for a in left:
            same = [b for b in right if key(b) == key(a)]
            if len(same) == 1 and sum(key(other) == key(a) for other in left) == 1:
                pairs.append((a, same[0]))
    return pairs


def _file(path: str | None) -> str:
    return os.path.basename(path or "")
