"""The contest: the variants that are measured, and the bench."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from layout_advise.measure.measured import Measured
from layout_advise.measure.policy import MEASURE
from layout_advise.mockup.timing.measure import measure
from layout_advise.mockup.timing.plan import Memory, Restorer, Timed, TimingPlan
from layout_advise.mockup.timing.timings import Timings
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_REINDEXED, PLACED, Variant, reindexed_for
from layout_advise.reports.model.candidate import Evidence
from layout_advise.tracer.process.stopped_program import Range


@dataclass(frozen=True, slots=True)
class Entrant:
    """A verified candidate on its way through timing. ``unwritten`` is memory that the original writes and it does not;
    ``blocked``: it has loops over the elements of a block; ``vectorised``: its loops have the vector arithmetic that
    those of the unchanged mock-up have."""

    variant: Variant
    title: str
    evidence: Evidence
    mockup: Path
    unwritten: tuple[Range, ...] = ()
    blocked: bool = False
    words: str = ""
    vectorised: bool = False
    packed: bool = False
    """Whether its loops have more arithmetic on several elements at once than the original's."""
    waits: bool = False
    """As in :class:`~layout_advise.mockup.timing.plan.Timed`."""
    structures: frozenset[str] = frozenset()
    """The structures that its layout is of."""
    translated: frozenset[str] = frozenset()
    """The structures of which the unchanged layout is held against it that is reached as this one is: those for which it
    makes places of addresses one by one, where a source in its layout need not, else all."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Everything that takes part: ``controls`` are the identity and its other builds, ``unmeasured`` candidates that have no
    numbers but count; ``places`` the entrants' builds with their code at other places, where times depend on that."""

    controls: Mapping[Variant, Path]
    entrants: Sequence[Entrant]
    unmeasured: Sequence[Measured] = ()
    places: Mapping[Variant, Path] = field(default_factory=dict)
    reindexed: Mapping[Variant, tuple[Range, ...]] = field(default_factory=dict)
    """Memory that the original writes, and the unchanged layouts do not that are reached as other layouts are."""
    calls_around: int | None = None
    """Of a layout that exists only during a call: around how many calls, timed together, it is converted to; None for a
    permanent one."""

    def timed(self) -> list[Timed]:
        """The variants that are timed at first."""
        found = [
            Timed(v, path, self.reindexed.get(v, ()), beside=users)
            for v, path in self.controls.items()
            if (users := self._users(v)) is None or users
        ]
        for e in self.entrants:
            found.append(Timed(e.variant, e.mockup, e.unwritten, e.blocked, waits=e.waits))
            places = (v for v in e.variant.elsewhere if v in self.places)
            found += [Timed(v, self.places[v], e.unwritten, waits=e.waits) for v in places]
        return found

    def _users(self, control: Variant) -> frozenset[Variant] | None:
        """The entrants that are held against a control; None: all of them."""
        return frozenset(e.variant for e in self.entrants if self.alike(e) == control) if control.is_reindexed else None

    def alike(self, entrant: Entrant) -> Variant | None:
        """The unchanged layout that is reached as the entrant's is: just its structures, or those of all entrants; None
        where it is reached as it was, or no such build is there."""
        both = (reindexed_for(entrant.translated), IDENTITY_REINDEXED) if entrant.translated else ()
        return next((v for v in both if v in self.controls), None)

    def entrant(self, variant: Variant) -> Entrant | None:
        """The entrant that is this variant."""
        return next((e for e in self.entrants if e.variant == variant), None)

    def compared_with(self, variant: Variant) -> tuple[Variant, ...]:
        """The controls that are built anew beside a candidate."""
        entrant = self.entrant(variant)
        alike = self.alike(entrant) if entrant is not None else None
        own = (c for c in self.controls if c != PLACED and not c.placement)
        return tuple(c for c in own if not c.is_reindexed or c == alike)

    def built_again(self, variant: Variant, built: Mapping[Variant, Path]) -> list[Timed] | None:
        """The candidate and everything that it is compared with, as ``built`` anew; None where these are not among it."""
        entrant = self.entrant(variant)
        if entrant is None or variant not in built or IDENTITY not in built:
            return None
        if PLACED in self.controls:  # its place is what it is for
            built = {**built, PLACED: self.controls[PLACED]}
        own = entrant.unwritten
        return [
            Timed(
                v, path, own if v.layout == variant.layout else self.reindexed.get(v, ()), v == variant and entrant.blocked
            )
            for v, path in built.items()
        ]

    def conversion(self, timings: Timings, variant: Variant) -> float | None:
        """The ns that converting there and back costs the calls that are timed together, of a layout that exists only during
        them; None for a permanent one, and where it was not measured."""
        costs = timings.conversion.get(variant)
        return None if costs is None or self.calls_around is None else self.calls_around * sum(costs)


@dataclass(frozen=True, slots=True)
class Bench:
    """The place and the plans of a measurement; ``again`` is the plan for the winner."""

    snapshots: Restorer
    memory: Memory
    plan: TimingPlan
    again: TimingPlan
    progress: Callable[[str, int, int], None]
    between_ns: float | None = None
    """The time between two calls in the running program; None: not known."""
    lesser: bool = False
    """As in :class:`~layout_advise.mockup.timing.timings.Timings`."""
    branches: bool = False
    """Whether the way the hotspot takes depends on its data, which a processor learns of the same call repeated."""
    forgets: bool = False
    """Whether calls are then timed with forgotten branches as well: those of one thread."""
    counting: float = 0.0
    """Of a loop in chunks: which part of the original's time counting iterations may take, at most."""

    def with_unknown(self, part: float) -> Bench:
        """The same, where that part of the branches is not known in the running program."""
        plans = (
            replace(plan, unknown=part, fresh_calls=MEASURE.fresh_calls if part else 0) for plan in (self.plan, self.again)
        )
        return replace(self, plan=next(plans), again=next(plans))

    def measure(
        self,
        variants: Sequence[Timed],
        text: str,
        restores: int | None = None,
        drop: bool = True,
        more: Timings | None = None,
        left_out: Mapping[Variant, str] = MappingProxyType({}),
    ) -> Timings:
        """Times ``variants``; ``text`` names the step. With ``more`` its times are added to; nothing is timed of what is
        ``left_out``."""
        plan = self.plan if restores is None else replace(self.plan, restores=restores)

        def tell(done: int, total: int) -> None:
            self.progress(text, done, total)

        return measure(self.snapshots, variants, self.memory, plan, tell, drop, more, left_out)


def has_vectors(variants: Sequence[Timed]) -> bool:
    """Tells whether builds without vector instructions are timed, of a candidate and of the identity."""
    scalar = [v.name.is_candidate for v in variants if v.name.form == "scalar"]
    return any(scalar) and not all(scalar)
