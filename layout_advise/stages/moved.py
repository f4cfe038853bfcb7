"""The same mock-ups with their code at other places in memory: what a gain may hang on (``docs/decisions/0037``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from layout_advise.mockup.build import build
from layout_advise.mockup.databranches import branches_on_data
from layout_advise.mockup.lifted import Lifted
from layout_advise.mockup.timings import IDENTITY_MOVED, LAYOUT_MOVED
from layout_advise.stages.mockups import Made, Recipe

MOVED_BY = (16, 32, 48)
"""How many bytes further into a cache line code lies than in a build of its own alignment. Compilers align loops to 16."""
ALIGNED = ("-falign-functions=64", "-falign-loops=16")


def moved(lifted: Lifted, layout: Made, identity: Made, compiler: str) -> dict[str, Path]:
    """Further builds of the best layout and of the identity, by name, where the hotspot's way hangs on its data. How well a
    processor predicts that changes with the addresses of the branches. What cannot be built is left out."""
    if not branches_on_data(lifted):
        return {}
    return _elsewhere(LAYOUT_MOVED, layout, compiler) | _elsewhere(IDENTITY_MOVED, identity, compiler)


def moved_identities(lifted: Lifted, identity: Made, compiler: str) -> tuple[Made, ...]:
    """The identity alone, likewise: where it runs like the original at one of the places, it is the same code."""
    if not branches_on_data(lifted):
        return ()
    built = _elsewhere(IDENTITY_MOVED, identity, compiler)
    return tuple(
        Made(Recipe(name, None, "plain", checked=False), identity.source, path, None, None) for name, path in built.items()
    )


def _elsewhere(names: Sequence[str], item: Made, compiler: str) -> dict[str, Path]:
    found = {}
    for name, by in zip(names, MOVED_BY, strict=True):
        if item.mockup is None:
            continue
        flags = (*item.flags, *ALIGNED, f"-fpatchable-function-entry={by}")
        result = build(item.source, item.mockup.with_name(f"{name}.so"), compiler, flags)
        if result.path is not None:
            found[name] = result.path
    return found
