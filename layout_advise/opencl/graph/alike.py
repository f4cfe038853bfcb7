"""Members that kernels access alike: layouts that differ by an exchange of such make the same accesses by other names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from layout_advise.layoutalgebra.fieldgraph.memory_distance import Repeat, Step
from layout_advise.opencl.source.kernels import BufferRecord

Signature = tuple[object, ...]


def alike(record: BufferRecord, kernels: Sequence[Sequence[Step]]) -> tuple[tuple[str, ...], ...]:
    """The members in classes: those of one size that a work item reads, writes and changes as often in each place of the
    kernels' loops. The order of accesses within a loop does not count. Members that are not accessed are one class."""
    classes: dict[Signature, list[str]] = {}
    for member in record.members:
        name = f"{record.name}.{member.name}"
        uses = tuple(_uses(name, steps) for steps in kernels)
        sizes = (member.bytes, member.align) if any(uses) else ()
        classes.setdefault((sizes, uses), []).append(member.name)
    return tuple(map(tuple, classes.values()))


def _uses(name: str, steps: Sequence[Step]) -> Signature:
    """The accesses of a field: how many of which kind here, then the same of each loop that has some, by its place."""
    here: Counter[tuple[int, str]] = Counter()
    inner: list[object] = []
    loops = 0
    for step in steps:
        if isinstance(step, Repeat):
            loops += 1
            if name in step.fields:
                inner.append((loops, step.times, _uses(name, step.body)))
        elif step.field == name:
            here[step.bytes, step.kind] += 1
    return (*sorted(here.items()), *inner)
