"""Annotations that a run proposes: the loops of a region over the structures that its temporary layout converts, and before
which loop around them the conversion may stand."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.rewrite.program import SourceProgram, peeled
from layout_advise.apply.rewrite.syntax import CType, Edit, Syntax, TranslationUnit, applied
from layout_advise.errors import SourceError
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.contract import Report
from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.views.annotations import FUNCTIONS, LOOPS
from layout_advise.views.rewrite import Viewed, rewrite

MOST_HOISTED = 4
"""Loops around an annotated one that are tried at most."""


@dataclass(frozen=True, slots=True)
class ViewedRegion:
    """A region with the layout that is converted around its calls."""

    hotspot: HotspotReport
    candidate: CandidateReport

    @property
    def types(self) -> frozenset[str]:
        """The names of the records that are converted."""
        used = (one for one in self.hotspot.structures if one.id in self.candidate.structures)
        return frozenset(_bare(one.type) for one in used if one.type)


@dataclass(frozen=True, slots=True)
class AnnotatedSource:
    """The file's text with annotations, and the views that they make. ``refused``: loops that take none, with the reason."""

    text: str
    viewed: Viewed
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop that may be annotated; ``target`` is empty for a range-based one."""

    node: Syntax
    target: str
    around: int


def regions_of(report: Report, path: Path, wanted: str | None = None) -> tuple[ViewedRegion, ...]:
    """The regions of ``path`` with the layout that pays although it is converted around each call, or the layout that is
    ``wanted``. Raises SourceError where there is none."""
    here = [one for one in report.hotspots if one.file is not None and Path(one.file).name == path.name]
    if not here:
        raise SourceError(f"no region of the run is in {path.name}", "", "give the file that a region's loop is in")
    found = [ViewedRegion(one, best) for one in here if (best := _layout(one, wanted)) is not None]
    if not found:
        why = f"{wanted} is no layout of one" if wanted else "no layout gains where it is converted around each call"
        raise SourceError(
            f"no temporary layout for {path.name}", why, "trace with --temporary, or name one with --candidate"
        )
    return tuple(found)


def _layout(hotspot: HotspotReport, wanted: str | None) -> CandidateReport | None:
    if wanted is not None:
        return next((one for one in hotspot.candidates if one.id == wanted), None)
    advised = next((one for one in hotspot.candidates if one.id == hotspot.verdict.candidate), None)
    if advised is None or hotspot.verdict.action != "change":
        return None
    return advised if advised.temporary or hotspot.verdict.use == "temporary" else None


def annotated(unit: TranslationUnit, regions: Sequence[ViewedRegion], flags: Sequence[str], folder: Path) -> AnnotatedSource:
    """The file of a unit with an annotation before each loop over the regions' structures that can be honoured, hoisted as
    far as it can be. Raises SourceError where no loop takes one."""
    program, path = SourceProgram([unit]), unit.path.resolve()
    loops = [loop for region in regions for loop in _loops(program, path, region)]
    text, edits, refused = program.texts[path], list[Edit](), list[str]()
    viewed: Viewed | None = None
    for loop in sorted(set(loops), key=lambda one: (one.node.start, one.target)):
        why = ""
        for depth in range(min(loop.around, MOST_HOISTED), -1, -1):
            more = [*edits, _annotation(text, loop, depth)]
            try:
                viewed = _honoured(applied(text, more), path, flags, folder)
            except SourceError as error:
                why = error.why
                continue
            edits = more
            break
        else:
            refused.append(f"{path.name}:{loop.node.line}: {why}")
    if viewed is None or not edits:
        names = ", ".join(sorted(name for region in regions for name in region.types)) or "structures"
        raise SourceError(f"no loop over {names} in {path.name} can be annotated", "; ".join(refused), "nothing was written")
    return AnnotatedSource(applied(text, edits), viewed, tuple(refused))


def _honoured(text: str, path: Path, flags: Sequence[str], folder: Path) -> Viewed:
    with tempfile.TemporaryDirectory(prefix="layout-advise-") as work:
        new = Path(work) / path.name
        new.write_bytes(text.encode("latin-1"))
        return rewrite(parse(new, (*flags, "-iquote", str(path.parent)), folder))


def _annotation(text: str, loop: _Loop, depth: int) -> Edit:
    """The attributes before a loop, on a line of their own, behind those that are there."""
    words = ["[[clang::soa_conversion]]"] if not loop.target else [f'[[clang::soa_conversion_target("{loop.target}")]]']
    words += [f"[[clang::soa_conversion_hoist({depth})]]"] if depth else []
    at = loop.node.start
    line = text.rfind("\n", 0, at) + 1
    indent = text[line:at] if not text[line:at].strip() else " "
    return Edit(at, at, f"{' '.join(words)}{chr(10) if indent.strip(' ') == '' and indent != ' ' else ''}{indent}")


def _loops(program: SourceProgram, path: Path, region: ViewedRegion) -> Iterator[_Loop]:
    """The loops over elements of the region's types, in its function: range-based ones, and of others the innermost with
    ``container[...]``."""
    for function in _functions(program, path, region.hotspot):
        for node in function.walk():
            if node.file != path or node.in_macro:
                continue
            if node.kind == "CXX_FOR_RANGE_STMT" and _is_of(node.children[0].shape, region.types):
                yield _Loop(node, "", len(_around(program, node, lambda kind: kind in LOOPS)))
            elif (holder := _subscripted(node, region.types)) is not None:
                loops = _around(program, node, lambda kind: kind in LOOPS)
                if loops and loops[0].kind != "CXX_FOR_RANGE_STMT":
                    yield _Loop(loops[0], program.text(holder), len(loops) - 1)


def _functions(program: SourceProgram, path: Path, hotspot: HotspotReport) -> list[Syntax]:
    """The function of a region: the one of its name, else that around its line."""
    every = [
        f for unit in program.units for top in unit.declarations for f in top.walk() if f.kind in FUNCTIONS and f.defines
    ]
    own = [function for function in every if function.file == path]
    name = re.split(r"[(<]", hotspot.name or hotspot.symbol)[0].split("::")[-1].split(".")[0]
    named = [function for function in own if function.name == name]
    if named or hotspot.line is None:
        return named
    text = program.texts[path]
    at = sum(len(line) + 1 for line in text.split("\n")[: hotspot.line - 1])
    return [
        function for function in own if function.start <= at + len(text.split("\n")[hotspot.line - 1]) <= function.end + 1
    ]


def _around(program: SourceProgram, node: Syntax, wanted: Callable[[str], bool]) -> list[Syntax]:
    """The nodes of wanted kinds around one within its function, the nearest first."""
    found = []
    up = program.parents.get(node)
    while up is not None and up.kind not in FUNCTIONS:
        if wanted(up.kind):
            found.append(up)
        up = program.parents.get(up)
    return found


def _subscripted(node: Syntax, types: frozenset[str]) -> Syntax | None:
    """The container of ``container[k]``, where that is an element of such a type, or a pointer to one."""
    if node.kind == "ARRAY_SUBSCRIPT_EXPR" or (node.kind == "CALL_EXPR" and node.name == "operator[]"):
        return peeled(node.children[0]) if _is_of(node.shape, types) else None
    return None


def _is_of(shape: CType, types: frozenset[str]) -> bool:
    for _ in range(2):
        if shape.form in ("pointer", "reference") and shape.of is not None:
            shape = shape.of
    return shape.form == "record" and _bare(shape.text) in types


def _bare(name: str | None) -> str:
    """A type's name without qualifiers, keywords and namespaces."""
    return re.sub(r"\b(?:const|struct|class)\b", "", name or "").strip().split("::")[-1]
