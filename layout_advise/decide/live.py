"""Trials in the running program: which candidates get one, and what it makes of their doubts (``docs/decisions/0069``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from layout_advise.decide.requests import Asking, RunLive, run_live
from layout_advise.measure.live_trial import LiveTrial
from layout_advise.measure.measured import Doubt, Measured
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.statistics import Ratio
from layout_advise.mockup.timing.variants import Variant

SETTLED = ("caches", "program")
"""Doubts about the snapshot that the running program itself settles."""


def unlike_program(results: Sequence[Measured]) -> bool:
    """Tells whether the snapshot leaves open what the running program takes."""
    return any(d.name in SETTLED for r in results for d in r.doubts)


def lived(one: Measured, trial: LiveTrial | None) -> Measured:
    """``one`` as the running program has it: its gain over the original is that measured there; what the snapshot tells of
    it in relation to that gain keeps its relation."""
    if trial is None or trial.ratio is None or one.speedup is None or one.net is not None:
        return one
    own = trial.ratio
    scale = own.median / one.speedup.median
    over = one.over_identity
    if over is not None:
        part = over.median / one.speedup.median
        over = Ratio(own.median * part, own.lo * part, own.hi * part, own.restores)
    doubts = tuple(Doubt(d.name, d.lo * scale, d.hi * scale, d.how) for d in one.doubts if d.name not in SETTLED)
    return replace(one, speedup=own, over_identity=over, doubts=doubts, live=how_live(trial))


def how_live(trial: LiveTrial) -> str:
    """The words for it in the error budget."""
    ratio = trial.ratio
    runs = 2 * ratio.restores if ratio is not None else 0
    return f"{trial.timed:,} calls of the running program as the original and as the mock-up, in {runs} runs"


def tried_live(
    results: Sequence[Measured], wanted: Sequence[Measured], trials: Mapping[Variant, LiveTrial]
) -> Asking[tuple[tuple[Measured, ...], dict[Variant, LiveTrial]]]:
    """``results`` with what the running program tells of ``wanted``, the first few of them; and all trials."""
    done = dict(trials)
    for one in wanted[: MEASURE.live_layouts]:
        if one.name in done:
            continue
        done[one.name] = yield from run_live(RunLive(0, one.name))
        if done[one.name].ratio is None:
            break  # what stopped it would stop the others
    return tuple(lived(r, done.get(r.name)) for r in results), done
