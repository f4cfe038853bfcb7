"""The references of a trace with what they are called: function, source line, and what lies where they touch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.layoutalgebra.sets.spans import spans
from layout_advise.reports.pages.trace_text import (
    LIVES,
    call_word,
)
from layout_advise.tracer.objects.heap_blocks import HeapBlocks
from layout_advise.tracer.program.lines import SourceLine
from layout_advise.tracer.program.modules import Module, Modules
from layout_advise.tracer.trace.trace import InlinedCall, Reference, Trace


@dataclass(frozen=True, slots=True)
class Row:
    """One reference; ``low`` .. ``high`` are the first and the last byte it may touch, ``objects`` what lies there."""

    reference: Reference
    stream: Stream | None
    function: str | None
    source: SourceLine | None
    low: int | None
    high: int | None
    objects: tuple[str, ...]
    inlined: tuple[InlinedCall, ...] = ()
    loop: int | None = None
    team: bool = False

    @property
    def count(self) -> int:
        """Accesses."""
        return self.stream.count if self.stream is not None else 0


class NamedPlaces:
    """Names for the code and data addresses of a trace. The trace itself comes first; for what it does not say, the
    program's files are asked.

    Files that are gone, or newer than the trace (``written``, seconds), are not asked: their lines could be wrong. They
    stand in ``changed``.
    """

    def __init__(self, trace: Trace, written: float) -> None:
        self._modules = Modules(trace.mappings)
        self._written = written
        self._blocks = HeapBlocks(trace)
        self._calls = call_word(trace)
        self._stored = {place.pc: place for place in trace.places}
        self.changed: set[str] = set()

    def _module(self, address: int) -> Module | None:
        module = self._modules.module_at(address)
        if module is None:
            return None
        path = module.binary.path
        try:
            newer = path.stat().st_mtime > self._written
        except OSError:
            newer = True
        if newer:
            self.changed.add(str(path))
        return None if newer else module

    def code(self, pc: int) -> tuple[str | None, SourceLine | None]:
        """Function and source line of an instruction."""
        stored = self._stored.get(pc)
        if stored is not None:
            known = SourceLine(stored.file, stored.line) if stored.file and stored.line is not None else None
            return stored.function, known
        module = self._module(pc)
        if module is None:
            return None, None
        function = module.binary.function_at(pc - module.load_base)
        return (function.name if function else None), module.binary.line(pc - module.load_base)

    def around(self, pc: int) -> tuple[tuple[InlinedCall, ...], int | None]:
        """The calls inlined there, innermost first, and the number of the innermost loop."""
        stored = self._stored.get(pc)
        return (stored.inlined, stored.loop) if stored is not None else ((), None)

    def data(self, address: int) -> str:
        """The heap block, the variable or the mapping at ``address``."""
        piece = self._blocks.at(address)
        if piece is not None:
            block = piece.block
            source = self.code(block.site - 1)[1]  # the call ends where it returns to
            where = f" from {source.short()}" if source else ""
            life = f", {LIVES[piece.life]} the {self._calls}" if piece.life in ("freed", "born") else ""
            return f"heap block {block.order} of {block.bytes:,} bytes{where}{life}"
        module = self._module(address)
        if module is not None:
            variable = module.binary.variable_at(address - module.load_base)
            if variable is not None:
                return f"{variable.name} in {module.binary.path.name}"
            section = module.binary.section_at(address - module.load_base)
            if section is not None:
                return f"{section[0]} of {module.binary.path.name}"
        mapping = self._modules.mapping_at(address)
        if mapping is None:
            return "no mapping"
        return mapping.path if mapping.path.startswith("[") else Path(mapping.path).name or "anonymous mapping"


def rows(trace: Trace, places: NamedPlaces) -> list[Row]:
    """All references, most accesses first."""
    found = []
    for reference, stream in zip(trace.references, trace.streams, strict=False):
        function, source = places.code(reference.pc)
        bounds = spans(stream) if stream is not None and stream.count else ()
        low = min((s.low for s in bounds), default=None)
        high = max((s.high for s in bounds), default=None)
        objects = dict.fromkeys(places.data(edge) for s in bounds for edge in (s.low, s.high))
        last = None if high is None else high + reference.bytes - 1
        around = places.around(reference.pc)
        found.append(Row(reference, stream, function, source, low, last, tuple(objects), *around, bool(trace.threads)))
    return sorted(found, key=lambda row: (-row.count, row.reference.id))
