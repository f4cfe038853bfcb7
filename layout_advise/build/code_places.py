"""The same mock-ups with their code at other places in memory: what a gain may hang on (``docs/decisions/0037``)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from layout_advise.build.mockups import Mockup
from layout_advise.build.policy import BUILD
from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.mockup.run.build import build
from layout_advise.mockup.timing.variants import Variant
from layout_advise.propose.recipes import Recipe

MOVED_BY = tuple(BUILD.code_step * k for k in (1, 2, 3))
"""How many bytes further into a cache line code lies than in a build of its own."""


def moved(items: Iterable[Mockup], compiler: str) -> dict[Variant, Path]:
    """Further builds of ``items`` (:attr:`~layout_advise.mockup.timing.variants.Variant.elsewhere`): one with the same
    source, two with its loads in another order, where there is one. What cannot be built is left out."""
    wanted = [
        (item, variant, by)
        for item in items
        if item.path is not None and item.same_as is None
        for variant, by in zip(item.recipe.variant.elsewhere, MOVED_BY, strict=True)
    ]
    with ThreadPoolExecutor(BUILD.jobs) as pool:
        built = list(pool.map(lambda one: _moved(one[0], one[1], one[2], compiler), wanted))
    return {variant: path for (_, variant, _), path in zip(wanted, built, strict=True) if path is not None}


def _moved(item: Mockup, variant: Variant, by: int, compiler: str) -> Path | None:
    assert item.path is not None
    text = item.source if item.late is None or variant.placement == 1 else item.late.source
    return build(text, item.path.with_name(f"{variant}.so"), compiler, item.flags, moved_by=by).path


def have_room(candidates: Iterable[Candidate]) -> bool:
    """Tells whether the data of all further builds of the mock-ups of ``candidates`` fits into half of the memory that is
    free: they are loaded into one process together."""
    wanted = sum(c.bytes for c in candidates) * len(MOVED_BY)
    return wanted <= os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def moved_identities(identities: Iterable[Mockup], compiler: str) -> dict[Variant, Mockup]:
    """The forms of the unchanged layout, likewise: where one runs like the original at one of the places, it is the same
    code."""
    items = {item.recipe.variant: item for item in identities}
    built = moved(items.values(), compiler)
    return {v: Mockup(Recipe(v, checked=False), items[v.own].source, path, None, None) for v, path in built.items()}
