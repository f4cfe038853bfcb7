"""A term as a picture: which of the first offsets are accessed, by which member; and where a rewriting has moved them.

A member is the index in the last factor that is not an array (the fields of an array of structures), so that a letter or a
colour keeps its meaning while factors are split, permuted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from layout_advise.layoutalgebra.draw.svg import COLOURS, HEIGHT, MARGIN, UNUSED, WIDTH, drawing, label
from layout_advise.layoutalgebra.terms.term import Leaf, Term, factors_of, terms_of

PLACES = 64
"""Offsets drawn at most."""
TRACKED = 1 << 16
"""Accessed offsets whose way through the rewritings is followed."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A term on its way: ``members`` tells the member at each of its followed offsets."""

    title: str
    term: Term
    members: dict[int, int]


def first_stage(title: str, term: Term) -> Stage:
    """The term before any rewriting, its first :data:`TRACKED` accessed offsets followed."""
    member = member_of(term)
    followed = (offset for offset, _ in zip(term.iter_offsets(), range(TRACKED), strict=False))
    return Stage(title, term, {offset: member(offset) for offset in followed})


def next_stage(title: str, term: Term, before: Stage, place: Callable[[int], int]) -> Stage:
    """``before`` after one rewriting, where ``place`` says where each accessed offset goes."""
    return Stage(title, term, {place(offset): member for offset, member in before.members.items()})


def member_of(term: Term) -> Callable[[int], int]:
    """From an offset to the index in the last factor that is not an array in every ⊕ term (without one: the last factor).

    Where the terms of a ⊕ have different factors there is one member, 0.
    """
    rows = [factors_of(part) for part in terms_of(term)]
    if len({tuple(factor.size for factor in row) for row in rows}) > 1:
        return lambda _: 0
    used = [all(isinstance(f, Leaf) and f.is_array for f in column) for column in zip(*rows, strict=True)]
    chosen = max((k for k, array in enumerate(used) if not array), default=len(used) - 1)
    inner = 1
    for factor in rows[0][chosen + 1 :]:
        inner *= factor.size
    size = rows[0][chosen].size
    return lambda offset: offset // inner % size


def draw_text(stage: Stage, places: int = PLACES) -> str:
    """One line: a letter for each accessed offset (its member), ``.`` for unused ones, ``…`` where it goes on."""
    shown = min(places, stage.term.size)
    row = "".join(_letter(stage, offset) for offset in range(shown))
    return row + (" …" if stage.term.size > shown else "")


def _letter(stage: Stage, offset: int) -> str:
    member = stage.members.get(offset)
    if member is not None:
        return chr(ord("A") + member % 26)
    return "#" if stage.term(offset) else "."  # '#': accessed, but its origin was not followed


def draw_svg(stages: Sequence[Stage]) -> str:
    """One strip of the first offsets for each stage, members in colour. One ``<svg>`` element, 700 px wide."""
    parts: list[str] = []
    top = 8
    for stage in stages:
        shown = min(PLACES, stage.term.size)
        parts.append(label(MARGIN, top + 12, f"{stage.title} (first {shown:,} of {stage.term.size:,})", 12))
        parts.extend(_strip(stage, shown, top + 20))
        top += HEIGHT + 40
    return drawing(parts, top, stages[-1].title)


def _strip(stage: Stage, shown: int, top: int) -> list[str]:
    width = (WIDTH - 2 * MARGIN) / PLACES
    parts = []
    for offset in range(shown):
        letter, x = _letter(stage, offset), MARGIN + offset * width
        member = stage.members.get(offset)
        colour = UNUSED if letter == "." else COLOURS[(member or 0) % len(COLOURS)]
        what = "unused" if letter == "." else "accessed" if member is None else f"member {member}"
        parts.append(
            f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{HEIGHT}" fill="{colour}" stroke="#fff">'
            f"<title>{escape(f'offset {offset}: {what}')}</title></rect>"
        )
    return parts
