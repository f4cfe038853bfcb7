"""The region's own machine code on other layouts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from layout_advise.build.policy import BUILD
from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.evidence.binding import bind_references
from layout_advise.mockup.evidence.prefetched import prefetched
from layout_advise.mockup.readdressed.image import CodeImage, build_image
from layout_advise.mockup.readdressed.moves import Moves, moves_of, unmoved
from layout_advise.mockup.readdressed.source import emit_code
from layout_advise.mockup.run.build import build
from layout_advise.mockup.timing.variants import MACHINE_CODE, Variant, machine_code, machine_code_moved, machine_code_twice
from layout_advise.propose.recipes import reindexed
from layout_advise.propose.source import Source
from layout_advise.tracer.backends.clone.address import CLONE_ROOM, choose_address
from layout_advise.tracer.code.region import Region

_BESIDE = 1 << 16
"""Images begin at multiples of this, one after the other."""
_OPTIONS = ("-O2",)
_SHIFTS = (0, BUILD.code_step)
"""Distances in a line of its loops from the original's: one build for each."""


@dataclass(frozen=True, slots=True)
class CodeMockup:
    """Machine code on the layout of ``candidate``, which has no layouts where nothing is moved."""

    variant: Variant
    path: Path
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class MachineCode:
    """All that was built; ``reasons`` say of the other candidates why there is none."""

    mockups: Sequence[CodeMockup]
    reasons: Mapping[str, str]


Wanted = tuple[Sequence[Variant], Moves]
"""What is to be built: names, and what moves."""


@dataclass(frozen=True, slots=True)
class _Image:
    variant: Variant
    moves: Moves
    code: CodeImage


def build_machine_code(region: Region, source: Source, candidates: Iterable[Candidate], folder: Path) -> MachineCode:
    """Builds those of ``candidates`` for which each access of the traced call is a move, also with the work on addresses
    done twice; the unchanged layout of the same structures in memory of their own; and the code with nothing moved. C
    sources go to ``folder``."""
    wanted: list[Wanted] = [((MACHINE_CODE,), unmoved(source.trace))]
    reasons: dict[str, str] = {}
    hints = prefetched(source.lifted, bind_references(source.trace, source.structures))
    for candidate in candidates:
        try:
            moves = moves_of(candidate, source.trace, source.structures, hints)
        except LayoutAdviseError as error:
            reasons[candidate.id] = source.told(error.line())
        else:
            wanted.append(((machine_code(candidate.id), machine_code_twice(candidate.id)), moves))
            wanted += _moved(source, candidate, hints, {names for names, _ in wanted})
    found = build_codes(region, source, wanted, folder)
    return MachineCode(found.mockups, {**reasons, **found.reasons})


def _moved(
    source: Source, candidate: Candidate, hints: Mapping[int, str], known: Collection[Sequence[Variant]]
) -> Iterator[Wanted]:
    """The unchanged layout of the candidate's structures in memory of their own, where it is not ``known``."""
    ids = {relayout.structure.id for relayout in candidate.relayouts}
    names, through = (machine_code_moved(ids),), reindexed(source.structures, ids).through
    if names in known or through is None:
        return
    try:
        yield names, moves_of(through, source.trace, source.structures, hints)
    except LayoutAdviseError:  # it is a control: without it the work done twice alone tells what addresses take
        return


def build_codes(region: Region, source: Source, wanted: Sequence[Wanted], folder: Path) -> MachineCode:
    """Builds the code of ``region`` with these moves under these names, each with its loops at two places in a line. Nothing
    is built of what several threads run, or of code that cannot be copied."""
    at = _first_place(region, source) if source.team is None else None
    if at is None:
        return MachineCode((), {})
    end, images, reasons = at + CLONE_ROOM, list[_Image](), dict[str, str]()
    for forms, moves in wanted:
        try:
            made = _images(region, moves, at, forms)
        except LayoutAdviseError as error:
            reasons[moves.candidate.id] = source.told(error.line())
            continue
        at = made[-1].code.address + _room(made[-1].code)
        if at <= end:
            images += made
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(BUILD.jobs) as pool:
        paths = list(pool.map(lambda one: _compiled(one, region.symbol, source, folder), images))
    built = [
        CodeMockup(i.variant, path, i.moves.candidate) for i, path in zip(images, paths, strict=True) if path is not None
    ]
    return MachineCode(built, reasons)


def _first_place(region: Region, source: Source) -> int | None:
    try:
        return choose_address(source.trace.mappings, region.entry)
    except LayoutAdviseError:
        return None


def _images(region: Region, moves: Moves, at: int, forms: Sequence[Variant]) -> list[_Image]:
    """The builds of one layout, one after the other in memory."""
    found = []
    for variant in forms:
        for place, shift in zip((variant, *variant.elsewhere), _SHIFTS, strict=False):
            code = build_image(region, moves, at, shift=shift, twice=variant.form == "machine-twice")
            at += _room(code)
            found.append(_Image(place, moves, code))
    return found


def _room(code: CodeImage) -> int:
    return -(-len(code.image) // _BESIDE) * _BESIDE


def _compiled(one: _Image, symbol: str, source: Source, folder: Path) -> Path | None:
    target = (folder / f"{one.variant}.so").resolve()
    file = target.with_suffix(".image")
    file.write_bytes(one.code.image)
    try:
        text = emit_code(symbol, one.moves, one.code, file, put=bool(source.put))
        return build(text, target, source.compiler.executable, _OPTIONS).path
    finally:
        file.unlink(missing_ok=True)
