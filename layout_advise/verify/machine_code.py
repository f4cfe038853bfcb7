"""The original's machine code on other layouts, as far as it leaves behind what the original does."""

from __future__ import annotations

from collections.abc import Iterable

from layout_advise.build.machine_code import MachineCode, build_machine_code
from layout_advise.errors import SnapshotError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.timing.plan import Timed
from layout_advise.mockup.timing.variants import MACHINE_CODE
from layout_advise.propose.source import Source
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.stopped_program import StoppedProgram
from layout_advise.verify.compare import found_of
from layout_advise.verify.verify import Subject
from layout_advise.workspace import Workspace

SOME_MOVED = (0, 0)
"""Accesses that are moved are not counted without a check build; the old layout is out of reach meanwhile."""


def verified_code(
    space: Workspace,
    program: StoppedProgram,
    region: Region,
    source: Source,
    candidates: Iterable[Candidate],
    seconds: float,
) -> tuple[Timed, ...]:
    """The machine code of ``region`` on the layouts of ``candidates``, built and compared at the call that ``program`` is
    stopped at, ready to be timed. No comparison is begun after ``seconds``. Of which there is none is told where much is."""
    made = build_machine_code(region, source, candidates, space.region.mockups)
    for name, why in made.reasons.items() if space.progress.verbose else ():
        space.progress.note(f"no machine code on {name}: {why}")
    return compared_code(space, program, source, made, seconds)


def compared_code(
    space: Workspace, program: StoppedProgram, source: Source, made: MachineCode, seconds: float
) -> tuple[Timed, ...]:
    """The part of it that leaves behind what the original does; nothing where the code with nothing moved does not, or no
    layout is left."""
    subjects = [Subject(m.variant, m.path, None, source.guarded(m.candidate), SOME_MOVED) for m in made.mockups]
    worth = any(m.variant.is_candidate for m in made.mockups)
    try:
        found = found_of(space, program, source, subjects, seconds) if worth else {}
    except SnapshotError:
        found = {}
    good = [m for m in made.mockups if m.variant in found and found[m.variant].reason is None]
    if MACHINE_CODE not in {m.variant for m in good} or not any(m.variant.is_candidate for m in good):
        return ()
    return tuple(Timed(m.variant, m.path, source.forbidden(m.candidate)) for m in good)
