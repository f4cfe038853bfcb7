"""Functions of OpenMP's runtimes that a mock-up calls as the original does, and the reasons why it calls no others.

They touch none of the program's data but the numbers that they are handed pointers to (gcc's ``libgomp/libgomp_g.h``, for
clang libomp's ``kmp.h``), so that no layout concerns them. A mock-up runs in a region of the program's own runtime, started
as the original's was: its threads share work, wait and lock as the original's do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.lifted import Atomic, Item, LiftedLoop, RuntimeCall
from layout_advise.mockup.machine.call_abi import INTEGERS

PLACE_ARGUMENTS: tuple[Gpr | Lane, ...] = INTEGERS
"""The registers of the first six arguments; others lie on the stack."""

POINTERS = {"o": 8, "q": 8, "w": 4}
"""The kinds of parameters that are pointers to numbers, and how many bytes these have."""


@dataclass(frozen=True, slots=True)
class Routine:
    """``parameters``, a letter each: ``n`` a number, ``i`` one of 32 bits, or a pointer: ``o`` to 8 bytes that the routine
    fills in, ``q`` to 8 bytes and ``w`` to 4 bytes that it reads and may change. ``result`` tells whether it gives a number
    back."""

    parameters: str
    result: bool = False


@dataclass(frozen=True, slots=True)
class RuntimeArguments:
    """``imm`` of a ``runtime`` node, whose args are what it is handed; ``places`` are those that are cells of the frame."""

    function: str
    places: int


def _loops() -> dict[str, Routine]:
    """The loop functions of libgomp: first, increment, end, size of a chunk (and upwards or not); from and to."""
    kinds = ("static", "dynamic", "guided", "nonmonotonic_dynamic", "nonmonotonic_guided")
    without_chunk = ("runtime", "nonmonotonic_runtime", "maybe_nonmonotonic_runtime")
    found = {}
    for prefix, more in (("GOMP_loop_", 0), ("GOMP_loop_ull_", 1), ("GOMP_loop_ordered_", 0), ("GOMP_loop_ull_ordered_", 1)):
        for count, names in ((4, kinds), (3, without_chunk)):
            for name in names:
                found[f"{prefix}{name}_start"] = Routine("n" * (count + more) + "oo", result=True)
                found[f"{prefix}{name}_next"] = Routine("oo", result=True)
    return found


def _clangs_loops() -> dict[str, Routine]:
    """The loop functions of libomp: place in the source, thread, schedule; whether it is the last part, from, to, stride,
    increment, size of a chunk. Under a static schedule there is one call, else one for each part."""
    found = {}
    for kind, number, pointer in (("4", "i", "w"), ("4u", "i", "w"), ("8", "n", "q"), ("8u", "n", "q")):
        found[f"__kmpc_for_static_init_{kind}"] = Routine("niiw" + 3 * pointer + 2 * number)
        found[f"__kmpc_dispatch_init_{kind}"] = Routine("nii" + 4 * number)
        found[f"__kmpc_dispatch_next_{kind}"] = Routine("niw" + 3 * pointer, result=True)
        found[f"__kmpc_dispatch_fini_{kind}"] = Routine("ni")
    return found


ROUTINES: dict[str, Routine] = {
    **_loops(),
    "GOMP_loop_end": Routine(""),
    "GOMP_loop_end_nowait": Routine(""),
    "GOMP_sections_start": Routine("n", result=True),
    "GOMP_sections_next": Routine("", result=True),
    "GOMP_sections_end": Routine(""),
    "GOMP_sections_end_nowait": Routine(""),
    "GOMP_single_start": Routine("", result=True),
    "GOMP_barrier": Routine(""),
    "GOMP_critical_start": Routine(""),
    "GOMP_critical_end": Routine(""),
    "GOMP_critical_name_start": Routine("n"),
    "GOMP_critical_name_end": Routine("n"),
    "GOMP_atomic_start": Routine(""),
    "GOMP_atomic_end": Routine(""),
    "GOMP_ordered_start": Routine(""),
    "GOMP_ordered_end": Routine(""),
    **_clangs_loops(),
    "__kmpc_for_static_fini": Routine("ni"),
    "__kmpc_global_thread_num": Routine("n", result=True),
    "__kmpc_barrier": Routine("ni"),
    "__kmpc_flush": Routine("n"),
    "__kmpc_critical": Routine("nin"),
    "__kmpc_critical_with_hint": Routine("nini"),
    "__kmpc_end_critical": Routine("nin"),
    "__kmpc_single": Routine("ni", result=True),
    "__kmpc_end_single": Routine("ni"),
    "__kmpc_master": Routine("ni", result=True),
    "__kmpc_end_master": Routine("ni"),
    "__kmpc_masked": Routine("nii", result=True),
    "__kmpc_end_masked": Routine("ni"),
    "__kmpc_ordered": Routine("ni"),
    "__kmpc_end_ordered": Routine("ni"),
    # how many, their bytes, pointers to them, a function that adds another thread's to one's own, a lock
    "__kmpc_reduce": Routine("niinnnn", result=True),
    "__kmpc_reduce_nowait": Routine("niinnnn", result=True),
    "__kmpc_end_reduce": Routine("nin"),
    "__kmpc_end_reduce_nowait": Routine("nin"),
}

_SHARED_OUT = re.compile(r"GOMP_(loop_.*(dynamic|guided|runtime)|sections|single)|__kmpc_(dispatch_next|single)")
_REGION = "a parallel region in the region"
_TASK = "tasks run where and when the runtime wants"
_COPIED = "one thread hands its own data to the others"
_REFUSED = (
    (r"GOMP_task|GOMP_taskloop", _TASK),
    (r"GOMP_parallel|GOMP_teams", _REGION),
    (r"GOMP_single_copy", _COPIED),
    (r"GOMP_doacross|__kmpc_doacross", "iterations wait for one another"),
    (r"GOMP_cancel|__kmpc_cancel", "other threads may end the work"),
    (r"GOMP_target|__tgt_", "it runs on another device"),
    (r"omp_(un)?set_|omp_test_|omp_(init|destroy)_", "a lock in the program's own data, or a setting of its runtime"),
    (r"omp_get_w", "a clock"),
    (r"__kmpc_(omp_)?task", _TASK),
    (r"__kmpc_(fork|serialized|end_serialized|push)_", _REGION),
    (r"__kmpc_copyprivate", _COPIED),
    (r"__kmpc_", "a function of clang's OpenMP runtime that is not known"),
)


def refusal_remark(name: str | None) -> str:
    """A remark on a function of an OpenMP runtime that is not called, to follow its name; empty for other functions."""
    return next((f" ({why})" for pattern, why in _REFUSED if re.match(pattern, name or "")), "")


def is_dynamic(body: Sequence[Item]) -> bool:
    """Returns whether the schedule is dynamic: the next run may share the work out otherwise."""
    return any(
        (isinstance(item, RuntimeCall) and bool(_SHARED_OUT.match(item.function)))
        or (isinstance(item, LiftedLoop) and is_dynamic(item.body))
        for item in body
    )


def retried(body: Sequence[Item]) -> frozenset[tuple[int, int]]:
    """The (pc, operand) of atomic operations that run again where another thread came first."""
    found: set[tuple[int, int]] = set()
    for item in body:
        if isinstance(item, Atomic) and item.operation == "cas":
            found.add((item.origin.pc, item.operand))
        elif isinstance(item, LiftedLoop):
            found |= retried(item.body)
    return frozenset(found)
