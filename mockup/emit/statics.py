"""New arrays of static storage duration, where the program's own are global: a compiler knows of them what it knows there.

It knows that no two of them overlap and how they are aligned, without a check at run time (``docs/decisions/0044``). Agent
and copies reach them by ``context->buffers`` like all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, first_buffers, new_buffers
from layout_advise.mockup.emit.arrays import FieldPointers
from layout_advise.mockup.emit.frame import MOST_BUFFERS, PAGE, buffer_starts
from layout_advise.mockup.emit.settings import EmitSettings
from layout_advise.mockup.remap.sites import RemapPlan

MOST_BYTES = 1 << 30
"""Code reaches them within 2 GiB of itself, whatever the code model."""


@dataclass(frozen=True, slots=True)
class NewArrays:
    """The arrays of a candidate. ``first`` is the number of each relayout's first buffer; ``at`` gives by pointer the buffer
    and the offset in it; ``static`` are the buffers that are static arrays, ``places`` what the pointers into these are."""

    relayouts: tuple[Relayout, ...]
    first: list[int]
    at: Mapping[str, tuple[int, int]]
    static: frozenset[int]
    places: Mapping[str, str]


def new_arrays(candidate: Candidate | None, placed: RemapPlan, pointers: FieldPointers, settings: EmitSettings) -> NewArrays:
    """Returns the arrays of ``candidate``. Some are static in the plain mock-up only: other variants promise
    instead. Raises RemapError where they are more than a mock-up can be handed."""
    relayouts = candidate.relayouts if candidate is not None else ()
    many = len(new_buffers(relayouts))
    if many > MOST_BUFFERS:
        raise RemapError("the new layout has too many arrays", f"{many}, and a mock-up is handed at most {MOST_BUFFERS}")
    first = first_buffers(relayouts)
    at = {pointer: (first[number] + buffer, start) for pointer, (number, buffer, start) in pointers.starts.items()}
    seen = settings.variant == "plain" and not settings.compared
    static = static_buffers(candidate, placed) if seen else frozenset()
    places = {pointer: place(relayouts, settings.offset, b, o) for pointer, (b, o) in at.items() if b in static}
    return NewArrays(relayouts, first, at, static, places)


def static_buffers(candidate: Candidate | None, placed: RemapPlan) -> frozenset[int]:
    """Numbers of the buffers that are static arrays.

    Not where an index chooses between fields (``[now]``, ``[next]``): a source has one array for both, and a compiler does
    not know that accesses to it do not meet. clang vectorised ``wave`` for being told that, and no source of it.
    """
    relayouts = candidate.relayouts if candidate is not None else ()
    if sum(b.bytes + PAGE for _, b in new_buffers(relayouts)) > MOST_BYTES:
        return frozenset()
    found: set[int] = set()
    others: set[int] = set()
    for relayout, first in zip(relayouts, first_buffers(relayouts), strict=True):
        structure = relayout.structure
        known = structure.kind == "global" and structure.placed and not placed.chosen_at_run_time(relayout)
        (found if known else others).update(range(first, first + len(relayout.buffers)))
    return frozenset(found - others)


def name(buffer: int) -> str:
    """The array of a buffer."""
    return f"la_buffer{buffer}"


def declarations(relayouts: Sequence[Relayout], offset: int, static: frozenset[int]) -> str:
    """The arrays, each from the start of a page on."""
    sizes = [max(b.bytes, 1) for _, b in new_buffers(relayouts)]
    starts = buffer_starts(relayouts, offset)
    return "\n".join(
        f"static uint8_t {name(k)}[{starts[k] + sizes[k]}] __attribute__((aligned({PAGE})));" for k in sorted(static)
    )


def place(relayouts: Sequence[Relayout], offset: int, buffer: int, field: int) -> str:
    """Returns where a field starts in its static array."""
    return f"{name(buffer)} + {buffer_starts(relayouts, offset)[buffer] + field}"
