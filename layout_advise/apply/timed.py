"""Both programs timed in turn: the whole, and the calls of the region."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from layout_advise.apply.policy import APPLY
from layout_advise.apply.region_times import RegionOf, Times, calls_to_time, ratio_of_calls
from layout_advise.apply.trees import SourceTree, run
from layout_advise.choose.profile import Profiled, profile
from layout_advise.config import Settings
from layout_advise.errors import LayoutAdviseError
from layout_advise.mockup.timing.statistics import Ratio, undisturbed_ratio
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.sampling.turns import own_time

Timed = TypeVar("Timed")


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


@dataclass(frozen=True, slots=True)
class Rounds:
    """The processes of each program that are timed, in turn: ``fewest``, and further ones up to ``most``, for so many
    ``seconds``, as long as the interval's upper end is more than ``width`` times its lower one."""

    fewest: int = APPLY.rounds
    most: int = APPLY.most_rounds
    seconds: float = APPLY.timing_seconds
    width: float = math.inf

    def enough(self, ratio: Ratio) -> bool:
        """Tells whether the interval is as narrow as it is to be."""
        return ratio.hi <= self.width * ratio.lo


def exactly(rounds: int) -> Rounds:
    """So many processes, however wide the interval is."""
    return Rounds(rounds, rounds)


def timed(old: SourceTree, new: SourceTree, arguments: Sequence[str], symbol: str, rounds: Rounds, work: Path) -> Achieved:
    """Times both programs in turn. The unit of the statistics is the process (decision 21)."""
    program = in_turn(lambda: (run(old, arguments).seconds, run(new, arguments).seconds), rounds, undisturbed_ratio)
    assert program is not None
    try:
        return Achieved(program, _region(old, new, arguments, symbol, rounds, work))
    except LayoutAdviseError as error:
        return Achieved(program, None, error.line())


def in_turn(
    pair: Callable[[], tuple[Timed, Timed] | None],
    rounds: Rounds,
    ratio: Callable[[Sequence[Timed], Sequence[Timed]], Ratio],
) -> Ratio | None:
    """The ``ratio`` of the times of two programs, of which ``pair`` times a process each; None where it has none."""
    over, under, end = list[Timed](), list[Timed](), own_time() + rounds.seconds
    while len(over) < rounds.fewest or (len(over) < rounds.most and own_time() < end):
        times = pair()
        if times is None:
            return None
        over.append(times[0])
        under.append(times[1])
        if len(over) >= rounds.fewest and rounds.enough(ratio(over, under)):
            break
    return ratio(over, under)


def _region(
    old: SourceTree, new: SourceTree, arguments: Sequence[str], symbol: str, rounds: Rounds, work: Path
) -> Ratio | None:
    """The ratio of the times of the same calls. Both programs run in their own trees, as where the whole is timed: they find
    their input there, and leave their output."""
    commands = [(str(tree.root / tree.program), *arguments) for tree in (old, new)]
    folders = [tree.root / tree.cwd for tree in (old, new)]
    before, after = (ElfBinary.open(command[0]) for command in commands)
    names = symbol, name_in(after, before, symbol)
    found = []
    for command, folder, binary, name in zip(commands, folders, (before, after), names, strict=True):
        with contextlib.chdir(folder):
            found.append(RegionOf(command, folder, _profiled(command, binary, name, work)))
    one, other = found
    if (calls := calls_to_time(one, other, rounds.fewest, rounds.seconds)) is None:
        return None

    def pair() -> tuple[Times, Times] | None:
        times = one.times(calls), other.times(calls)
        return times if all(map(len, times)) else None

    return in_turn(pair, rounds, ratio_of_calls)


def name_in(new: ElfBinary, old: ElfBinary, symbol: str) -> str:
    """The name that a function of the old program has in the new one: C++ has the parameters' types in the symbol."""
    if any(function.name == symbol for function in new.functions):
        return symbol
    return next((old.title(function) for function in old.functions if function.name == symbol), symbol)


def _profiled(command: tuple[str, ...], binary: ElfBinary, symbol: str, work: Path) -> Profiled:
    settings = Settings(command, work / "unused", hotspot=symbol, timeout=APPLY.run_seconds)
    return profile(settings, binary, None, work / "output")
