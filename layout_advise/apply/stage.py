"""From a report to a patch that was built, run and timed."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layout_advise.apply import trees
from layout_advise.apply.formatted import format_changed
from layout_advise.apply.macros import Make, rewritten
from layout_advise.apply.rewrite.aligned import GIVEN
from layout_advise.apply.rewrite.arrays.dimensions import turned
from layout_advise.apply.rewrite.arrays.starts import begun
from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.program import definition
from layout_advise.apply.rewrite.rewrite import Rewritten, rewrite
from layout_advise.apply.rewrite.syntax import TranslationUnit
from layout_advise.apply.rewrite.target import Target, target
from layout_advise.apply.sources import SourceFile, aligns_new
from layout_advise.apply.timed import Achieved, Rounds, exactly, timed
from layout_advise.apply.trees import SourceTree
from layout_advise.errors import SourceError
from layout_advise.reports.model.wanted import WantedLayout, WantedRecord
from layout_advise.reports.model.wanted_arrays import WantedArray, WantedStart


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """The order: ``layout`` onto ``sources``, which lie in ``tree``. ``arguments`` are the program's; ``rounds`` 0: no
    timing, None: as many as it takes until the interval is as narrow as the predicted one."""

    layout: WantedLayout
    sources: tuple[SourceFile, ...]
    tree: SourceTree
    arguments: tuple[str, ...]
    rounds: int | None
    guard: bool = False


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome: a patch and the files that it changes (paths in the tree). ``ran``: built and run, with the same
    output. ``references``: for each record that is split the names of what stands for pointers to it. ``unformatted``: why
    a file is not formatted as the project asks for."""

    patch: str
    changed: tuple[Path, ...]
    texts: dict[Path, str]
    ran: bool
    achieved: Achieved | None
    references: tuple[tuple[str, ...], ...] = ()
    unformatted: str = ""


class RefusedSourceError(SourceError):
    """Places in the source stand in the way; ``places`` are lines ``file:line: why``."""

    def __init__(self, record: str, places: Sequence[str]) -> None:
        self.places = tuple(places)
        count = f"{len(places)} place{'s' if len(places) > 1 else ''}"
        super().__init__(f"{record} cannot be rewritten safely", f"{count}, the first is {places[0]}", "nothing was changed")


def apply(request: ApplyRequest, work: Path) -> Applied:
    """Rewrites a copy of the tree in ``work``, builds it and a copy of the original, compares their runs and times them.
    Raises SourceError where something cannot be rewritten or does not build, or where a run differs."""
    new = trees.copied(request.tree, work / "new")
    changed: set[Path] = set()
    references = []
    for record in request.layout.records:
        paths, layout = _rewritten(request, record, new)
        changed |= paths
        references += [(layout.ref, f"{layout.prefix}_ptr")] if layout.splits else []
    for array in request.layout.arrays:
        changed |= _placed(request, array, new)
    if not changed:
        raise SourceError("nothing to change", "the source has this layout already", "")
    unformatted = format_changed(request.tree, new, sorted(changed))
    patch = trees.patch(request.tree, new, sorted(changed))
    texts = {path: (new.root / path).read_bytes().decode("latin-1") for path in sorted(changed)}
    applied = Applied(patch, tuple(sorted(changed)), texts, False, None, tuple(references), unformatted)
    if not request.tree.build:
        return applied
    old = trees.copied(request.tree, work / "old")
    trees.built(old)
    trees.built(new)
    _compare(old, new, request.arguments)
    if request.rounds == 0:
        return replace(applied, ran=True)
    rounds = exactly(request.rounds) if request.rounds is not None else Rounds(width=_width(request.layout))
    achieved = timed(old, new, request.arguments, request.layout.hotspot.symbol, rounds, work)
    return replace(applied, ran=True, achieved=achieved)


def _width(layout: WantedLayout) -> float:
    """The predicted interval's upper end over its lower one."""
    predicted = layout.candidate.predicted
    return predicted.hi / predicted.lo if predicted is not None and predicted.lo > 0 else math.inf


