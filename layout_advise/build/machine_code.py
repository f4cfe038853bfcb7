"""The region's own machine code on other layouts, and on the unchanged one reached in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from layout_advise.build.policy import BUILD
from layout_advise.errors import LayoutAdviseError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.evidence.binding import Key
from layout_advise.mockup.readdressed.arithmetic import AddressForm, arithmetic_of
from layout_advise.mockup.readdressed.image import CodeImage, build_image
from layout_advise.mockup.readdressed.moves import Moves, moves_of
from layout_advise.mockup.readdressed.source import emit_code
from layout_advise.mockup.run.build import build
from layout_advise.mockup.timing.variants import Variant, machine_code, machine_code_beside
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
    """Machine code on a layout, of an unchanged one that stands beside ``candidate``'s too."""

    variant: Variant
    path: Path
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class MachineCode:
    """All that was built; ``twins`` are the builds of the unchanged layout by the variants that are held against them, and
    ``reasons`` say of the other candidates why there is none."""

    mockups: Sequence[CodeMockup]
    twins: Mapping[Variant, Variant]
    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Wanted:
    variant: Variant
    moves: Moves
    least: Mapping[Key, AddressForm]


def build_machine_code(region: Region, source: Source, candidates: Iterable[Candidate], folder: Path) -> MachineCode:
    """Builds those of ``candidates`` for which each access of the traced call is a move, and the unchanged layouts beside
    them, each with its loops at two places in a line; C sources go to ``folder``."""
    moved: dict[str, Moves] = {}
    reasons: dict[str, str] = {}
    for candidate in candidates:
        try:
            if source.team is not None:
                raise LayoutAdviseError("several threads run it")
            moved[candidate.id] = moves_of(candidate, source.trace, source.structures)
        except LayoutAdviseError as error:
            reasons[candidate.id] = source.told(error.line())
    wanted, twins = [_Wanted(machine_code(name), one, {}) for name, one in moved.items()], dict[Variant, Variant]()
    known: dict[object, Variant] = {}
    for name, one in moved.items():
        forms = {key: how.form for key, how in arithmetic_of(one.of).items()}
        structures = frozenset(r.structure.id for r in one.candidate.relayouts)
        alike = structures, tuple(sorted(forms.items()))
        if alike not in known:
            known[alike] = machine_code_beside(name)
            wanted.append(_Wanted(known[alike], _unchanged(structures, source), forms))
        twins[machine_code(name)] = known[alike]
    return MachineCode(_built(wanted, region, source, folder, reasons), twins, reasons)


def _unchanged(structures: frozenset[str], source: Source) -> Moves:
    """The moves of the unchanged layout of these structures to memory of its own."""
    through = reindexed(source.structures, structures).through
    assert through is not None
    return moves_of(through, source.trace, source.structures)


def _built(
    wanted: Sequence[_Wanted], region: Region, source: Source, folder: Path, reasons: dict[str, str]
) -> list[CodeMockup]:
    folder.mkdir(parents=True, exist_ok=True)
    made: list[tuple[Variant, Moves, CodeImage]] = []
    try:
        start = at = choose_address(source.trace.mappings, region.entry)
    except LayoutAdviseError as error:
        reasons |= {one.variant.layout: error.line() for one in wanted if one.variant.is_candidate}
        return []
    for one in wanted:
        for variant, shift in zip((one.variant, *one.variant.elsewhere), _SHIFTS, strict=False):
            try:
                image = build_image(region, one.moves, arithmetic_of(one.moves.of, one.least), at, shift)
            except LayoutAdviseError as error:
                if variant.is_candidate:
                    reasons[variant.layout] = source.told(error.line())
                break
            at += -(-len(image.image) // _BESIDE) * _BESIDE
            if at > start + CLONE_ROOM:
                break
            made.append((variant, one.moves, image))
    with ThreadPoolExecutor(BUILD.jobs) as pool:
        paths = list(pool.map(lambda one: _compiled(one[0], one[1], one[2], region.symbol, source, folder), made))
    return [CodeMockup(v, path, m.candidate) for (v, m, _), path in zip(made, paths, strict=True) if path is not None]


def _compiled(variant: Variant, moves: Moves, image: CodeImage, symbol: str, source: Source, folder: Path) -> Path | None:
    target = (folder / f"{variant}.so").resolve()
    file = target.with_suffix(".image")
    file.write_bytes(image.image)
    try:
        text = emit_code(symbol, moves, image, file, put=bool(source.put))
        return build(text, target, source.compiler.executable, _OPTIONS).path
    finally:
        file.unlink(missing_ok=True)
