"""The limits of a stage: how a verdict follows from what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidePolicy:
    """How a verdict follows from what was measured."""

    smallest_gain_criu: float = limit(1.05, "ratio", "The lower end of a gain must exceed this for a change, under CRIU.")
    smallest_gain_fork: float = limit(1.10, "ratio", "The same, where snapshots are forks.")
    as_good: float = limit(0.97, "part of the gain", "What needs no blocks is preferred where it gains as much of the best.")
    as_good_wide: float = limit(0.85, "part of the gain", "The same, where the interval of the best gain is wide.", 31)
    worth_blocks: float = limit(
        0.05,
        "part of the original's time",
        "Blocks are advised where they save so much more of it than a layout without blocks.",
        80,
    )
    most_of_gain: float = limit(
        0.8, "part of the gain", "The same, where what needs no blocks reaches less than this part of their gain.", 80
    )
    plain_enough: float = limit(
        0.98,
        "part of the gain",
        "A variant that promises the compiler more is advised only when the plain one has less than this part of its gain.",
        36,
    )
    scalar_limit: float = limit(
        1.1,
        "ratio",
        "The unchanged layout without vectors must be slower than this for losses of scalar mock-ups to say nothing.",
        4,
    )
    least_inlined: float = limit(
        1.1,
        "ratio",
        "What the unchanged mock-up must gain at least for the functions that it has in it to be advised there: below that "
        "it is a mock-up's doubt.",
        119,
    )
    place_spread: float = limit(
        1.15,
        "ratio",
        "By how much the unchanged layout's times at several places may differ for a ``keep``.",
        37,
    )
    most_machine_code: int = limit(
        6, "layouts", "Of so many that may gain the original's machine code is timed on them.", 115
    )
    most_without: float = limit(
        4.0, "ratio", "What re-addressed machine code may gain more without its arithmetic on addresses, at most.", 115
    )
    least_put_back: float = limit(
        0.005,
        "part",
        "What is put back between the calls of a batch is a doubt where it changes a gain by more.",
        68,
    )
    told_gain: float = limit(1.05, "ratio", "What a variant gains with the layout unchanged is told from here on.")
    slowest_kind: float = limit(
        1 / 1.05,
        "ratio",
        "A layout that makes the calls of one kind slower than this is not advised, whatever all kinds together "
        "gain: how many calls are of which kind is the input's doing, and another input may have more of those "
        "that lose.",
        17,
    )
    unknown_accesses: float = limit(0.1, "part", "The part of the accesses that makes what is not recognised matter.")
    mostly_own: float = limit(
        0.5,
        "part",
        "Of a call with so many of its accesses to memory that it allocates itself the loops are studied instead.",
    )
    told_accesses: float = limit(0.01, "part", "With more of the accesses it is said of a structure why no rule applies.")
    may_take: float = limit(
        2.0,
        "ratio",
        "The lower end of what a plan gains holds that regions that use the same structures and were not measured take so "
        "many times as long.",
        111,
    )
    most_confirmed: int = limit(
        3,
        "candidates",
        "So many are measured again: the next one where the gain of the best is not sure then, and others where their first "
        "times stay surely above what the winner then gains.",
    )
    ablation_restores: int = limit(
        3,
        "processes",
        "In so many processes the best of the candidates that have not won is timed again.",
    )

    def smallest_gain(self, snapshot: Literal["criu", "fork"]) -> float:
        """The least gain that is advised, by how snapshots are taken."""
        return self.smallest_gain_criu if snapshot == "criu" else self.smallest_gain_fork


DECIDE = DecidePolicy()
