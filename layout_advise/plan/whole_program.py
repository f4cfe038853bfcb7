"""What layouts gain in the whole program, from what they gain in its regions, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gain:
    """A speedup and the interval that it lies in."""

    median: float
    lo: float
    hi: float


UNCHANGED = Gain(1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class RegionPart:
    """A region's part of the program's time (0 to 1, no two regions' overlap), and its speedup."""

    share: float
    gain: Gain


def amdahl(parts: Sequence[RegionPart], converting: float = 0.0) -> Gain:
    """The program's speedup, by Amdahl's law: what is in no part stays as it is, ``converting`` (in parts of the present
    time) comes on top. Its ends are those of all parts at once, which is wider than chance would have it, but carries doubts
    that all measurements have in common. Raises ValueError where the parts are more than the whole."""
    rest = 1.0 - sum(part.share for part in parts)
    if rest < -1e-9:
        raise ValueError(f"the regions have {1.0 - rest:.0%} of the program's time")

    def speedup(gains: Sequence[float]) -> float:
        taken = sum(part.share / gain for part, gain in zip(parts, gains, strict=True))
        return 1.0 / (max(rest, 0.0) + taken + converting)

    medians, lows, highs = zip(*((p.gain.median, p.gain.lo, p.gain.hi) for p in parts), strict=True) if parts else ((),) * 3
    return Gain(speedup(medians), speedup(lows), speedup(highs))


def of_regions(parts: Sequence[RegionPart], converting: float = 0.0) -> Gain:
    """The speedup of the parts taken together, without the rest of the program."""
    held = sum(part.share for part in parts)
    if held <= 0.0:
        return UNCHANGED
    scaled = [RegionPart(part.share / held, part.gain) for part in parts]
    return amdahl(scaled, converting / held)
