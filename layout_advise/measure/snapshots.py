"""The copies of the parked program in which calls are timed."""

from __future__ import annotations

from contextlib import ExitStack

from layout_advise.errors import SnapshotError
from layout_advise.observe.case import Case
from layout_advise.tracer.snapshot.agent_process import AgentProcess
from layout_advise.tracer.snapshot.criu import find_criu
from layout_advise.tracer.snapshot.snapshots import CriuSnapshots, ForkSnapshots


def snapshots(case: Case, parked: AgentProcess, stack: ExitStack) -> CriuSnapshots | ForkSnapshots:
    """CRIU where it works, else forks; what the user forces is not replaced."""
    wish = case.settings.snapshot
    if isinstance(parked.copies, CriuSnapshots):
        return parked.copies
    made: CriuSnapshots | ForkSnapshots | None = None
    if wish != "fork":
        criu = find_criu()
        if criu is None and wish == "criu":
            raise SnapshotError("cannot snapshot the program", "no CRIU works here", "see `layout-advise doctor`")
        if criu is not None:
            try:
                made = CriuSnapshots(parked, criu, case.space.scratch)
            except SnapshotError as error:
                if wish == "criu":
                    raise
                case.space.progress.note(f"layout-advise: {error.line()}: taking forks instead")
    if made is None:
        made = ForkSnapshots(parked)
    stack.callback(made.close)
    return made
