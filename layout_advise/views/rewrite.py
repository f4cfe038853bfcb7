"""The whole rewriting of one file: from its parsed unit to the new text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from layout_advise.apply.rewrite.program import SourceProgram, peeled
from layout_advise.apply.rewrite.syntax import Edit, Syntax, TranslationUnit, applied
from layout_advise.errors import SourceError
from layout_advise.views import texts
from layout_advise.views.accesses import ConvertedMembers, Walked, converted
from layout_advise.views.annotations import LoopView, is_element_of, refused, views
from layout_advise.views.calls import Walker, check_steady
from layout_advise.views.names import variable_of
from layout_advise.views.offload import check_offload, offloaded


@dataclass(frozen=True, slots=True)
class Viewed:
    """The new text of a file, and the members of each of its views."""

    text: str
    views: tuple[tuple[LoopView, ConvertedMembers], ...]


def rewrite(unit: TranslationUnit, *, openmp: bool = False, timed: bool = False) -> Viewed:
    """The file of a translation unit with views around its annotated loops. With ``openmp`` members are converted by all
    threads; ``timed``: the program tells at its end what converting and computing took. Raises SourceError where a loop
    cannot be honoured."""
    program = SourceProgram([unit])
    path = unit.path.resolve()
    found = views(program, path)
    if not found:
        raise SourceError(f"{path} has no annotated loop", "", "put [[clang::soa_conversion]] before a for")
    walker = Walker(program, found)
    members: dict[LoopView, ConvertedMembers] = {}
    for view in sorted(found, key=lambda one: (one.region.start, -one.region.end)):
        check_steady(program, view)
        members[view] = converted(view, walker.region(view))
    edits = list(walker.walked.edits.get(None, ()))
    for view in found:
        if view.offload:
            check_offload(program, walker, view, found)
            edits += offloaded(program, view, members)
        else:
            edits += _of_loop(program, view)
    edits += _regions(program, found)
    edits += _declarations(program, path, members, walker.walked, openmp=openmp, timed=timed)
    edits.append(Edit(0, 0, texts.prelude(found, timed)))
    _check_apart(found, edits)
    return Viewed(applied(program.texts[path], edits), tuple((view, members[view]) for view in found))


def _of_loop(program: SourceProgram, view: LoopView) -> list[Edit]:
    """The attributes go; the container becomes the view."""
    edits = [Edit(view.start, view.loop.start, "")]
    name = variable_of(view.number)
    if view.variable is not None:
        held = view.loop.children[1]
        edits.append(Edit(view.variable.start, view.variable.name_at, "auto &&"))
        edits.append(Edit(held.start, held.end, name))
    else:
        for node in view.region.walk():
            if is_element_of(program, node, view.container):
                holder = peeled(node.children[0])
                edits.append(Edit(holder.start, holder.end, name))
    return edits


def _regions(program: SourceProgram, found: Iterable[LoopView]) -> list[Edit]:
    """The text before and behind each region; several views may have the same one."""
    starts = {view.loop: view.start for view in found}
    edits: dict[tuple[int, int], str] = {}
    for view in found:
        text = program.texts[view.region.file]
        at = _above_pragmas(text, starts.get(view.region, view.region.start))
        end = view.region.end
        if text[end : end + 1] == ";":  # of a body without braces
            end += 1
        edits[at, at] = edits.get((at, at), "") + texts.opening(view)
        edits[end, end] = edits.get((end, end), "") + " }"
    return [Edit(start, end, text) for (start, end), text in edits.items()]


def _above_pragmas(text: str, at: int) -> int:
    """The start of the pragmas that stand directly before a loop; ``at`` where there are none."""
    line = text.rfind("\n", 0, at) + 1
    if text[line:at].strip():
        return at
    while line > 0 and text[text.rfind("\n", 0, line - 1) + 1 : line].lstrip().startswith("#pragma"):
        line = at = text.rfind("\n", 0, line - 1) + 1
    return at


def _declarations(
    program: SourceProgram,
    path: Path,
    members: dict[LoopView, ConvertedMembers],
    walked: Walked,
    *,
    openmp: bool,
    timed: bool,
) -> list[Edit]:
    """Views' classes before the functions with their loops, copies of functions behind these."""
    edits: list[Edit] = []
    for view, converting in members.items():
        top = _at_namespace(program, view.loop)
        at = program.texts[path].rfind("\n", 0, top.start) + 1
        if program.texts[path][at : top.start].strip():
            at = top.start
        edits.append(Edit(at, at, texts.classes(program, view, converting, walked, openmp=openmp, timed=timed)))
    for copy, called in walked.copies.items():
        if copy.on:
            continue
        if called.file != path:
            raise refused(called, f"{called.name} takes an element and is defined in another file")
        top = _at_namespace(program, called)
        if any(view.loop.start < top.end for view in members):
            raise refused(called, f"{called.name} takes an element and is defined behind the loop; move it before")
        edits.append(Edit(top.end, top.end, f"\n{texts.function(program, called, walked, copy)}"))
        if "static" in program.texts[path][called.start : called.name_at].split():
            edits.append(Edit(called.start, called.start, "[[maybe_unused]] "))
    return list(dict.fromkeys(edits))


def _at_namespace(program: SourceProgram, node: Syntax) -> Syntax:
    """The declaration around a node that stands in a namespace."""
    up = program.parents.get(node)
    while up is not None and up.kind != "NAMESPACE":
        node, up = up, program.parents.get(up)
    return node


def _check_apart(found: Iterable[LoopView], edits: Iterable[Edit]) -> None:
    for one, other in pairwise(sorted(edits)):
        if other.start < one.end:
            raise refused(next(iter(found)).loop, f"two views want to change the same text ({other.text.strip()})")