def _moved(one: SourceFile, tree: SourceTree, new: SourceTree) -> SourceFile:
    """The unit in the copy of its tree."""
    old, to = str(tree.root), str(new.root)
    flags = tuple(flag.replace(old, to) for flag in one.flags)
    path, folder = (Path(str(place).replace(old, to, 1)) for place in (one.path, one.folder))
    return SourceFile(path, flags, folder, one.compiler)


def _rewritten(request: ApplyRequest, record: WantedRecord, new: SourceTree) -> tuple[set[Path], Target]:
    """Rewrites the units in the copy for one record; returns the paths of what changed, and what was written."""
    layouts: list[Target] = []

    def make(units: Sequence[TranslationUnit]) -> Rewritten:
        found = definition(units, record.type)
        if new.root not in found.file.parents:
            raise SourceError(
                f"cannot rewrite {record.type}",
                f"{found.file} is not in {request.tree.root}",
                "name the tree with --sources",
            )
        taken = "\n".join(_texts(units))
        layouts.append(
            target(
                found,
                record.groups,
                taken,
                record.blocks,
                ordered=record.ordered,
                padded=record.padded,
                pooled=record.pooled,
                apart=record.apart,
            )
        )
        if layouts[-1].aligned > GIVEN:
            _check_new(request.sources, record.type)
        return rewrite(units, found, layouts[-1], guard=request.guard)

    try:
        return _put(request, record.type, new, make), layouts[-1]
    except RefusedSourceError as error:  # as the source spells it
        raise RefusedSourceError(layouts[-1].spelling, error.places) from None


def _placed(request: ApplyRequest, array: WantedArray | WantedStart, new: SourceTree) -> set[Path]:
    """Rewrites the units in the copy for one array whose dimensions change, or that begins elsewhere; returns the paths of
    what changed."""

    def make(units: Sequence[TranslationUnit]) -> Rewritten:
        if isinstance(array, WantedStart):
            return begun(units, array.name, array.site)
        return turned(units, array.name, array.lengths, array.order)

    return _put(request, array.name, new, make)


def _put(request: ApplyRequest, name: str, new: SourceTree, make: Make) -> set[Path]:
    """Puts into the copy what ``make`` makes of its units, for what is called ``name``; returns the paths that changed."""
    moved = [_moved(one, request.tree, new) for one in request.sources]
    done = rewritten(moved, new.root, make)
    if done.refusals:
        places = [f"{_shown(r.file, request.tree, new)}:{r.line}: {r.why}" for r in done.refusals]
        raise RefusedSourceError(name, places)
    for path, text in done.texts.items():
        if new.root not in path.parents:
            hint = "name the tree with --sources"
            raise SourceError(f"cannot rewrite {name}", f"{path} is not in {request.tree.root}", hint)
        path.write_bytes(text.encode("latin-1"))
    for one in moved:
        parse(one.path, one.flags, one.folder)
    return {path.relative_to(new.root) for path in done.texts}


def _check_new(sources: Sequence[SourceFile], name: str) -> None:
    """Raises SourceError where ``new`` does not align elements in one of the units."""
    old = next((one.path.name for one in sources if one.path.suffix != ".c" and not aligns_new(one)), None)
    if old is not None:
        why = f"{old} is compiled as C++ before 17, whose new does not align elements"
        raise SourceError(f"cannot rewrite {name}", why, "compile it with -std=c++17")


def _texts(units: Sequence[TranslationUnit]) -> list[str]:
    return [text for unit in units for text in unit.texts.values()]


def _shown(path: Path, tree: SourceTree, new: SourceTree) -> Path:
    return tree.root / path.relative_to(new.root) if new.root in path.parents else path


def _compare(old: SourceTree, new: SourceTree, arguments: Sequence[str]) -> None:
    first = trees.run(old, arguments)
    if differs := trees.difference(first, trees.run(old, arguments)):
        raise SourceError(
            "the program's output differs from run to run", differs, "give it a fixed seed and no times to print"
        )
    if differs := trees.difference(first, trees.run(new, arguments)):
        raise SourceError("the changed program does something else", differs, "nothing was changed")


def written(applied: Applied, root: Path) -> None:
    """Puts the new texts in the place of the old ones."""
    for path, text in applied.texts.items():
        beside = (root / path).with_name(f".{path.name}.new")
        beside.write_bytes(text.encode("latin-1"))
        shutil.copymode(root / path, beside)
        beside.replace(root / path)
