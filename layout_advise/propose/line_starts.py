"""Plain arrays as they are, in blocks that begin with a cache line: what can be tried of single numbers, which no rule
arranges."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure
from layout_advise.layoutalgebra.explore.joint_candidates import derivations
from layout_advise.layoutalgebra.explore.plans import LINE
from layout_advise.layoutalgebra.explore.relayout import ALIGN, map_key, relayout, tight_plan, unchanged


def worth_lines(structures: Sequence[Structure], refused: Collection[str] = ()) -> Candidate | None:
    """All plain arrays that do not begin with a line, so that they do, where most accesses go to them; None where they do
    not, or where there are no such arrays. Those ``refused`` are left out."""
    found = {one.structure.id: one for one in in_whole_lines(structures) if one.structure.id not in refused}
    accesses = {s.id: sum(f.reads + f.writes for f in s.fields) for s in structures}
    if not found or 2 * sum(accesses[name] for name in found) < sum(accesses.values()):
        return None
    one = alone(tuple(found.values()))
    return replace(one, derivation=derivations(one)) if len(found) > 1 else one


def alone(layouts: tuple[Relayout, ...]) -> Candidate:
    """The candidate of these layouts, which the model takes for as good as what is there."""
    return Candidate("", layouts, (ALIGN,), (ALIGN,), cost={"relative": 1.0})


def in_whole_lines(structures: Sequence[Structure]) -> Iterator[Relayout]:
    """Those of ``structures`` that are plain arrays whose block begins within a line, each with its block at the begin of
    one: its first element is as far from that as it is in the program."""
    for one in structures:
        start = one.block_base or one.base
        if not _is_plain(one) or start % LINE == 0:
            continue
        tight = relayout(one, tight_plan(one))
        if map_key(tight) != map_key(unchanged(one)):
            continue  # rows with room between them
        moved = unchanged(one, (one.base - start) % LINE)
        buffer = replace(tight.buffers[0], bytes=moved.bytes)
        yield replace(tight, fields=moved.fields, buffers=(buffer,), rules=(ALIGN,))


def _is_plain(structure: Structure) -> bool:
    """True if its elements are single numbers, known exactly, and more than one."""
    single = len(structure.fields) == 1 and structure.fields[0].bytes == structure.element_bytes
    return single and structure.count > 1 and structure.placed and structure.inexact is None
