"""Who takes part in a measurement, and where it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layout_advise.measure.measured import Measured
from layout_advise.mockup.timing.measure import Restorer, Timed, TimingPlan, measure
from layout_advise.mockup.timing.names import IDENTITY, LAYOUT_SCALAR, PLACED, SCALAR, elsewhere, is_elsewhere
from layout_advise.mockup.timing.timings import Timings
from layout_advise.reports.model.candidate import Evidence
from layout_advise.tracer.process.stopped_program import Range

FRESH_CALLS = 4
"""In each block: to forget takes a millisecond or two."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A verified candidate on its way through timing. ``unwritten`` is memory that the original writes and it does not;
    ``blocked``: it has loops over the elements of a block."""

    id: str
    title: str
    evidence: Evidence
    mockup: Path
    unwritten: tuple[Range, ...] = ()
    blocked: bool = False
    words: str = ""


@dataclass(frozen=True, slots=True)
class Contest:
    """Everything that takes part: ``controls`` are the identity and its other builds, ``unmeasured`` candidates that have no
    numbers but count. ``rebuild(id, names, places)`` builds the candidate and those of ``names`` with other code alignment
    and buffer offsets, and the candidate without vector instructions (LAYOUT_SCALAR); with ``places``, and where times may
    hang on where the code lies, also the candidate and the identity at other ones (``elsewhere``). What
    cannot be built is left out; so are LAYOUT_SCALAR and SCALAR where no build has vector instructions.
    ``conversion(timings, id)`` is the ns that a temporary layout costs a call, None for a permanent one. ``places()`` builds
    the entrants with their code at other places, by the names of ``elsewhere``; None where times do not hang on that."""

    controls: Mapping[str, Path]
    entrants: Sequence[Entrant]
    unmeasured: Sequence[Measured]
    rebuild: Callable[[str, Sequence[str], bool], Mapping[str, Path]]
    conversion: Callable[[Timings, str], float | None]
    places: Callable[[], Mapping[str, Path]] | None = None

    def timed(self, *, places: bool) -> list[Timed]:
        """What is timed at first."""
        further = self.places() if places and self.places is not None else {}
        found = [Timed(name, path) for name, path in self.controls.items()]
        for e in self.entrants:
            found.append(Timed(e.id, e.mockup, e.unwritten, e.blocked))
            found += [Timed(name, further[name], e.unwritten) for name in elsewhere(e.id) if name in further]
        return found


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and how to measure, the winner ``again``. ``ranges`` are what is written and what is touched."""

    snapshots: Restorer
    ranges: tuple[Sequence[Range], Sequence[Range]]
    plan: TimingPlan
    again: TimingPlan
    progress: Callable[[str, int, int], None]
    look_again: Callable[[int], float | None] = lambda canary: None
    """Times a call in the running program again, in further processes (ns), knowing the fastest canary seen since."""
    between_ns: float | None = None
    """What passes between two calls in the running program; None: not known."""
    lesser: bool = False
    """As in :class:`~layout_advise.mockup.timing.timings.Timings`."""
    branches: bool = False
    """Whether the way the hotspot takes hangs on its data, which a processor learns of the same call repeated."""
    forgets: bool = False
    """Whether calls are then timed with forgotten branches as well: single ones, of one thread."""

    def with_unknown(self, part: float) -> Bench:
        """The same, where that part of the branches is not known in the running program."""
        plans = (replace(plan, unknown=part, fresh_calls=FRESH_CALLS if part else 0) for plan in (self.plan, self.again))
        return replace(self, plan=next(plans), again=next(plans))

    def measure(self, variants: Sequence[Timed], text: str, restores: int | None = None, drop: bool = True) -> Timings:
        """Time ``variants``; ``text`` names the step."""
        plan = self.plan if restores is None else replace(self.plan, restores=restores)
        return measure(self.snapshots, variants, *self.ranges, plan, lambda i, n: self.progress(text, i, n), drop)


def built_again(contest: Contest, name: str, *, places: bool = True) -> list[Timed] | None:
    """The candidate ``name`` built anew, with everything that it is compared with; None where it could not be built."""
    entrant = next(e for e in contest.entrants if e.id == name)
    built = dict(contest.rebuild(name, tuple(c for c in contest.controls if c != PLACED and not is_elsewhere(c)), places))
    if name not in built or IDENTITY not in built:
        return None
    if PLACED in contest.controls:  # its place is what it is for
        built[PLACED] = contest.controls[PLACED]
    unwritten = dict.fromkeys((name, LAYOUT_SCALAR, *elsewhere(name)), entrant.unwritten)
    return [Timed(n, path, unwritten.get(n, ()), n == name and entrant.blocked) for n, path in built.items()]


def has_vectors(variants: Sequence[Timed]) -> bool:
    """Whether builds without vector instructions are timed."""
    return {LAYOUT_SCALAR, SCALAR} <= {v.name for v in variants}
