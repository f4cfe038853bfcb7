"""Which layouts are worth measuring, of the structures that the hotspot touches."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from layout_advise import machine
from layout_advise.build.build_and_compare import code_of
from layout_advise.build.recipes import Recipe
from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.remap.plan import plan
from layout_advise.observe.observe import Observation, density


def refused(seen: Observation, lifted: Lifted) -> frozenset[str]:
    """Ids of the structures whose layouts the lifted code cannot be re-indexed for, where several could be re-laid together:
    one that cannot would keep the others from being measured."""
    alone = propose(replace(seen, exchanged=()), 1000)
    first = {one.relayouts[0].structure.id: one for one in alone if len(one.relayouts) == 1}
    if len(first) < 2:
        return frozenset()
    code, found = code_of(seen, lifted), set()
    for name, candidate in first.items():
        form, trace = code.of(Recipe(name, candidate, "plain"), seen.trace, seen.structures)
        try:
            plan(form, candidate, bind(form, trace, seen.structures))
        except RemapError:
            found.add(name)
    return frozenset(found)


def propose(seen: Observation, budget: int, refused: Collection[str] = ()) -> tuple[Candidate, ...]:
    """Candidate layouts of what was seen, best under the model first, at most ``budget``."""
    walks = {
        d.structure.id: Walk(
            d.fastest,
            d.gathered,
            density(seen, d),
            seen.chosen.get(d.structure.id),
            (d.structure.block_base or d.structure.base) in seen.met,
        )
        for d in seen.derived
    }
    lanes = machine.vector_bytes()
    return explore(seen.structures, lanes=lanes, budget=budget, walks=walks, refused=refused, exchanged=seen.exchanged)[
        :budget
    ]
