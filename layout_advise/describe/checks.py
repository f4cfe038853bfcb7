"""The checks of quality: how far the measurement of a region can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.choose.calls import Stretch
from layout_advise.describe.policy import CHECKS
from layout_advise.measure.mode import Mode, is_apart
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.ratios import identity_ratio, noise_floor, withheld
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, ORIGINAL, PLACED
from layout_advise.reports.model import contract
from layout_advise.reports.words import quantities
from layout_advise.reports.words.quantities import nanoseconds


@dataclass(frozen=True, slots=True)
class Conditions:
    """How the experiment went, for its quality checks."""

    timings: Timings | None
    in_situ_ns: float | None
    spread: float
    mode: Mode | None
    truncated: bool
    wrong_map_caught: bool | None
    calls_verified: int
    deterministic: bool | None
    batch: int = 1
    """How many calls are timed together."""
    unlike: int | None = None
    """In how many bytes a replayed batch leaves the memory that it touches otherwise than the program itself."""
    puts: int | None = None
    """How many words are put back between the calls of a batch; None where it is not known what the program writes."""
    unknown: str = ""
    """Why that is not known, or not between as many calls as would have been taken."""
    stretches: tuple[Stretch, ...] = ()
    """What single calls take in the course of the run."""
    waits: float = 0.0
    """The part of its elapsed time in which the program waits."""
    same_blocks: bool = True
    """Whether the further calls use the blocks of memory that were to be re-laid."""


def quality(conditions: Conditions) -> contract.Quality:
    """The quality checks; a check that could not be made is not listed."""
    checks: list[contract.Check] = []
    timings = conditions.timings
    if timings is not None and timings.steady:
        checks += _timing_checks(timings, conditions)
    checks.append(
        contract.Check("trace-complete", not conditions.truncated, None, "the trace holds every access of the call")
    )
    if conditions.wrong_map_caught is not None:
        text = "a deliberately wrong layout was caught by the comparison"
        checks.append(contract.Check("wrong-map", conditions.wrong_map_caught, None, text))
    if conditions.calls_verified:
        count = conditions.calls_verified
        once = "at 1 call" if count == 1 else f"at {count} calls"
        at = once if conditions.batch == 1 else f"after {count} batches of {conditions.batch} calls"
        checks.append(contract.Check("calls-verified", count >= 3, float(count), f"compared {at} (3 wanted)"))
    if conditions.batch > 1 and (conditions.unknown or conditions.puts is not None):
        checks.append(_between(conditions))
    if conditions.unlike is not None:
        n = conditions.unlike
        text = "a replayed batch leaves the memory that it touches as the program itself does" + (
            f", but for {n} bytes, which the program writes between the calls" if n else ""
        )
        checks.append(contract.Check("replayed-batch", n == 0, float(n), text))
    if conditions.deterministic is not None:
        text = "the program ran the same way each time it was started"
        checks.append(contract.Check("deterministic", conditions.deterministic, None, text))
    if quantities.waits_much(conditions.waits):
        text = f"the program waits {conditions.waits:.0%} of the time that it takes: its gain is one of its CPU time"
        checks.append(contract.Check("waits", False, conditions.waits, text))
    if not conditions.same_blocks:
        text = "further calls use other blocks of memory than the one measured: the layouts were not compared there"
        checks.append(contract.Check("same-blocks", False, None, text))
    passed = sum(check.ok for check in checks)
    return contract.Quality(passed / len(checks) if checks else 0.0, tuple(checks))


def _between(conditions: Conditions) -> contract.Check:
    """The check on what the program writes between the calls of a batch."""
    if conditions.puts is None:
        text = f"what the program writes between the calls is not known: {conditions.unknown}"
        return contract.Check("between-calls", False, None, text)
    text = f"what the program writes between the calls is put back ({quantities.number(conditions.puts)} words in a batch)"
    if conditions.unknown:
        text += f"; between further calls it is not known, as {conditions.unknown}"
    return contract.Check("between-calls", True, float(conditions.puts), text)


def _placement(timings: Timings, mode: Mode) -> Sequence[contract.Check]:
    """The check on the cost of where the hot loop lies, with the layout unchanged."""
    cost = timings.ratio(PLACED, IDENTITY, mode)
    if cost is None:
        return ()
    text = f"the unchanged mock-up takes {cost.median:.2f} times as long with its loop placed as in the original as aligned"
    return (contract.Check("placement", cost.lo <= CHECKS.placement, cost.median, text),)


def drift(stretches: Sequence[Stretch], in_situ_ns: float) -> Sequence[contract.Check]:
    """Tells whether calls elsewhere in the run take as long as the one measured."""
    if not stretches:
        return ()
    other = max(stretches, key=lambda s: abs(math.log(s.ns / in_situ_ns)))
    factor = other.ns / in_situ_ns
    calls = f"calls {quantities.number(other.first)} to {quantities.number(other.last)} of the run"
    text = f"{calls} take {factor:.2f} times as long as the one measured"
    return (contract.Check("later-calls", 1 / CHECKS.drift <= factor <= CHECKS.drift, factor, text),)


def _timing_checks(timings: Timings, conditions: Conditions) -> Sequence[contract.Check]:
    checks = [*_noise(timings, conditions.mode or "steady"), *_identity(timings, conditions.mode or "steady")]
    if conditions.in_situ_ns:
        checks += [*_in_situ(timings, conditions), *_steady_calls(conditions)]
        checks += drift(conditions.stretches, conditions.in_situ_ns)
    part = withheld(timings) if conditions.mode == "steady" else None
    if part is not None:
        checks.append(_other_data(timings, part))
    return [*checks, *_calm(timings), _page_faults(timings)]


def _noise(timings: Timings, mode: Mode) -> Sequence[contract.Check]:
    lo, hi = noise_floor(timings, mode)
    noise = max(hi, 1 / lo) if lo > 0 else math.inf
    text = f"the original against itself differs by up to {noise - 1:.1%}"
    return (contract.Check("noise-floor", noise <= CHECKS.noise, noise - 1, text),)


def _identity(timings: Timings, mode: Mode) -> Sequence[contract.Check]:
    """The checks on the mock-up of the unchanged layout."""
    ratio = identity_ratio(timings, mode)
    if ratio is None:
        return ()
    ok = CHECKS.identity_lo <= ratio.median <= CHECKS.identity_hi
    text = f"the unchanged mock-up takes {ratio.median:.3f} times the original's time"
    return (contract.Check("identity", ok, ratio.median, text), *_placement(timings, mode))


def _in_situ(timings: Timings, conditions: Conditions) -> Sequence[contract.Check]:
    """The check of the original's time in the snapshot against that in the running program."""
    near = timings.nanoseconds(ORIGINAL, conditions.mode or "steady")
    if not near or not conditions.in_situ_ns:
        return ()
    apart = timings.nanoseconds(ORIGINAL, "apart")
    if apart and not timings.unknown and conditions.mode == "steady" and is_apart(timings, conditions.in_situ_ns):
        text = (
            f"the original's calls take {nanoseconds(near)} together in the snapshot and {nanoseconds(apart)} one by one; "
            f"one by one in the running program {nanoseconds(conditions.in_situ_ns)}"
        )
        return (contract.Check("in-situ", True, min(0.0, apart / conditions.in_situ_ns - 1), text),)
    error = near / conditions.in_situ_ns - 1
    mode: str = conditions.mode or "neither warm nor cold"
    if timings.unknown:
        mode += f", as much of its branches unknown as makes it so: {timings.unknown:.0%} of what is learnt"
    text = f"the original in the snapshot is {error:+.1%} off its time in the running program ({mode})"
    return (contract.Check("in-situ", abs(error) <= MEASURE.in_situ_tolerance, error, text),)


