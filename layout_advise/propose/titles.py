"""A candidate's advice in words."""

from __future__ import annotations

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout
from layout_advise.reports.words import layout_words, quantities


def title(candidate: Candidate, symbol: str, *, written_out: bool = False) -> str:
    """The advice, as the start of a sentence: ``store `p` (main.c:47, 1 300 000 × particle) as ...: step``; with
    what the loops were for that, where they are not the original's."""
    form = " with its loops over fields written out" if written_out else ""
    return f"{' and '.join(_stored(candidate, layout) for layout in candidate.stored)}: {symbol}{form}"


def words(candidate: Candidate) -> str:
    """The layout's name in the ranking: ``AoSoA×4, compact``."""
    arrays = [names for layout in candidate.stored for names in layout.arrays]
    classes = next((layout.chosen.block for layout in candidate.relayouts if layout.chosen is not None), None)
    return layout_words.short(candidate.families, candidate.block, arrays, classes, several_lengths(candidate))


def several_lengths(candidate: Candidate) -> tuple[int, ...]:
    """The elements in a block of each stored array, where these are of several lengths; else nothing."""
    blocks = tuple(length for layout in candidate.stored for length in layout.blocks)
    return blocks if len(set(blocks) - {0}) > 1 else ()


def _stored(candidate: Candidate, layout: Relayout) -> str:
    structure = layout.structure
    about = [structure.alloc_site] if structure.alloc_site else []
    about.append(f"{quantities.number(structure.count)} × {structure.type or f'{structure.element_bytes} bytes'}")
    used = sum(f.bytes for f in structure.fields)
    classes = layout.chosen.block if layout.chosen is not None else None
    unused = used < structure.element_bytes
    lengths = layout.blocks if several_lengths(candidate) else ()
    how = layout_words.transformation(candidate.families, candidate.block, layout.arrays, unused, classes, lengths)
    if any(layout is one.merged for one in candidate.relayouts):
        return f"store {structure.name} ({quantities.number(structure.count)} elements each) {how}"
    if structure.via is not None:
        return f"store the objects that `{structure.name.removeprefix('*')}` points to ({', '.join(about)}) together, {how}"
    if structure.blocks:
        about.append(f"{quantities.number(len(structure.blocks))} blocks")
    return f"store `{structure.name}` ({', '.join(about)}) {how}"
