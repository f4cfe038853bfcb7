"""From a report to what is to be done to an array as a whole: the order of its dimensions, or where it begins."""

from __future__ import annotations

import re
from dataclasses import dataclass

from layout_advise.errors import SourceError
from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.structure import StructureReport

LENGTH, TERM = re.compile(r"\b([i-n]) < (\d+)"), re.compile(r"(?:(\d+)\*)?([i-n])")
HINT = "choose another one with --candidate"


@dataclass(frozen=True, slots=True)
class WantedArray:
    """An array of numbers by its name, the lengths of its dimensions as far as they are used, and their new order: dimension
    ``order[k]`` becomes number ``k``, outermost first."""

    name: str
    lengths: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WantedStart:
    """An array that is to begin with a cache line: the variable ``name``, or, where ``site`` is not empty, what is allocated
    there (``file:line``)."""

    name: str
    site: str = ""


def array_of(structure: StructureReport, candidate: CandidateReport) -> WantedArray:
    """The order of the dimensions, as the index map of its numbers says. Raises SourceError where it is another map."""
    maps = [part.index_map for part in candidate.parts if part.structure == structure.id]
    place, _, legend = maps[0].partition(" of ") if len(maps) == 1 else ("", "", "")
    dims = {letter: int(length) for letter, length in LENGTH.findall(legend)}
    terms = [TERM.fullmatch(term) for term in place.removeprefix("byte = ").split(" + ")]
    steps = {term[2]: int(term[1] or 1) for term in terms if term}
    if len(structure.fields) != 1 or not all(terms) or steps.keys() != dims.keys():
        why = f"{structure.name} is no array of numbers with its dimensions in another order"
        raise SourceError(f"cannot write {candidate.id}", why, HINT)
    outer = sorted(steps, key=lambda letter: -steps[letter])
    return WantedArray(structure.name, tuple(dims.values()), tuple(list(dims).index(letter) for letter in outer))


def start_of(structure: StructureReport, candidate: CandidateReport) -> WantedStart:
    """The variable, or where it is allocated. Raises SourceError where neither is known."""
    if structure.kind in ("global", "stack"):
        return WantedStart(structure.name)
    if structure.kind == "heap" and structure.alloc_site:
        return WantedStart(structure.name, structure.alloc_site)
    raise SourceError(f"cannot write {candidate.id}", f"it is not known where {structure.name} is allocated", HINT)


def shown_array(array: WantedArray | WantedStart) -> str:
    """The new place of an element: ``grid[j][i] for grid[i][j]``; or where the array begins."""
    if isinstance(array, WantedStart):
        site = f", allocated at {array.site}," if array.site else ""
        return f"{array.name}{site} from the start of a cache line on"
    old = [f"[{'ijklmn'[k]}]" for k in range(len(array.order))]
    return f"{array.name}{''.join(old[k] for k in array.order)} for {array.name}{''.join(old)}"