def _steady_calls(conditions: Conditions) -> Sequence[contract.Check]:
    which = "calls around the one stopped at" if conditions.batch == 1 else f"quarters of the {conditions.batch} calls timed"
    text = f"the {which} differ by ±{conditions.spread:.1%}"
    return (contract.Check("steady-calls", conditions.spread <= CHECKS.spread, conditions.spread, text),)


def _other_data(timings: Timings, withheld: float) -> contract.Check:
    """The check on calls that find less of their data in the caches than repeated ones do."""
    why = "calls use other data in turn"
    if timings.between:
        why = "calls in the program take longer than with warm caches and less than with flushed ones"
    text = f"{why}: speedups are told only as far as they hold with flushed caches too" + (
        f", up to {withheld:.0%} below those with the same data again" if withheld >= CHECKS.told_less else ""
    )
    return contract.Check("other-data", withheld <= CHECKS.withheld, withheld, text)


def _calm(timings: Timings) -> Sequence[contract.Check]:
    calm = timings.calm_part()
    if calm is None:
        return ()
    text = f"{calm:.0%} of the original's calls were timed while nothing slowed the processor" + (
        "" if timings.is_calm else ", too few to leave out the others"
    )
    return (contract.Check("calm", timings.is_calm, calm, text),)


def _page_faults(timings: Timings) -> contract.Check:
    share = timings.rejected / timings.samples if timings.samples else 0.0
    text = f"{share:.0%} of the timed calls were left out for page faults"
    return contract.Check("page-faults", share <= CHECKS.rejected, share, text)
