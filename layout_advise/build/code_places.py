"""The same mock-ups with their code at other places in memory: what a gain may hang on (``docs/decisions/0037``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from layout_advise.build.mockups import JOBS, Made
from layout_advise.build.recipes import Recipe
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.ir.data_branches import branches_on_data
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.code_placement import hot_loop
from layout_advise.mockup.timing.names import elsewhere
from layout_advise.observe.observe import Observation, is_beyond_the_l2

MOVED_BY = (16, 32, 48)
"""How many bytes further into a cache line code lies than in a build of its own: compilers align functions to 16."""


def hangs_on_place(seen: Observation, lifted: Lifted) -> bool:
    """Whether times hang on where the code lies: how well a processor predicts branches on data changes with their
    addresses, and how fast it fetches a short loop with where that begins in a cache line. Beyond the L2 it waits for the
    data instead."""
    return branches_on_data(lifted) or (not is_beyond_the_l2(seen) and hot_loop(seen.region, seen.trace) is not None)


def moved(items: Iterable[Made], compiler: str) -> dict[str, Path]:
    """Further builds of ``items``, by the names that :func:`~layout_advise.mockup.timing.names.elsewhere` gives: one with
    the same source, two with its loads in another order, where there is one. What cannot be built is left out."""
    wanted = [
        (item if item.late is None or k == 0 else replace(item, source=item.late.source), name, by)
        for item in items
        if item.mockup is not None and item.same_as is None
        for k, (name, by) in enumerate(zip(elsewhere(item.recipe.name), MOVED_BY, strict=True))
    ]
    with ThreadPoolExecutor(JOBS) as pool:
        built = list(pool.map(lambda one: _elsewhere(one[0], one[1], one[2], compiler), wanted))
    return {name: path for (_, name, _), path in zip(wanted, built, strict=True) if path is not None}


def have_room(candidates: Iterable[Candidate]) -> bool:
    """Whether the data of all further builds of the mock-ups of ``candidates`` fits into half of the memory that is free:
    they are loaded into one process together."""
    wanted = sum(r.bytes for c in candidates for r in c.relayouts) * len(MOVED_BY)
    return wanted <= os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def moved_identities(identities: Sequence[Made], compiler: str) -> tuple[Made, ...]:
    """The forms of the unchanged layout, likewise: where one runs like the original at one of the places, it is the same
    code."""
    built = moved(identities, compiler)
    return tuple(
        Made(Recipe(name, None, item.recipe.variant, checked=False), item.source, built[name], None, None)
        for item in identities
        for name in elsewhere(item.recipe.name)
        if name in built
    )


def _elsewhere(item: Made, name: str, by: int, compiler: str) -> Path | None:
    assert item.mockup is not None
    flags = (*item.flags, f"-fpatchable-function-entry={by}")
    return build(item.source, item.mockup.with_name(f"{name}.so"), compiler, flags).path
