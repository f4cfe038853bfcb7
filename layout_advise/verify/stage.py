"""The stage: which mock-ups do what the original does, at several calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from layout_advise.build.stage import Built
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.timing.variants import IDENTITY, Variant
from layout_advise.propose.recipes import Recipe
from layout_advise.reasons import Reason
from layout_advise.tracer.process.stopped_program import Range, StoppedProgram
from layout_advise.verify.compare import Findings, compared, inherited, left_behind, noticed, without_failed
from layout_advise.verify.policy import VERIFY
from layout_advise.verify.verify import NOTHING_CHANGED
from layout_advise.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Verified:
    """The mock-ups with what was found of each. ``calls``: at how many calls the bytes were compared; ``same_addresses``:
    whether the structures that get another layout lay at the same addresses each time."""

    built: Built
    found: Findings
    calls: int = 1
    same_addresses: bool = True
    wrong_map_caught: bool | None = None
    left: Mapping[Range, bytes] | None = None
    """What the first batch left behind, where calls are compared as batches."""
    unlike: int | None = None
    """In how many bytes the memory that a batch touches differs after it from the program's own; None where not compared."""

    each: float = 0.0
    """Seconds in which one mock-up was made and compared at the first call."""
    took: frozenset[int] = frozenset()
    """Where ways begin that a further call took and on which the mock-ups end."""
    behind: Mapping[Variant, str] = field(default_factory=dict)
    """The builds that did the same at the first call and were too slow there to be compared further, and how that showed."""

    @property
    def good(self) -> tuple[Recipe, ...]:
        """The recipes whose mock-ups did the same so far, and are compared further."""
        return tuple(r for r in self.built.wanted if r.variant in self.racing and self.found[r.variant].reason is None)

    @property
    def racing(self) -> Findings:
        """The findings of all but those that were left behind."""
        return {variant: one for variant, one in self.found.items() if variant not in self.behind}

    def is_left(self, candidate: Candidate) -> bool:
        """Tells whether all builds of a candidate that did the same were left behind."""
        return any(v.layout == candidate.id for v in self.behind) and all(r.candidate != candidate for r in self.good)

    def in_race(self, candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
        """Those of ``candidates`` that were not left behind."""
        return tuple(one for one in candidates if not self.is_left(one))

    def completed(self) -> Verified:
        """The same with findings of the variants that have the machine code of others."""
        twins = {v: self.found[m.same_as] for v, m in self.built.mockups.items() if m.same_as in self.found and m.same_as}
        return replace(self, found={**self.found, **twins})

    @property
    def problem(self) -> tuple[Reason, str] | None:
        """Why no number counts, as the stable word and a sentence; None where they do."""
        identity = self.found.get(IDENTITY)
        if identity is None or identity.reason is not None:
            if identity is None:  # there was nothing to compare
                why = self.built.mockups[IDENTITY].reason or "no reason is known"
                return (
                    Reason.IDENTITY_NOT_VERIFIED,
                    f"the unchanged mock-up could not be built ({why}), so no number counts.",
                )
            why = identity.reason or ""
            if why == NOTHING_CHANGED:
                text = f"no layout can be checked: {why}. Another call (--call N) or other data may differ."
                return Reason.NOTHING_CHANGED, text
            text = f"the unchanged mock-up does not do what the original does ({why}), so no number counts."
            return Reason.IDENTITY_NOT_VERIFIED, text
        if self.wrong_map_caught is False:
            text = "a deliberately wrong layout went unnoticed: what the call leaves behind does not depend on these "
            text += "structures."
            return Reason.COMPARISON_BLIND, text
        return None


def verify_first(
    space: Workspace, program: StoppedProgram, built: Built, batch: Sequence[Range] | None, seconds: float = VERIFY.budget_s
) -> Verified:
    """Compares every mock-up at the call that ``program`` is stopped at, none begun after ``seconds``; ``batch`` are the
    ranges that a batch of calls touches, where it is one. Raises SnapshotError when the original cannot be run."""
    found = compared(space, program, built.source, built.mockups, seconds)
    built = replace(built, mockups=without_failed(built.mockups, found))
    wrong = next((m.recipe for m in built.mockups.values() if m.recipe.wrong), None)
    caught = found[wrong.variant].reason is not None if wrong is not None and wrong.variant in found else None
    if wrong is not None:
        found.pop(wrong.variant, None)
        if caught is False:
            caught = noticed(space, program, built.source, wrong)
    left = left_behind(program, batch) if batch is not None else None
    return Verified(built, inherited(found, built.mockups), wrong_map_caught=caught, left=left)
