"""Structures of which one call uses an irregular part, at most one of each few neighbours: which elements these are.

They are found anew at every call that is compared: the sites of one parity at this call are the others at the next one.
A permanent layout stores the elements by class, so the calls' choices have to fit one division into classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from layout_advise import machine
from layout_advise.layoutalgebra.derive.chosen_elements import (
    agree,
    choose,
    choose_by,
    filled_blocks,
    in_one_run,
    used_elements,
)
from layout_advise.layoutalgebra.derive.structure import Candidate, Chosen, Relayout
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.observe.observe import Observation

if TYPE_CHECKING:
    from layout_advise.layoutalgebra.derive.chosen_elements import Grid


Key = TypeVar("Key")
LINE, PAGE = 64, 4096
"""Bytes of a cache line and of a memory page."""


def select(seen: Observation, lifted: Lifted) -> Observation:
    """``seen`` with the used part, and the choice where there is one, of the structures reached through a loaded index."""
    grids = dict(_grids(seen, lifted, seen.indexed))
    parts = {name: float(grid.mean()) for name, grid in grids.items()}
    found = {name: choice for name, grid in grids.items() if (choice := choose(grid)) is not None}
    runs = frozenset(name for name, grid in grids.items() if in_one_run(grid))
    where = {s.id: (s.base, s.element_bytes) for s in seen.structures}
    filled = {name: _filled(grid, *where[name]) for name, grid in grids.items()}
    return replace(seen, used_part=parts, chosen=found, runs=runs, filled=filled)


def _filled(used: Grid, base: int, element_bytes: int) -> float:
    """The part of their cache lines that used elements fill; of their pages, where the L2 does not hold all of these: an
    array in a large block that an allocator of the program's own gives out has few pages, whatever lies between."""
    lines, _ = filled_blocks(used, base, element_bytes, LINE)
    pages, count = filled_blocks(used, base, element_bytes, PAGE)
    return lines if count * PAGE <= machine.caches().get((2, "Unified"), 0) else pages


def _grids(seen: Observation, lifted: Lifted, names: frozenset[str]) -> Iterator[tuple[str, Grid]]:
    """The used elements of structures, from all their streams; not of those that are not known exactly."""
    if seen.trace.truncated:
        return
    binding = bind(lifted, seen.trace, seen.structures)
    for structure in seen.structures:
        if structure.id not in names or structure.id in binding.impossible:
            continue
        keys = binding.keys_of(structure.id)
        accesses = [(binding.stream_in(key, structure.id), binding.reference_of[key].bytes) for key in keys]
        used = used_elements(structure, accesses)
        if used is not None:
            yield structure.id, used


def chooses(candidate: Candidate | None) -> bool:
    """Tells whether a candidate stores chosen elements of some structure."""
    return candidate is not None and any(r.chosen is not None for r in candidate.relayouts)


def choices_at(candidates: Mapping[Key, Candidate], now: Observation, lifted: Lifted) -> dict[Key, Candidate | str]:
    """Candidates with the choices of another call, whose observation ``now`` is with their structures; or the reason why
    a candidate is none at that call."""
    names = frozenset(r.structure.id for c in candidates.values() for r in c.relayouts if r.chosen is not None)
    grids = dict(_grids(now, lifted, names)) if names else {}
    return {key: _choice_at(candidate, grids) for key, candidate in candidates.items()}


def _choice_at(candidate: Candidate, grids: Mapping[str, Grid]) -> Candidate | str:
    layouts: list[Relayout] = []
    for layout in candidate.relayouts:
        old, name = layout.chosen, layout.structure.name
        if old is None:
            layouts.append(layout)
            continue
        grid = grids.get(layout.structure.id)
        new: Chosen | None = choose_by(grid, old.dim, old.block) if grid is not None else None
        if new is None:
            return f"this call uses several of {old.block} neighbouring elements of {name}, or which ones is not known"
        if not candidate.temporary and not agree(old, new, layout.structure.dims[old.dim].count):
            return f"this call uses elements of {name} that no permanent division into classes keeps together"
        layouts.append(replace(layout, chosen=new))
    return replace(candidate, relayouts=tuple(layouts))
