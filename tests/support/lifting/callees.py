"""The arguments of lifted functions, as far as they and the functions that they call (in any library) tell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from layout_advise.commands.lifting.lift_survey import TooLong, time_limit
from layout_advise.errors import LayoutAdviseError
from layout_advise.mockup.ir.lifted import Imm, Lifted, OpaqueCall
from layout_advise.mockup.run.survey import lift_function
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.symbols import Function
from tests.support.lifting.memories import State
from tests.support.lifting.state import state_of

DEPTH = 2
"""Calls of calls are followed."""
SECONDS = 6.0
"""Time limit for lifting a function that is called."""


@lru_cache(maxsize=32)
def opened(path: Path) -> ElfBinary:
    """The file, parsed once a process."""
    return ElfBinary.open_module(path)


def arguments_of(lifted: Lifted, files: tuple[Path, ...], base: int, *, by_reference: bool = False) -> State:
    """The arguments of ``lifted``, of ``files[0]`` loaded at ``base``; its callees may be in the other files."""
    return _state(lifted, files, files[0], base, by_reference, DEPTH)


def _state(lifted: Lifted, files: tuple[Path, ...], own: Path, base: int, by_reference: bool, depth: int) -> State:
    def callee(call: OpaqueCall) -> State | None:
        target = call.target.value - base if isinstance(call.target, Imm) else -1
        found = _resolved(call.function, target, own, files) if depth else None
        return None if found is None else _called(*found, files, by_reference, depth - 1)

    return state_of(lifted, callee, by_reference=by_reference)


def _resolved(name: str | None, target: int, own: Path, files: Sequence[Path]) -> tuple[Path, Function] | None:
    inside = opened(own).function_at(target)
    if inside is not None and inside.start == target and not (name and inside.anonymous):
        return own, inside
    if not name:
        return None
    for path in (own, *files):
        function = _exported(path).get(name)
        if function is not None:
            return path, function
    return None


@lru_cache(maxsize=32)
def _exported(path: Path) -> dict[str, Function]:
    return {f.name: f for f in opened(path).functions}


@lru_cache(maxsize=4096)
def _called(path: Path, function: Function, files: tuple[Path, ...], by_reference: bool, depth: int) -> State | None:
    try:
        with time_limit(SECONDS):
            lifted = lift_function(opened(path), function)[1]
    except (LayoutAdviseError, TooLong, RecursionError):
        return None
    return _state(lifted, files, path, 0, by_reference, depth)
