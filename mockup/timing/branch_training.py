"""Times as in the running program, where its branches hang on data that a repeated call has always the same.

Repeated, a call takes the same way each time, and the processor learns it: on Zen 5 some hundred thousand turns, 16 us
instead of 107 for a query over 20,000 rows. With branches that are not known (the agent makes the processor forget them) it
takes as long as with new data each time. The running program's calls repeat themselves in part; which part of the branches
is not known there follows from the time that the original takes, and all variants have the same branches
(``docs/decisions/0052``).
"""

from __future__ import annotations

from dataclasses import replace

from layout_advise.mockup.timing.canary import Canary
from layout_advise.mockup.timing.policy import TIMING
from layout_advise.mockup.timing.process_times import Times
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import ORIGINAL, Variant


def unknown_part(timings: Timings, in_situ_ns: float | None, tolerance: float) -> float | None:
    """Which part of the branches that a repeated call teaches is not known in the running program, 0 to 1; None where that
    does not explain its time (by ``tolerance``, a fraction), or nothing is learnt."""
    learnt, unknown = timings.nanoseconds(ORIGINAL), timings.nanoseconds(ORIGINAL, "fresh")
    if not in_situ_ns or not learnt or not unknown or unknown < TIMING.least_learnt * learnt:
        return None
    if not learnt / (1 + tolerance) <= in_situ_ns <= unknown * (1 + tolerance):
        return None
    part = (in_situ_ns - learnt) / (unknown - learnt)
    return min(part, 1.0) if part >= TIMING.least_unknown else 0.0


def as_in_program(timings: Timings, unknown: float) -> Timings:
    """``timings`` with what each process took where that part of the branches is not known, one time a process, in place of
    its steady times. Unchanged for 0."""
    if not unknown:
        return timings
    names = {name for restore in timings.steady for name in restore}
    learnt, fresh = ({n: timings.processes(n, mode) for n in names} for mode in ("steady", "fresh"))
    steady: list[Times] = []
    for k in range(len(timings.steady)):
        more = {n: unknown * (f - s) for n in names if (s := learnt[n][k]) and (f := fresh[n][k])}
        more |= {n.with_conversion: by for n, by in more.items()}  # only the call itself has branches that hang on the data
        steady.append({n: [s + more[n]] for n in names if (s := learnt[n][k]) and n in more})
    best: list[dict[Variant, list[Canary]]] = [{n: [timings.best_canary] for n in restore} for restore in steady]
    return replace(timings, steady=steady, canaries={**timings.canaries, "steady": best}, unknown=unknown, origin=timings)
