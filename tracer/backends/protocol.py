"""One interface for all ways of tracing a call: the request, the result, and the protocol between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.patching import Entry
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Rerun:
    """Another run of the program, from its start to the end of call ``call`` (from 1) of the hotspot at ``entry``.

    At most ``most_accesses`` of the call are recorded; after ``timeout`` seconds the program is killed. Temporary files go
    to ``folder``.
    """

    command: Sequence[str]
    entry: Entry
    call: int
    most_accesses: int
    stdin: Path | None = None
    timeout: float | None = None
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """One call to trace. ``program`` is parked at it and stays so; ``region_at`` gives the hotspot's code at a load base.

    ``most_records`` bounds the accesses of a backend that keeps 8 bytes of each until the call is done; ``rerun`` is what
    a backend needs that traces another run of the program."""

    program: AgentProcess
    region_at: Callable[[int], Region]
    rerun: Rerun
    most_records: int

    @property
    def region(self) -> Region:
        """The hotspot's code where ``program`` has it."""
        return self.region_at(self.program.load_base)

    @property
    def team(self) -> bool:
        """Returns whether the hotspot is the body of a parallel region, which a team of threads runs."""
        return self.rerun.entry.outlined is not None


@dataclass(frozen=True, slots=True)
class TracedCall:
    """A trace in the addresses of the parked program; ``notes`` are sentences about what could not be translated to them."""

    trace: Trace
    notes: tuple[str, ...] = ()


class Backend(Protocol):
    """A way of tracing a call. ``layout_advise.tracer.backends.registry`` lists all of them.

    ``name`` is the word after ``--backend`` and in the trace, ``manner`` how messages say that it traced (``under
    Valgrind``). ``teams``: it traces all threads of a parallel region. ``automatic``: ``--backend auto`` may use it.
    ``keeps_records``: ``most_records`` bounds the trace, besides ``most_accesses``.
    """

    name: str
    manner: str
    teams: bool = False
    automatic: bool = True
    keeps_records: bool = False

    def check(self) -> None:
        """Raises :class:`layout_advise.errors.MachineError` where this machine lacks what it needs, with the reason."""
        return

    def trace(self, request: TraceRequest) -> TracedCall:
        """Traces the call.

        Raises :class:`layout_advise.errors.RefusedError` where it cannot trace this code and another backend may,
        :class:`layout_advise.errors.TraceError` where the trace fails, :class:`layout_advise.errors.ProgramError` where
        another run of the program does not come to the call.
        """
        ...
