"""Snapshots as a protocol, with its two makers: forks of the parked process, and CRIU restores of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from layout_advise.errors import SnapshotError
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.criu import Criu, CriuDump, find_criu


class ForkSnapshots:
    """Fresh stopped programs by fork: for where CRIU is impossible. Not for OpenMP hotspots (a fork loses the workers)."""

    kind: Literal["criu", "fork"] = "fork"

    def __init__(self, parked: AgentProcess) -> None:
        self._parked = parked
        self._open: list[AgentProcess] = []

    def restore(self) -> AgentProcess:
        """A fork of the parked program; ``prepare`` makes its written pages its own before anything is timed."""
        child = self._parked.fork()
        self._open.append(child)
        return child

    def close(self) -> None:
        """Kill the forks; the parked program stays."""
        for child in self._open:
            child.close()
        self._open.clear()


class CriuSnapshots:
    """Fresh stopped programs by CRIU; the dump is taken here and the parked process stays usable.

    ``folder`` is where the dump goes if tmpfs has no room. Raises :class:`SnapshotError` where the dump is impossible.
    """

    kind: Literal["criu", "fork"] = "criu"

    def __init__(self, parked: AgentProcess, criu: Criu, folder: Path) -> None:
        self._parked = parked
        self._open: list[AgentProcess] = []
        self._dump = CriuDump(criu, parked.pid, folder)
        try:
            parked.move()  # restored copies listen where it listened
        except SnapshotError:
            self._dump.close()
            raise

    def restore(self) -> AgentProcess:
        """A restored copy that obeys."""
        restored = self._dump.restore()
        process = AgentProcess.attach(self._parked, restored.pid, restored.close)
        self._open.append(process)
        return process

    def close(self) -> None:
        """Kill the restored processes and remove the dump; the parked program stays."""
        for process in self._open:
            process.close()
        self._open.clear()
        self._dump.close()


def whole_copies(parked: AgentProcess, criu_wanted: bool, folder: Path) -> None:
    """Have ``parked``, stopped at the start of a parallel region, copied with all its threads from now on.

    A team of one needs no others, and forks do where CRIU does not work. Raises :class:`SnapshotError` for larger teams.
    """
    criu = find_criu() if criu_wanted else None
    if criu is not None:
        parked.copy_with(CriuSnapshots(parked, criu, folder))
    elif (threads := parked.team()) > 1:
        what = f"cannot copy a program with a team of {threads} threads"
        raise SnapshotError(what, "a fork has one thread only", "let CRIU take the snapshots (`layout-advise doctor`)")
