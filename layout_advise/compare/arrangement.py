"""A layout that was tried in one run, recognised in the structures of another: which members lie together, in blocks of how
many elements."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.reports.model.candidate import CandidateReport
from layout_advise.reports.model.structure import StructureReport


@dataclass(frozen=True, slots=True)
class Arranged:
    """The place of one member: the structure that holds it, and how many elements of it lie side by side there."""

    structure: str
    block: int


@dataclass(frozen=True, slots=True)
class Recognised:
    """A candidate whose groups of members are those of the structures; ``rest`` are members that it leaves out and that lie
    between them."""

    candidate: CandidateReport
    rest: tuple[str, ...]


def recognised(candidates: Sequence[CandidateReport], structures: Sequence[StructureReport]) -> Recognised | None:
    """The first of the candidates that the structures are laid out as; those without rest come first."""
    found = [one for candidate in candidates if (one := _as(candidate, structures)) is not None]
    return min(found, key=lambda one: len(one.rest), default=None)


def places(structures: Sequence[StructureReport]) -> dict[str, Arranged]:
    """Members by name: ``vx`` of ``vx[0]`` to ``vx[3]`` in a record lies in blocks of four, ``vx`` of the plain array
    ``p.vx`` in an array of its own. A name that occurs twice tells nothing."""
    found: dict[str, list[Arranged]] = {}
    for one in structures:
        names = [field.name for field in (*one.fields, *one.cold_fields)]
        if names == ["value"]:
            found.setdefault(re.split(r"\W", one.name)[-1], []).append(Arranged(one.id, 1))
            continue
        indices: dict[str, list[int]] = {}
        for name in names:
            found.setdefault(name, []).append(Arranged(one.id, 1))
            if part := re.fullmatch(r"(.*)\[(\d+)\]", name):
                indices.setdefault(part[1], []).append(int(part[2]))
        for name, numbers in indices.items():
            if sorted(numbers) == list(range(len(numbers))) and name not in names:
                found.setdefault(name, []).append(Arranged(one.id, len(numbers)))
    return {name: each[0] for name, each in found.items() if len(each) == 1}


def _as(candidate: CandidateReport, structures: Sequence[StructureReport]) -> Recognised | None:
    """The candidate, where each of its arrays is one structure here, with the same members side by side."""
    known = places(structures)
    wanted = [tuple(name.split(".")[-1] for name in group) for group in candidate.arrays]
    if candidate.temporary or candidate.classes is not None or not wanted:
        return None
    if any(name not in known for group in wanted for name in group):
        return None
    block = candidate.block or 1
    lengths = [length or 1 for length in candidate.blocks] or [block] * len(wanted)
    holders = []
    for group, length in zip(wanted, lengths, strict=True):
        held = {known[name] for name in group}
        if len(held) != 1 or (one := next(iter(held))).block != length:
            return None
        holders.append(one.structure)
    if len(set(holders)) != len(holders):
        return None
    moved = {name for group in wanted for name in group}
    here = {name for name, place in known.items() if place.structure in holders and name not in moved}
    # a member and the elements of the block that it is stored in are one thing under two names
    rest = sorted(name for name in here if _array_of(name) not in known and not any(_array_of(m) == name for m in moved))
    if rest and block == 1:
        return None  # members that are not used lie between those that are: that is the layout before
    return Recognised(candidate, tuple(rest))


def _array_of(name: str) -> str:
    """The array that a name is an element of: ``x`` of ``x[3]``, empty for others."""
    part = re.fullmatch(r"(.*)\[\d+\]", name)
    return part[1] if part else ""
