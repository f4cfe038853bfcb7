"""The limits of a stage: which times count, and when a variant is timed no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def limit(value: float, unit: str, meaning: str, decision: int | None = None) -> Any:
    """A field of a policy: its default, its unit, what it means, and the number of the decision that set it."""
    return field(default=value, metadata={"unit": unit, "meaning": meaning, "decision": decision})


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingPolicy:
    """Which times count, and when a variant is timed no more."""

    least_learnt: float = limit(
        1.05,
        "ratio",
        "Where the original takes less more with unknown branches, there is nothing to learn in them.",
        52,
    )
    least_unknown: float = limit(0.02, "part", "A smaller part is none: times are not known better.", 52)
    calm: float = limit(
        1.1,
        "ratio",
        "A call counts as undisturbed where the canaries beside it took at most so many times the fastest ones' ticks.",
        22,
    )
    memory_calm: float = limit(1.25, "ratio", "The same of the memory's canary.", 45)
    unusual: float = limit(
        1.05,
        "ratio",
        "Nor where they took less by more: while the clock is boosted everything is quicker.",
        47,
    )
    boost: float = limit(1.2, "ratio", "By so much a processor may boost its clock.", 47)
    mostly: int = limit(3, "ratio", "The usual state is the one that so many times more canaries show.", 47)
    often: float = limit(0.05, "part", "Canaries that are as fast as this part of all are no exceptions.", 47)
    drop_after: int = limit(3, "processes", "After so many processes clear losers are timed no more.", 26)
    fewest: int = limit(3, "processes", "So many are measured in even where the time has been over for long.")
    clearly_faster: float = limit(
        0.95,
        "ratio",
        "Without vector instructions the unchanged layout is taken to be faster where it takes less of the time.",
        39,
    )
    fault_allowance: int = limit(2, "faults", "A call may take so many minor faults more than the best of its block.")
    slow_part: float = limit(
        2.0,
        "ratio",
        "So many times as long as the original, all blocks together, a variant is called in a process.",
        85,
    )
    fewest_told: int = limit(
        2, "calls", "So many calls, besides the first ones of a block, tell about how long one takes.", 85
    )
    converted_in: int = limit(
        1,
        "processes",
        "In how many restored processes the conversion to and from a new layout is timed: only the winner's needs "
        "an interval.",
        13,
    )
    fresh_rounds: int = limit(
        2,
        "rounds",
        "Others disturb for some 10 ms, which is as long as a block of such calls takes.",
        52,
    )
    forgotten_calls: int = limit(
        30,
        "calls",
        "After so many calls, of any variant, no more becomes unknown: what was learnt in hundreds of calls gives "
        "way slowly.",
        52,
    )
    fewest_around: int = limit(4, "calls", "At least so many calls are timed with the conversion around them ...", 13)
    around_part: int = limit(4, "calls", "... one for so many of the others.", 13)
    resamples: int = limit(2000, "samples", "The bootstrap's.", 21)
    confidence: float = limit(
        0.99,
        "part",
        "Of the bootstrap. Of quantiles of some nine processes its 95 % intervals hold the truth in 84 to 93 of "
        "100 cases, these in 89 to 97 (``docs/decisions/0021``): what is shown as a 95 % interval is to be one.",
        21,
    )
    undisturbed: float = limit(
        0.1,
        "quantile",
        "The quantile of repeated runs of the same work that stands for the time it takes when nothing interferes.",
        5,
    )
    typical: float = limit(
        0.4,
        "quantile",
        "The same over processes which share a cache and the memory with others, some more than they like and few less.",
        45,
    )
    fewest_pairs: int = limit(
        4,
        "processes",
        "In fewer undisturbed processes builds are not held against each other within each.",
        122,
    )
    fewest_at_place: int = limit(
        4,
        "processes",
        "Where fewer timed a build at its own place, those that timed it at another differ as they do.",
        102,
    )
    fewest_calm: int = limit(3, "processes", "In fewer restored processes with undisturbed calls, all calls count.", 22)


TIMING = TimingPolicy()
