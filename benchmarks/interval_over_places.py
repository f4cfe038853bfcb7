"""The interval over several places of code against the truth: ``python benchmarks/interval_over_places.py``.

Simulated, as the truth must be known: some processes (``--processes``) time a candidate and the unchanged mock-up at their
own places, and in turn at three others; each place takes another time, in part the same for both, and others slow a part of
the processes. The interval that is told is held against the hull of one interval for each pair of places (what was told
before ``docs/decisions/0102``): its lower end is to lie below what every pair gains, its upper end above what the layout
gains over all places (``docs/decisions/0126``, 153).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from layout_advise.mockup.timing.ratios import places_of, summarise
from layout_advise.mockup.timing.statistics import Ratio, median_of
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL, Variant

C1 = Variant("c1")
OWN_NOISE = 0.01
Interval = tuple[float, float]


def slowed(rng: np.random.Generator, part: float, most: float) -> float:
    """The factor by which a process is off: noise, and others in ``part`` of the processes."""
    return float(rng.normal(1.0, OWN_NOISE)) * (float(rng.uniform(1.0, most)) if rng.random() < part else 1.0)


def simulated(
    rng: np.random.Generator, differ: float, alike: float, part: float, typical: bool, processes: int
) -> tuple[Timings, NDArray[np.float64]]:
    """Times, and of each pair of places the true gain over the unchanged mock-up, by that of the mean of all places, which
    is 1 here on average. ``alike``: the part of a place's variance that both builds have in common."""
    both = rng.normal(0.0, math.sqrt(alike) * differ, 4)
    builds = {name: np.exp(both + rng.normal(0.0, math.sqrt(1 - alike) * differ, 4)) for name in (IDENTITY, C1)}
    steady = []
    for number in range(processes):
        times = {ORIGINAL: [slowed(rng, part, 1.6)]}
        for name, most in ((IDENTITY, 1.6), (C1, 2.1)):
            for place, factor in zip((name, *name.elsewhere), builds[name], strict=True):
                if not place.placement or place.placement == number % 3 + 1:
                    times[place] = [float(factor) * slowed(rng, part, most)]
        steady.append(times)
    return Timings(steady, typical=typical), np.divide.outer(builds[IDENTITY], builds[C1]).ravel()


def told(timings: Timings) -> Interval:
    """The interval over the unchanged mock-up that the report has."""
    found = summarise(timings, C1)
    assert found is not None
    return found.steady_over_identity.lo, found.steady_over_identity.hi


def hull(timings: Timings) -> Interval:
    """The hull of the intervals of all pairs of places, each by itself."""
    ratios: Sequence[Ratio | None] = [
        timings.ratio(a, b) for a in places_of(timings, IDENTITY) for b in places_of(timings, C1)
    ]
    known = [one for one in ratios if one is not None]
    return min(one.lo for one in known), max(one.hi for one in known)


def row(
    rng: np.random.Generator, differ: float, alike: float, part: float, typical: bool, processes: int, trials: int
) -> str:
    """One line of the table. What a layout gains over all places is 1 here: builds at places are drawn alike for both."""
    runs = [simulated(rng, differ, alike, part, typical, processes) for _ in range(trials)]
    cells = [f"{differ:.0%}", f"{alike:.0%}", f"{part:.0%}", "usual" if typical else "undisturbed"]
    ways: tuple[Callable[[Timings], Interval], ...] = (hull, told)
    for way in ways:
        ends = [(way(timings), truth) for timings, truth in runs]
        below, above = ([lo <= truth.min() for (lo, _), truth in ends], [hi >= 1.0 for (_, hi), _ in ends])
        upper = median_of([hi for (_, hi), _ in ends])
        cells += [f"{np.mean(below):.2f}", f"{np.mean(above):.2f}", f"{upper:.2f}"]
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trials", type=int, default=100)
    options.add_argument("--processes", type=int, default=9)
    chosen = options.parse_args(words)
    rng = np.random.default_rng(1)
    print(
        "| places differ | alike | slowed | times | hull: below all | above the mean | to | told: below all | above | to |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for differ, alike in ((0.0, 0.0), (0.01, 0.0), (0.05, 0.0), (0.05, 0.8)):
        for part in (0.0, 0.1, 0.3):
            for typical in (False, True):
                print(row(rng, differ, alike, part, typical, chosen.processes, chosen.trials), flush=True)


if __name__ == "__main__":
    main()
