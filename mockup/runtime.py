"""Functions of gcc's OpenMP runtime that a mock-up calls as the original does, and why it does not call the others.

They touch none of the program's data but the numbers that they are handed pointers to (gcc's ``libgomp/libgomp_g.h``), so
that no layout concerns them. A mock-up runs in a region of the program's own runtime, started as the original's was: its
threads share work, wait and lock as the original's do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.mockup.effects import Gpr, Lane
from layout_advise.mockup.lifted import Atomic, Item, Loop, RuntimeCall
from layout_advise.mockup.opaque import INTEGERS

PLACE_ARGUMENTS: tuple[Gpr | Lane, ...] = INTEGERS
"""The registers of the first six arguments; others lie on the stack."""


@dataclass(frozen=True, slots=True)
class Routine:
    """Takes so many ``arguments``, then pointers to so many ``places``; ``result`` tells whether it gives a number back."""

    arguments: int
    places: int = 0
    result: bool = False


@dataclass(frozen=True, slots=True)
class Invoked:
    """``imm`` of a ``runtime`` node, whose args are what it is handed; ``places`` are those that are cells of the frame."""

    function: str
    places: int


def _loops() -> dict[str, Routine]:
    """How threads get their iterations: first, increment, end, size of a chunk (and upwards or not); from and to."""
    kinds = ("static", "dynamic", "guided", "nonmonotonic_dynamic", "nonmonotonic_guided")
    without_chunk = ("runtime", "nonmonotonic_runtime", "maybe_nonmonotonic_runtime")
    found = {}
    for prefix, more in (("GOMP_loop_", 0), ("GOMP_loop_ull_", 1), ("GOMP_loop_ordered_", 0), ("GOMP_loop_ull_ordered_", 1)):
        for count, names in ((4, kinds), (3, without_chunk)):
            for name in names:
                found[f"{prefix}{name}_start"] = Routine(count + more, 2, result=True)
                found[f"{prefix}{name}_next"] = Routine(0, 2, result=True)
    return found


ROUTINES: dict[str, Routine] = {
    **_loops(),
    "GOMP_loop_end": Routine(0),
    "GOMP_loop_end_nowait": Routine(0),
    "GOMP_sections_start": Routine(1, result=True),
    "GOMP_sections_next": Routine(0, result=True),
    "GOMP_sections_end": Routine(0),
    "GOMP_sections_end_nowait": Routine(0),
    "GOMP_single_start": Routine(0, result=True),
    "GOMP_barrier": Routine(0),
    "GOMP_critical_start": Routine(0),
    "GOMP_critical_end": Routine(0),
    "GOMP_critical_name_start": Routine(1),
    "GOMP_critical_name_end": Routine(1),
    "GOMP_atomic_start": Routine(0),
    "GOMP_atomic_end": Routine(0),
    "GOMP_ordered_start": Routine(0),
    "GOMP_ordered_end": Routine(0),
}

_SHARED_OUT = re.compile(r"GOMP_(loop_.*(dynamic|guided|runtime)|sections|single)")
_REFUSED = (
    (r"GOMP_task|GOMP_taskloop", "tasks run where and when the runtime wants"),
    (r"GOMP_parallel|GOMP_teams", "a parallel region in the region"),
    (r"GOMP_single_copy", "one thread hands its own data to the others"),
    (r"GOMP_doacross", "iterations wait for one another"),
    (r"GOMP_cancel", "other threads may end the work"),
    (r"GOMP_target", "it runs on another device"),
    (r"omp_(un)?set_|omp_test_|omp_(init|destroy)_", "a lock in the program's own data, or a setting of its runtime"),
    (r"omp_get_w", "a clock"),
    (r"__kmpc_", "clang's OpenMP runtime"),
)


def why_not(name: str | None) -> str:
    """What to add to the name of a function of an OpenMP runtime that is not called; empty for other functions."""
    return next((f" ({why})" for pattern, why in _REFUSED if re.match(pattern, name or "")), "")


def shared_out(body: Sequence[Item]) -> bool:
    """Whether the runtime gives the work to whichever thread asks for it first: the next run may share it out otherwise."""
    return any(
        (isinstance(item, RuntimeCall) and bool(_SHARED_OUT.match(item.function)))
        or (isinstance(item, Loop) and shared_out(item.body))
        for item in body
    )


def retried(body: Sequence[Item]) -> frozenset[tuple[int, int]]:
    """The (pc, operand) of atomic operations that run again where another thread came first."""
    found: set[tuple[int, int]] = set()
    for item in body:
        if isinstance(item, Atomic) and item.operation == "cas":
            found.add((item.origin.pc, item.operand))
        elif isinstance(item, Loop):
            found |= retried(item.body)
    return frozenset(found)
