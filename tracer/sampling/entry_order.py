"""In which order a program enters several places of its code: logged by the agent in one run, folded by NLR."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layout_advise.errors import ProgramError, SnapshotError
from layout_advise.layoutalgebra.sets.nests import Node
from layout_advise.tracer.folding.execution_order import fold_numbers
from layout_advise.tracer.process.agent_run import agent_run
from layout_advise.tracer.process.channel import Mode, Orders, RunFolder, State
from layout_advise.tracer.process.launch import Start, wait_for_end
from layout_advise.tracer.process.patching import MAX_EXITS, Entry, plan_exit, plan_patch

MOST_ENTRIES = 1 << 24
"""Entries that are logged, a byte each; at more the program is ended."""
MOST_PLACES = MAX_EXITS + 1
"""So many places can be watched in one run."""

_HEAD = 16


@dataclass(frozen=True, slots=True)
class EntryOrder:
    """The order of entries, of the first thread that came to one. ``nodes``: a point stands for an entry of place number
    ``address.const``; None where the order does not fold. ``counts``: entries by place. ``complete``: the program ran to its
    end. ``threads``: others came too, which are not in it."""

    nodes: tuple[Node, ...] | None
    counts: tuple[int, ...]
    complete: bool
    threads: bool


def why_not_logged(entry: Entry, first: Entry) -> str:
    """Why entries of a place cannot be logged beside those of ``first``; empty where they can."""
    if entry.outlined is not None or first.outlined is not None:
        return "it is the body of a parallel region"
    if entry.chunk or first.chunk:
        return "it is a loop, of which chunks of iterations are studied"
    if entry.path != first.path:
        return f"it lies in another file than {first.symbol or hex(first.address)}"
    try:
        plan_exit(entry)
        moved = plan_patch(replace(entry, exits=(entry,)))
    except SnapshotError:
        moved = None
    return "" if moved is not None and not moved.int3 else "its first instructions cannot be moved"


def entry_order(
    command: Sequence[str],
    places: Sequence[Entry],
    *,
    stdin_path: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    most: int = MOST_ENTRIES,
) -> EntryOrder:
    """Runs ``command``, its output discarded, and logs at most ``most`` entries of ``places``, all but the first of which
    :func:`why_not_logged` has nothing against.

    Raises :class:`ProgramError` if it cannot be started, exceeds ``timeout`` seconds or never loads their module.
    """
    if not 0 < len(places) <= MOST_PLACES:
        raise ValueError(f"between 1 and {MOST_PLACES} places can be watched")
    orders = Orders(Mode.ORDER, replace(places[0], exits=tuple(places[1:])), timed=most)
    with agent_run(Start(command, stdin_path, env), orders, tables={"order": _HEAD + most + 4096}) as (folder, process):
        _run(process, timeout)
        status = folder.status()
        if status.state < State.PATCHED:
            what = f"cannot watch {places[0].symbol or hex(places[0].address)}"
            raise ProgramError(what, status.error or f"{places[0].path.name} was not loaded")
        log = _log(folder)
        counts = np.bincount(log, minlength=len(places)).tolist()
        return EntryOrder(
            fold_numbers(_parts(log), len(places)), tuple(counts), status.state != State.STOPPED, status.threads > 0
        )


def _run(process: subprocess.Popen[bytes], timeout: float | None) -> None:
    wait_for_end(process, timeout, "the order of its regions was logged", "raise --timeout or give it a smaller input")


def _log(folder: RunFolder) -> NDArray[np.uint8]:
    path = folder.path / "order"
    count = int(np.fromfile(path, np.uint64, 1)[0])
    return np.fromfile(path, np.uint8, count, offset=_HEAD)


def _parts(log: NDArray[np.uint8], size: int = 1 << 20) -> Iterator[NDArray[np.uint8]]:
    for start in range(0, len(log), size):
        yield log[start : start + size]
