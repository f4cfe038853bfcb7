"""The guarded regions timed once more, in the program as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.choose.probed_calls import call_times
from layout_advise.choose.profile import profile
from layout_advise.config import Settings
from layout_advise.errors import LayoutAdviseError
from layout_advise.guard.guard_file import Guard
from layout_advise.guard.policy import GUARD
from layout_advise.mockup.timing.statistics import Ratio, undisturbed, unpaired_ratio
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import probe


@dataclass(frozen=True, slots=True)
class Again:
    """A region's times: ``ns`` of a call in each process; ``slower`` is the new time over the guard's. None (``why``) where
    they cannot be told or compared."""

    region: str
    ns: tuple[float, ...]
    slower: Ratio | None
    why: str = ""

    @property
    def alarm(self) -> bool:
        """Returns whether the region is slower by more than what another day of the same machine makes."""
        return self.slower is not None and self.slower.lo > GUARD.slower


def timed_calls(command: Sequence[str], symbol: str, work: Path, stdin: Path | None = None) -> tuple[float, ...]:
    """The undisturbed time of a call of ``symbol`` in ns, in each of several processes. Raises LayoutAdviseError where its
    calls cannot be timed."""
    settings = Settings(tuple(command), work / "unused", hotspot=symbol, timeout=GUARD.run_seconds)
    profiled = profile(settings, ElfBinary.open(command[0]), stdin, work / "output")
    seen = [probe(command, profiled.entry, stdin_path=stdin, timeout=GUARD.run_seconds) for _ in range(GUARD.rounds)]
    return tuple(undisturbed(times) for one in seen if (times := call_times(profiled, one)))


def measured_again(guard: Guard, command: Sequence[str], cpu: str, work: Path, stdin: Path | None) -> tuple[Again, ...]:
    """Each region of the guard, timed in ``command`` and held against the guard's own times."""
    return tuple(_again(guard, number, command, cpu, work, stdin) for number in range(len(guard.region)))


def _again(guard: Guard, number: int, command: Sequence[str], cpu: str, work: Path, stdin: Path | None) -> Again:
    region = guard.region[number]
    try:
        found = timed_calls(command, region.symbol, work, stdin)
    except LayoutAdviseError as error:
        return Again(region.name, (), None, error.line())
    if not found:
        return Again(region.name, (), None, "no call of it was seen")
    if not region.times_ns:
        return Again(region.name, found, None, "the guard has no times: write it with --measure")
    if cpu != guard.cpu:
        return Again(region.name, found, None, f"the guard's times are of another processor ({guard.cpu})")
    return Again(region.name, found, unpaired_ratio(found, region.times_ns))
