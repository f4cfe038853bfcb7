"""What the stages after the profile share about one hotspot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from layout_advise.config import Settings
from layout_advise.progress import Progress
from layout_advise.rundir import RunDir
from layout_advise.stages.backends import Tracer
from layout_advise.stages.calls import ChosenCall
from layout_advise.stages.observe import Observation, observed
from layout_advise.stages.profile import Profiled
from layout_advise.tracer.binary import Binary
from layout_advise.tracer.code import Region
from layout_advise.tracer.snapshot.fork import whole_copies
from layout_advise.tracer.snapshot.probe import Probe
from layout_advise.tracer.snapshot.process import AgentProcess, park


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that the later stages share about this hotspot."""

    settings: Settings
    main: Binary
    profiled: Profiled
    probe: Probe
    chosen: ChosenCall
    stdin: Path | None
    run: RunDir
    work: Path
    progress: Progress

    @property
    def clock(self) -> Literal["thread-cpu", "wall"]:
        """What calls are timed by: several threads have no CPU time in common."""
        return "wall" if self.profiled.threaded else "thread-cpu"

    def park(self, call: int) -> AgentProcess:
        """Start the program again and stop it at ``call``."""
        program = park(
            self.settings.command, self.profiled.entry, call, stdin_path=self.stdin, timeout=self.settings.timeout
        )
        if self.profiled.threaded:
            try:
                whole_copies(program, self.settings.snapshot != "fork", self.work)
            except BaseException:
                program.close()
                raise
        return program

    def observe(self, program: AgentProcess, call: int) -> Observation:
        """Trace the call at which ``program`` is stopped."""
        trace = Tracer(self.settings, self.profiled.entry, self._region, self.stdin, self.work, self.progress.note).trace(
            program, call
        )
        return observed(program, self.main, self._region(program.load_base), trace)

    def _region(self, load_base: int) -> Region:
        return self.profiled.module.region(self.profiled.function, load_base, callees=True)
