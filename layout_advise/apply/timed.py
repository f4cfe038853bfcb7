"""Both programs timed in turn: the whole, and the calls of the region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.apply.policy import APPLY
from layout_advise.apply.trees import SourceTree, run
from layout_advise.choose.probed_calls import call_times
from layout_advise.choose.profile import Profiled, profile
from layout_advise.config import Settings
from layout_advise.errors import LayoutAdviseError
from layout_advise.mockup.timing.statistics import Ratio, undisturbed, undisturbed_ratio
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.probe import probe


@dataclass(frozen=True, slots=True)
class Achieved:
    """The old program's time over the new one's; ``region`` is None (``why``) where its calls cannot be timed in both."""

    program: Ratio
    region: Ratio | None
    why: str = ""

    @property
    def is_slower(self) -> bool:
        """Tells whether the new program surely takes longer."""
        return self.program.restores >= APPLY.fewest_rounds and self.program.hi < APPLY.slower


def timed(old: SourceTree, new: SourceTree, arguments: Sequence[str], symbol: str, rounds: int, work: Path) -> Achieved:
    """Times both programs in turn, ``rounds`` processes of each. The unit of the statistics is the process (decision 21)."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for tree, taken in zip((old, new), seconds, strict=True):
            taken.append(run(tree, arguments).seconds)
    program = undisturbed_ratio(*seconds)
    try:
        return Achieved(program, _region(old, new, arguments, symbol, rounds, work))
    except LayoutAdviseError as error:
        return Achieved(program, None, error.line())


def _region(
    old: SourceTree, new: SourceTree, arguments: Sequence[str], symbol: str, rounds: int, work: Path
) -> Ratio | None:
    """The ratio of the undisturbed times of a call: the first decile of a process' calls (decision 5)."""
    commands = [(str(tree.root / tree.program), *arguments) for tree in (old, new)]
    before, after = (ElfBinary.open(command[0]) for command in commands)
    found = [
        _profiled(commands[0], before, symbol, work),
        _profiled(commands[1], after, name_in(after, before, symbol), work),
    ]
    nanoseconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for command, profiled, taken in zip(commands, found, nanoseconds, strict=True):
            times = call_times(profiled, probe(command, profiled.entry, timeout=APPLY.run_seconds))
            if not times:
                return None
            taken.append(undisturbed(times))
    return undisturbed_ratio(*nanoseconds)


def name_in(new: ElfBinary, old: ElfBinary, symbol: str) -> str:
    """The name that a function of the old program has in the new one: C++ has the parameters' types in the symbol."""
    if any(function.name == symbol for function in new.functions):
        return symbol
    return next((old.title(function) for function in old.functions if function.name == symbol), symbol)


def _profiled(command: tuple[str, ...], binary: ElfBinary, symbol: str, work: Path) -> Profiled:
    settings = Settings(command, work / "unused", hotspot=symbol, timeout=APPLY.run_seconds)
    return profile(settings, binary, None, work / "output")
