"""The interval over several places of code against the truth: ``python benchmarks/interval_over_places.py``.

Simulated, as the truth must be known: nine processes time a candidate and the unchanged mock-up at their own places, and in
turn at three others; each place takes another time, others slow a part of the processes. The interval that is told is held
against the hull of one interval for each pair of places (what was told before ``docs/decisions/0102``).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from layout_advise.mockup.timing.ratios import places_of, summarise
from layout_advise.mockup.timing.statistics import Ratio, median_of
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL, Variant

C1 = Variant("c1")
PROCESSES, OWN_NOISE = 9, 0.01
Interval = tuple[float, float]


def slowed(rng: np.random.Generator, part: float, most: float) -> float:
    """The factor by which a process is off: noise, and others in ``part`` of the processes."""
    return float(rng.normal(1.0, OWN_NOISE)) * (float(rng.uniform(1.0, most)) if rng.random() < part else 1.0)


def simulated(rng: np.random.Generator, differ: float, part: float, typical: bool) -> tuple[Timings, NDArray[np.float64]]:
    """Times, and of each pair of places the true gain over the unchanged mock-up."""
    builds = {name: np.exp(rng.normal(0.0, differ, 4)) for name in (IDENTITY, C1)}
    steady = []
    for number in range(PROCESSES):
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


def row(rng: np.random.Generator, differ: float, part: float, typical: bool, trials: int) -> str:
    """One line of the table."""
    runs = [simulated(rng, differ, part, typical) for _ in range(trials)]
    cells = [f"{differ:.0%}", f"{part:.0%}", "usual" if typical else "undisturbed"]
    ways: tuple[Callable[[Timings], Interval], ...] = (hull, told)
    for way in ways:
        ends = [(way(timings), truth) for timings, truth in runs]
        inside = [(lo <= truth) & (truth <= hi) for (lo, hi), truth in ends]
        width = median_of([hi / lo for (lo, hi), _ in ends])
        cells += [f"{np.mean([one.all() for one in inside]):.2f}", f"{np.mean(inside):.3f}", f"{width:.2f}"]
    return f"| {' | '.join(cells)} |"


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trials", type=int, default=100)
    chosen = options.parse_args(words)
    rng = np.random.default_rng(1)
    print("| places differ | slowed | times | hull: all places | one place | width | told: all places | one place | width |")
    print("|---|---|---|---|---|---|---|---|---|")
    for differ in (0.0, 0.01, 0.05):
        for part in (0.0, 0.1, 0.3):
            for typical in (False, True):
                print(row(rng, differ, part, typical, chosen.trials), flush=True)


if __name__ == "__main__":
    main()
