"""Source lines in words: what a line accesses and how, and the lines in which the time is spent."""

from __future__ import annotations

from pathlib import PurePath

from layout_advise.reports.model.hotspot import HotspotReport
from layout_advise.reports.model.source import AnnotatedLine, LineUse
from layout_advise.reports.words.quantities import listing, number
from layout_advise.reports.words.stream_words import stride_words

MOST_HOT = 5
"""Lines in the ranking."""


def line_place(line: AnnotatedLine) -> str:
    """``main.c:18``, of an instruction with its address."""
    where = f"{PurePath(line.file).name}:{line.line}" if line.file and line.line else ""
    return " ".join(part for part in (line.address, where) if part)


def line_use(use: LineUse) -> str:
    """``p.P: 1 300 000 reads and 1 300 000 writes of 8 B, constant stride of 80 B``."""
    target = f"{use.name}.{use.fields[0]}" if len(use.fields) == 1 else use.name
    many = f" ({listing(use.fields, 4)})" if len(use.fields) > 1 else ""
    counts = [f"{number(n)} {word}{'s' if n != 1 else ''}" for n, word in ((use.reads, "read"), (use.writes, "write")) if n]
    return f"{target}{many}: {' and '.join(counts)} of {use.bytes} B, {stride_words(use.kind, use.stride)}{_misses(use)}"


def _misses(use: LineUse) -> str:
    """``; modelled misses: L1 1 300 000, L2 1 300 000``, each level that has some."""
    if use.misses is None:
        return ""
    found = [f"L{level} {number(count)}" for level, count in enumerate(use.misses, 1) if count]
    return f"; modelled misses: {', '.join(found)}" if found else "; modelled misses: none"


def line_bytes(line: AnnotatedLine) -> int:
    """Bytes that the line reads and writes in the traced call."""
    return sum((use.reads + use.writes) * use.bytes for use in line.uses)


def hot_lines(hotspot: HotspotReport) -> list[AnnotatedLine]:
    """The lines with most samples; without samples those with most accesses."""
    sampled = any(line.samples for line in hotspot.source)
    found = [line for line in hotspot.source if (line.samples if sampled else line.uses)]
    return sorted(found, key=lambda line: (-line.samples, -line_bytes(line)))[:MOST_HOT]


def line_id(line: AnnotatedLine) -> str:
    """The anchor of a line in the page."""
    return f"{PurePath(line.file or '').name}-{line.line}-{line.address or ''}".strip("-").replace(" ", "_")
