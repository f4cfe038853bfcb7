"""Buffers that a variant left, byte by byte against the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layout_advise.opencl.host.launch import Bytes
from layout_advise.opencl.host.variants import KernelVariant
from layout_advise.opencl.rewrite.marshal import without_padding


@dataclass(frozen=True, slots=True)
class Compared:
    """``compared`` and ``changed`` count the bytes of the buffers, and those that the original changed; ``problem`` says
    where they differ, or why there was nothing to compare."""

    compared: int
    changed: int
    problem: str


def compared(
    variant: KernelVariant,
    results: Sequence[Sequence[Bytes]],
    original: KernelVariant,
    truth: Sequence[Sequence[Bytes]],
) -> Compared:
    """The comparison of all launches of one variant: what each left in its buffers against what the original left."""
    total = changed = 0
    for number, launch in enumerate(original.launches):
        expected = _masked(variant, number, truth[number])
        before = _masked(variant, number, launch.buffers)
        found = variant.originals(number, results[number], launch)
        for data, new, old in zip(expected, found, before, strict=True):
            total += len(data)
            changed += int(np.count_nonzero(data != old))
            differing = np.flatnonzero(data != new)
            if len(differing):
                why = f"{launch.kernel} left {len(differing)} other bytes, the first at {differing[0]}"
                return Compared(total, changed, why)
    return Compared(total, changed, "" if changed else "the kernels change nothing, so that there is nothing to compare")


def _masked(variant: KernelVariant, launch: int, buffers: Sequence[Bytes]) -> list[Bytes]:
    """Buffers of the original with those bytes zeroed that no member of a re-laid record has."""
    homes = variant.homes[launch]
    return [
        data if layout is None else without_padding(layout.record, data)
        for data, (layout, _) in zip(buffers, homes, strict=True)
    ]
