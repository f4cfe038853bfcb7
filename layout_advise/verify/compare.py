"""The mock-ups of one call compared with the original, and what follows from several calls together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from layout_advise.build.mockups import Mockup, Mockups, expected_moves, make_all
from layout_advise.errors import SnapshotError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.timing.variants import Form, Variant
from layout_advise.propose.recipes import Recipe
from layout_advise.propose.source import Source
from layout_advise.tracer.process.stopped_program import Range, StoppedProgram
from layout_advise.tracer.snapshot.compare import subtract
from layout_advise.verify.copies import in_copies
from layout_advise.verify.forks import in_forks
from layout_advise.verify.policy import VERIFY
from layout_advise.verify.verify import Finding, Subject, verify
from layout_advise.workspace import Workspace

Findings = Mapping[Variant, Finding]
_NEXT_WRONG: tuple[Form, ...] = ("wrong-writes", "wrong-values")


def compared(
    space: Workspace, program: StoppedProgram, source: Source, made: Mockups, seconds: float = VERIFY.budget_s
) -> dict[Variant, Finding]:
    """Compares what each mock-up leaves behind with what the original does, in forks of ``program``; with a team of threads
    in whole copies. None is begun after ``seconds``."""
    subjects, code = [], source.as_lifted
    for variant, item in made.items():
        if item.path is None or item.same_as is not None:
            continue
        candidate = item.recipe.relaid
        moves = expected_moves(candidate, code, source) if candidate is not None else None
        subjects.append(Subject(variant, item.path, item.check, source.guarded(candidate), moves))
    return found_of(space, program, source, subjects, seconds)


def compared_late(space: Workspace, program: StoppedProgram, source: Source, made: Mockups) -> dict[Variant, Mockup]:
    """``made``, which were compared, without the other order of loads where that does not do the same, or cannot be
    compared."""
    subjects = [
        Subject(
            variant.reordered, item.late.path, None, source.guarded(relaid), expected_moves(relaid, source.as_lifted, source)
        )
        for variant, item in made.items()
        if item.late is not None and (relaid := item.recipe.relaid) is not None
    ]
    try:
        found = found_of(space, program, source, subjects) if subjects else {}
    except SnapshotError:
        found = {}
    return without_failed(made, found)


def found_of(
    space: Workspace, program: StoppedProgram, source: Source, subjects: Sequence[Subject], seconds: float = VERIFY.budget_s
) -> dict[Variant, Finding]:
    """Compares ``subjects`` with the original, in forks or copies of ``program``; none is begun after ``seconds``."""

    def progress(done: int, total: int) -> None:
        space.progress.count("comparing bytes", done, total)

    running = in_forks if source.team is None else in_copies
    with running(program, subjects, source.lifted, source.team or source.trace) as runner:
        return verify(runner, subjects, space.scratch, progress, seconds)


def noticed(space: Workspace, program: StoppedProgram, source: Source, recipe: Recipe) -> bool:
    """Tells whether the comparison notices writes at wrong places, or other values, where it did not notice reads: a call
    may read elements that hold the same (sums that it has just set to 0, flags that are set nowhere)."""
    for form in _NEXT_WRONG:
        wrong = replace(recipe, variant=replace(recipe.variant, form=form))
        made = make_all([wrong], source, source.compiler, space.region.mockups)
        finding = compared(space, program, source, made).get(wrong.variant)
        if finding is not None and finding.reason is not None:
            return True
    return False


def without_failed(made: Mockups, found: Findings) -> dict[Variant, Mockup]:
    """``made``, without the other order of loads where that does not do the same."""
    good = {variant for variant, finding in found.items() if finding.reason is None}
    return {v: m if m.late is None or v.reordered in good else replace(m, late=None) for v, m in made.items()}


def inherited(found: Findings, made: Mockups) -> dict[Variant, Finding]:
    """A variant without a check build of its own is as good as its candidate's plain variant."""
    result = dict(found)
    for variant, finding in found.items():
        plain = found.get(Variant(variant.layout)) if made[variant.own].recipe.candidate is not None else None
        if plain is not None and plain.reason is not None and finding.reason is None:
            result[variant] = plain
    return result


def rejected(
    found: Findings,
    good: Sequence[Recipe],
    here: Findings,
    made: Mockups,
    choices: Mapping[Variant, Candidate | str],
    call: int,
) -> dict[Variant, Finding]:
    """``found`` with what differed at ``call``, and the greatest distance of sums that rounding explains."""
    result = dict(found)
    for variant in (recipe.variant for recipe in good):
        one, choice = here.get(variant), choices.get(variant)
        reason = choice if isinstance(choice, str) else one.reason if one else made[variant].reason
        if reason is not None:
            result[variant] = Finding(f"at call {call}: {reason}")
        elif one is not None and one.max_ulp > result[variant].max_ulp:
            result[variant] = replace(result[variant], max_ulp=one.max_ulp)
    return result


def left_behind(program: StoppedProgram, ranges: Sequence[Range]) -> Mapping[Range, bytes] | None:
    """The bytes that a call of the original leaves in ``ranges``; None where that is too much to be kept."""
    if sum(r.end - r.start for r in ranges) > VERIFY.most_kept:
        return None
    with program.fork() as fork:
        fork.run(0)
        return {r: fork.read(r.start, r.end - r.start) for r in ranges}


def differing(program: StoppedProgram, known: Mapping[Range, bytes]) -> int:
    """In how many bytes the memory of ``program`` is not what is ``known`` of it: also in all that is not mapped there."""
    there = [(m.start, m.end) for m in program.mappings()]
    total = 0
    for place, data in known.items():
        gone = subtract([(place.start, place.start + len(data))], there)
        total += sum(high - low for low, high in gone)
        for low, high in subtract([(place.start, place.start + len(data))], gone):
            now = np.frombuffer(program.read(low, high - low), np.uint8)
            total += int(np.count_nonzero(now != np.frombuffer(data[low - place.start : high - place.start], np.uint8)))
    return total
