"""The source lines of a region with what each accesses, how, and how much of the time it takes.

Where the source is not there, the instructions that make accesses stand for its lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from layout_advise.choose.profile import Profiled
from layout_advise.describe.modelled_misses import Misses, cache_sizes, modelled_misses
from layout_advise.describe.policy import CHECKS
from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.atoms import covered
from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.machine import describe
from layout_advise.observe.observe import Observation
from layout_advise.reports.model.source import AnnotatedLine, LineUse, StrideKind
from layout_advise.reports.words.quantities import number as number_text
from layout_advise.reports.words.stream_words import stride_of
from layout_advise.tracer.code.decoder import disassemble
from layout_advise.tracer.objects.attribution import Attribution
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Reference

LONGEST_INSTRUCTION = 15
"""Bytes of x86."""

Place = tuple[str | None, int]
"""A source line; without a file the address of an instruction in its module."""
Target = tuple[str, str | None, tuple[str, ...], int]
"""A piece of memory: its name, the id of its structure, fields, accesses."""
Key = tuple[str, str | None, tuple[str, ...], int, StrideKind, int | None]


@dataclass(slots=True)
class _Count:
    """Reads, writes, and the modelled misses by level (None: not modelled) of one kind of access."""

    reads: int = 0
    writes: int = 0
    misses: tuple[float, ...] | None = None


@dataclass(slots=True)
class _Line:
    """The counts of one line while they are collected."""

    samples: int = 0
    uses: dict[Key, _Count] = field(default_factory=lambda: defaultdict(_Count))


def source_view(profiled: Profiled, seen: Observation) -> tuple[AnnotatedLine, ...]:
    """The lines in the order of files and lines, with a few lines around each; then the instructions without a source."""
    found: dict[Place, _Line] = defaultdict(_Line)
    texts: dict[str, Sequence[str] | None] = {}

    def line_at(address: int) -> _Line:
        line = profiled.module.user_line(address)
        known = line is not None and line.line and _text(texts, line.file) is not None
        return found[(line.file, line.line) if line is not None and known else (None, address)]

    for address, count in _samples(profiled):
        line_at(address).samples += count
    _count_uses(seen, lambda reference: line_at(reference.pc - seen.region.load_base))
    total = len(profiled.run.samples) or 1
    return tuple(_shown(profiled.module, found, texts, total))


def _text(texts: dict[str, Sequence[str] | None], file: str) -> Sequence[str] | None:
    """The lines of a file, read once; None where it cannot be read."""
    if file not in texts:
        try:
            data = Path(file).read_bytes()[: CHECKS.most_file_bytes]
            texts[file] = data.decode(errors="replace").splitlines()
        except (OSError, ValueError):
            texts[file] = None
    return texts[file]


def _samples(profiled: Profiled) -> list[tuple[int, int]]:
    """Addresses of the region in its module, and how many samples fell there."""
    base = profiled.module.load_base(profiled.run.mappings)
    if base is None or not len(profiled.run.samples):
        return []
    addresses, counts = np.unique(profiled.run.samples.astype(np.int64) - base, return_counts=True)
    pairs = zip(addresses.tolist(), counts.tolist(), strict=True)
    return [(address, count) for address, count in pairs if address >= 0 and profiled.contains(address)]


def _count_uses(seen: Observation, line_of: Callable[[Reference], _Line]) -> None:
    """Adds the reads and writes of each reference to its line."""
    attribution, trace = seen.attribution, seen.team or seen.trace
    if attribution is None:
        return
    derived = {d.structure.block_base or d.structure.base: d for d in seen.derived}
    misses = _misses(seen)
    for number, (reference, stream) in enumerate(zip(trace.references, trace.streams, strict=True)):
        if stream is None or number >= len(attribution.touches):
            continue
        kind, stride = stride_of(stream, reference.bytes)
        for name, structure, fields, count in _targets(attribution, number, derived, reference, stream):
            row = line_of(reference).uses[(name, structure, fields, reference.bytes, kind, stride)]
            row.reads += count if reference.kind != "write" else 0
            row.writes += count if reference.kind != "read" else 0
            if misses is not None and stream.count:
                own = [one * count / stream.count for one in misses[number]]
                row.misses = tuple(map(sum, zip(row.misses or (0.0,) * len(own), own, strict=True)))


def _misses(seen: Observation) -> tuple[Misses, ...] | None:
    """The modelled misses of each reference of a serial region."""
    if seen.team is not None:
        return None
    pairs = zip(seen.trace.references, seen.trace.streams, strict=True)
    return modelled_misses([(stream, one.bytes) for one, stream in pairs], cache_sizes(describe()))


def _targets(
    attribution: Attribution, number: int, derived: Mapping[int, Derived], reference: Reference, stream: Stream
) -> list[Target]:
    """The pieces of memory that a reference touches: name, id of the structure, its fields, accesses.

    Of several whose parts of its accesses are not known only all of them together are counted."""
    found: list[Target] = []
    unknown: list[Target] = []
    mixed = attribution.mixed(number)
    for touch in attribution.touches[number]:
        touched = attribution.objects[touch.object]
        one = derived.get(touched.element_base or touched.base)
        target: Target = (touched.name, one.structure.id if one is not None else None, (), touch.accesses or 0)
        if one is not None and one.structure.fields:
            target = (one.structure.name, one.structure.id, _fields(one.structure, stream, reference, mixed), target[3])
        (found if touch.accesses is not None else unknown).append(target)
    if unknown:
        found.append(_together(unknown, stream.count - sum(target[3] for target in found)))
    return found


def _fields(structure: Structure, stream: Stream, reference: Reference, mixed: bool) -> tuple[str, ...]:
    """The fields that a reference accesses; none where it reaches other structures, too."""
    pieces = () if mixed else covered(stream, reference.bytes, structure.base, structure.element_bytes) or ()
    ends = [(start, start + size) for start, size in pieces]
    return tuple(f.name for f in structure.fields if any(a < f.offset + f.bytes and f.offset < b for a, b in ends))


def _together(targets: Sequence[Target], count: int) -> Target:
    """Pieces of memory that share ``count`` accesses as one; what is not the same of all is left out."""
    first, *others = dict.fromkeys((name, structure, fields) for name, structure, fields, _ in targets)
    if not others:
        return (*first, count)
    names = dict.fromkeys(target[0] for target in targets)
    name = first[0] if len(names) == 1 else f"{first[0]} and {number_text(len(names) - 1)} more"
    structure = first[1] if all(other[1] == first[1] for other in others) else None
    return name, structure, first[2] if all(other[2] == first[2] for other in others) else (), count


def _shown(
    module: ElfBinary, found: Mapping[Place, _Line], texts: Mapping[str, Sequence[str] | None], total: int
) -> list[AnnotatedLine]:
    """The collected lines with their text, those of one file with the lines around them."""
    rows: list[AnnotatedLine] = []
    for file in sorted({place[0] for place in found if place[0] is not None}):
        lines, text = {number for name, number in found if name == file}, texts[file] or ()
        around = {k for n in lines for k in range(n - CHECKS.around, n + CHECKS.around + 1)}
        for number in sorted(k for k in around if 1 <= k <= len(text)):
            one = found[(file, number)] if number in lines else _Line()
            shown = text[number - 1][: CHECKS.longest_line]
            rows.append(AnnotatedLine(file, number, None, shown, one.samples / total, _uses(one)))
    for address in sorted(number for name, number in found if name is None):
        one, line = found[(None, address)], module.user_line(address)
        known = line is not None and line.line > 0
        where, at = (line.file, line.line) if line is not None and known else (None, None)
        shown = _instruction(module, address)
        rows.append(AnnotatedLine(where, at, f"{address:#x}", shown, one.samples / total, _uses(one)))
    return rows[: CHECKS.most_lines]


def _instruction(module: ElfBinary, address: int) -> str:
    piece = module.function_at(address)
    size = min(LONGEST_INSTRUCTION, piece.start + piece.size - address) if piece is not None else 0
    insn = next(iter(disassemble(module.read(address, size), address, 1, detail=False)), None) if size > 0 else None
    return f"{insn.mnemonic} {insn.op_str}".strip() if insn is not None else "?"


def _uses(line: _Line) -> tuple[LineUse, ...]:
    """What a line accesses, most accesses first."""
    rows = sorted(line.uses.items(), key=lambda item: (-item[1].reads - item[1].writes, str(item[0])))
    return tuple(
        LineUse(name, structure, fields, one.reads, one.writes, size, kind, stride, _rounded(one.misses))
        for (name, structure, fields, size, kind, stride), one in rows
    )


def _rounded(misses: tuple[float, ...] | None) -> tuple[int, ...] | None:
    return None if misses is None else tuple(map(round, misses))
