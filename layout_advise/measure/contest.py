"""From verified mock-ups to what takes part in the timing at the calls of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from layout_advise.build.mockups import Mockup, Mockups
from layout_advise.build.stage import held_against, same_program
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.measure.effort import plans_for
from layout_advise.measure.measured import Measured
from layout_advise.measure.policy import MEASURE
from layout_advise.measure.setup import Bench, Contest, Entrant
from layout_advise.mockup.run.packed_loops import keeps_vectors, packed_counts, packed_in
from layout_advise.mockup.timing.plan import Memory
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import (
    CONTROLS,
    IDENTITY,
    IDENTITY_UNROLLED,
    PLACED,
    SCALAR,
    Variant,
)
from layout_advise.observe.observe import Observation, is_beyond_the_l2, leaves_data
from layout_advise.propose.source import Source
from layout_advise.propose.titles import title, words
from layout_advise.tracer.process.stopped_program import MODES, Clock, Snapshots
from layout_advise.verify.compare import Findings
from layout_advise.workspace import Workspace


def contestants(made: Mockups, found: Findings) -> list[Mockup]:
    """The candidates' mock-ups that did the same as the original, one for each machine code."""
    able = [m for m in made.values() if m.recipe.candidate is not None and not m.recipe.wrong and m.same_as is None]
    return [m for m in able if m.path is not None and (f := found.get(m.recipe.variant)) and f.reason is None]


def contest_of(
    candidates: Sequence[Candidate],
    source: Source,
    made: Mockups,
    found: Findings,
    symbol: str,
    calls_around: int | None,
) -> Contest:
    """The contest of what was verified at all calls of one kind. ``symbol`` is what titles call the hotspot."""
    entrants, unmeasured = [], []
    packed = packed_in(source.region) if source.region is not None else 0
    unchanged = made[IDENTITY].path if IDENTITY in made else None
    able = contestants(made, found)
    bare = [m for m in able if m.recipe.variant.promise == "plain"]
    made_plain = {m.recipe.variant.layout: packed_arithmetic(m, source.kernel) for m in bare}
    did = {v: m for v, m in made.items() if v in found and found[v].reason is None}
    for item in able:
        variant, candidate = item.recipe.variant, item.recipe.candidate
        assert candidate is not None
        assert item.path is not None
        entrants.append(
            Entrant(
                variant,
                title(candidate, symbol, written_out=item.written_out),
                found[variant].evidence,
                item.path,
                source.forbidden(candidate),
                candidate.block is not None,
                words(candidate),
                unchanged is not None and keeps_vectors(item.path, unchanged, source.kernel),
                packed_arithmetic(item, source.kernel) > packed,
                _made_no_vectors(item, made_plain.get(variant.layout), source.kernel),
                frozenset(r.structure.id for r in candidate.relayouts),
                held_against(item, did),
            )
        )
    for candidate in candidates:
        if not any(e.variant.layout == candidate.id for e in entrants):
            plain = Variant(candidate.id)
            why = made[plain].reason if plain in made else None
            why = why or (found[plain].reason if plain in found else None)
            unmeasured.append(Measured(plain, "rejected", None, None, reason=why or "", words=words(candidate)))
    alike = [made[v] for v in made if v.is_reindexed]
    return Contest(
        controls(made, found, bool(entrants), source.kernel),
        entrants,
        unmeasured,
        reindexed={m.recipe.variant: source.forbidden(m.recipe.through) for m in alike},
        calls_around=calls_around,
    )


def packed_arithmetic(item: Mockup, kernel: str) -> int:
    """The instructions of packed arithmetic in a mock-up's innermost loops."""
    return sum(packed_counts(item.path, kernel)) if item.path is not None else 0


def _made_no_vectors(item: Mockup, plain: int | None, kernel: str) -> bool:
    """Tells whether a promise gave a layout's build no more vector arithmetic than its plain build has (``plain``; None:
    there is none)."""
    promised = item.recipe.variant.promise in ("restrict", "simd")
    return promised and plain is not None and packed_arithmetic(item, kernel) <= plain


def controls(made: Mockups, found: Findings, compared: bool, kernel: str) -> dict[Variant, Path]:
    """The identity, and its other builds where candidates are ``compared`` with them; no scalar one that is the same
    program."""
    chosen = {}
    nearest = [v for form in (IDENTITY, IDENTITY_UNROLLED) for v in (form, *form.elsewhere)]
    plain, scalar = (made[v].path if v in made else None for v in (IDENTITY, SCALAR))
    alike = plain is not None and scalar is not None and same_program(plain, scalar, kernel)
    for variant in (*CONTROLS, *(v for v in made if v.reached)):
        item, finding = made.get(variant), found.get(variant)
        if item is None or item.path is None or (variant == SCALAR and alike):
            continue
        usable = finding is not None and finding.reason is None and item.same_as is None
        if variant == IDENTITY or (usable and (compared or variant in (PLACED, *nearest))):
            chosen[variant] = item.path
    return chosen


def bench_of(
    space: Workspace,
    seen: Observation,
    snapshots: Snapshots,
    call_ns: float | None,
    *,
    restores: int | None,
    budget: float,
    clock: Clock,
    canary: int,
    branches: bool = False,
    alone: bool = True,
    between_ns: float | None = None,
    counting: float = 0.0,
) -> Bench:
    """Returns where and how the calls are measured, of which one takes ``call_ns`` in the running program, the part
    ``counting`` of it at most for counting iterations. ``alone``: calls are timed one by one, not as a batch."""
    touched = sum(r.end - r.start for r in seen.touched)
    beyond = is_beyond_the_l2(seen)
    plans = plans_for(call_ns or 1e6, restores, clock, canary, budget, touched, beyond)
    apart = 0 if alone else MEASURE.apart_calls
    first, again = (replace(plan, typical=beyond, apart_calls=apart) for plan in plans)
    return Bench(
        snapshots,
        Memory(seen.written, seen.touched),
        first,
        again,
        space.progress.count,
        between_ns,
        alone and leaves_data(seen),
        branches,
        branches and seen.team is None,
        counting,
    )


def raw(timings: Timings) -> dict[str, object]:
    """The times as they are written down, by the variants' names."""
    timings = timings.origin or timings
    return {
        **{mode: [{str(v): ns for v, ns in r.items()} for r in timings.of(mode)] for mode in MODES if timings.of(mode)},
        "canaries": {
            mode: [{str(v): [c.core for c in s] for v, s in r.items()} for r in restores]
            for mode, restores in timings.canaries.items()
        },
        "failed": {str(v): why for v, why in timings.failed.items()},
        "dropped": {str(v): why for v, why in timings.dropped.items()},
    }
