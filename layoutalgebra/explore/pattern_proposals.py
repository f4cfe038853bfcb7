"""Layouts that the paper's patterns lead to: ``* ⊗ A_v`` for vectors of v, ``* ⊗ A_v ⊗ S_2`` for vectors of complex numbers.

The families (:mod:`layout_advise.layoutalgebra.explore.families`) split the last dimension only, and leave every field by
itself in a block. The wide search has the other layouts that match; at most one for each pattern is proposed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.explore.cost_model import Walk
from layout_advise.layoutalgebra.explore.families import HALF, Proposal, complex_pairs, main_size
from layout_advise.layoutalgebra.explore.wide_search import best_by_pattern

MOST_FIELDS, MOST_DIMS, LOOKED_AT = 32, 3, 16
"""Structures with more fields or dimensions are not searched; so many of the layouts that match are looked at."""


def pattern_proposals(structure: Structure, walk: Walk, lanes: tuple[int, ...]) -> Iterator[Proposal]:
    """The cheapest blocks of complex numbers; the cheapest layout that ends in vectors, if it beats the families."""
    if walk.chosen is not None or walk.shared or walk.density <= HALF or not structure.placed:
        return
    if not 1 < len(structure.fields) <= MOST_FIELDS or len(structure.dims) > MOST_DIMS or not lanes:
        return
    vector = max(lanes)
    block = vector // main_size(structure.fields)
    if block < 2:
        return
    if complex_pairs(structure):
        matching = best_by_pattern(structure, walk, (vector,), f"* ⊗ A_{block} ⊗ S_2", LOOKED_AT)
        blocks = [p for p in matching if "complex" in p.families and p.block == block and len(p.plan.groups) == 1]
        best = sorted(blocks, key=lambda p: p.plan.groups[0].inner[-1].dim != walk.fastest)[:1]
        yield from (replace(p, proposer="search") for p in best)
    yield from (
        replace(p, rival=True, proposer="search") for p in best_by_pattern(structure, walk, (vector,), f"* ⊗ A_{block}", 1)
    )
