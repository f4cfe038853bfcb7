"""Time what was verified, decide, and measure the winner again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from layout_advise.mockup.measure import (
    IDENTITY,
    IDENTITY_SIMD,
    ORIGINAL,
    SCALAR,
    Plan,
    Restorer,
    Timed,
    Timings,
    measure,
    noise_floor,
    summarise,
)
from layout_advise.mockup.statistics import Ratio
from layout_advise.reports.model import Evidence, Verdict
from layout_advise.tracer.snapshot.protocol import Range
from layout_advise.verdict import Context, Measured, Mode, choose_mode, confirm, decide, undecided

FEWEST_AGAIN = 5
SCALAR_LIMIT = 1.1
BLOCK_NS = 60e6
"""A block of calls of the original may take about this long, so that slow hotspots are not called more often than needed."""
FEWEST_CALLS, MOST_CALLS = 4, 40
ROUNDS, QUICK_NS = 3, 2e6
"""So many rounds in each restored process where a call is shorter than that; else one."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A verified candidate on its way through timing. ``unwritten`` is memory that the original writes and it does not."""

    id: str
    title: str
    evidence: Evidence
    mockup: Path
    unwritten: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Both measurements and what follows from them."""

    first: Timings
    again: Timings | None
    mode: Mode | None
    verdict: Verdict
    winner: str | None
    snapshot: Literal["criu", "fork"]


def plan_for(call_ns: float, restores: int, clock: Literal["thread-cpu", "wall"]) -> Plan:
    """Blocks of up to 40 calls, in three rounds, for quick hotspots; fewer where a call takes long. What disturbs a shared
    machine comes in phases of 10 ms to a second: many calls, spread over a process' life, let the undisturbed ones show.
    Data that nearly fills the last cache needs several calls to get there (1.3 to 1.0 ms over the first five)."""
    calls = max(FEWEST_CALLS, min(MOST_CALLS, int(BLOCK_NS / max(call_ns, 1.0))))
    rounds = ROUNDS if call_ns < QUICK_NS else 1
    return Plan(restores=restores, rounds=rounds, calls=calls, warm=2 if calls > 5 else 1, cold_calls=2, clock=clock)


def pick(timings: Timings, name: str, mode: Mode) -> tuple[Ratio | None, Ratio | None]:
    """Speedup and over-identity of one variant in the mode that counts."""
    ratios = summarise(timings, name)
    if ratios is None:
        return None, None
    if mode == "steady":
        return ratios.steady, ratios.steady_over_identity
    return ratios.cold, ratios.cold_over_identity


def measured(entrant: Entrant, timings: Timings, mode: Mode, net_ns: float | None) -> Measured:
    """What the verdict needs of one candidate. ``net_ns`` is the cost of converting around a call, for temporary layouts."""
    speedup, over = pick(timings, entrant.id, mode)
    net = None
    original = timings.nanoseconds(ORIGINAL, mode)
    if net_ns is not None and speedup is not None and original:
        share = net_ns / original
        median, lo, hi = (1 / (1 / r + share) for r in (speedup.median, speedup.lo, speedup.hi))
        net = Ratio(median, lo, hi, speedup.restores)
    return Measured(entrant.id, entrant.evidence, speedup, over, net, entrant.title)


def decide_and_confirm(
    snapshots: Restorer,
    controls: Mapping[str, Path],
    entrants: Sequence[Entrant],
    unmeasured: Sequence[Measured],
    rebuild: Callable[[Sequence[str]], Mapping[str, Path]],
    conversion: Callable[[Timings, str], float | None],
    ranges: tuple[Sequence[Range], Sequence[Range]],
    plan: Plan,
    in_situ_ns: float | None,
    context: Context,
    progress: Callable[[str, int, int], None],
) -> Decision:
    """Measure, decide, and measure the winner again in at least five new restores, where only those rounds count.

    ``controls`` are the identity and its other builds; ``rebuild(names)`` gives mock-ups with other code alignment and
    buffer offsets; ``conversion(timings, id)`` the ns that a temporary layout costs a call, None for a permanent one;
    ``unmeasured`` are candidates that have no numbers but count.
    """
    written, touched = ranges
    variants = [
        *(Timed(name, path) for name, path in controls.items()),
        *(Timed(e.id, e.mockup, e.unwritten) for e in entrants),
    ]
    first = measure(snapshots, variants, written, touched, plan, lambda i, n: progress("measuring", i, n))
    mode = choose_mode(in_situ_ns, first.nanoseconds(ORIGINAL), first.nanoseconds(ORIGINAL, "cold"))
    if not context.rules_apply:
        return Decision(first, None, mode, decide((), context), None, context.snapshot)
    if mode is None:
        text = (
            "The original takes a different time in the snapshot than in the running program, warm and cold alike, "
            "so the measured ratios may not hold there."
        )
        return Decision(first, None, None, undecided("not-in-situ", text), None, context.snapshot)
    now = _context(context, first, mode)
    results = [measured(e, first, mode, conversion(first, e.id)) for e in entrants]
    verdict = doubt_scalar(decide([*results, *unmeasured], now), first, results, mode)
    if verdict.action != "change" or verdict.candidate is None:
        return Decision(first, None, mode, verdict, None, context.snapshot)
    winner = next(e for e in entrants if e.id == verdict.candidate)
    built = rebuild([winner.id, *(name for name in controls if name in (IDENTITY, IDENTITY_SIMD))])
    second = measure(
        snapshots,
        [Timed(name, path, winner.unwritten if name == winner.id else ()) for name, path in built.items()],
        written,
        touched,
        Plan(max(FEWEST_AGAIN, plan.restores), plan.rounds, plan.calls, plan.warm, plan.cold_calls, plan.clock),
        lambda i, n: progress("measuring the winner again", i, n),
        drop=False,
    )
    again = measured(winner, second, mode, conversion(first, winner.id))
    return Decision(
        first, second, mode, confirm(verdict, again, _context(context, second, mode)), winner.id, context.snapshot
    )


def doubt_scalar(verdict: Verdict, timings: Timings, results: Sequence[Measured], mode: Mode) -> Verdict:
    """No ``keep`` where the re-laid mock-ups may lose for being scalar only.

    Mock-ups are written lane by lane, and the compiler finds the vectors again where the layout is unchanged. If the
    unchanged layout without vectors is clearly slower, and the best candidate nearer to it than to the original, its time
    says nothing against the layout.
    """
    cost = timings.ratio(SCALAR, ORIGINAL, mode)
    medians = [r.speedup.median for r in results if r.speedup is not None]
    if verdict.action != "keep" or cost is None or cost.median <= SCALAR_LIMIT or not medians:
        return verdict
    best = max(medians)
    if best >= cost.median**-0.5:
        return verdict
    text = (
        "the original is vectorised; the mock-ups of other layouts are not, which alone costs a factor of "
        f"{cost.median:.1f} with the layout unchanged. No gain is shown, and none is excluded."
    )
    return undecided("scalar-mockups", text)


def _context(context: Context, timings: Timings, mode: Mode) -> Context:
    return Context(
        context.snapshot,
        context.identity_evidence,
        timings.ratio(IDENTITY, ORIGINAL, mode),
        noise_floor(timings, mode)[1],
        context.rules_apply,
        context.allow_reassociation,
    )
