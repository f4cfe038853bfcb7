"""False sharing: variables in cache lines that threads share for nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from layout_advise.mockup.evidence.streams import residue
from layout_advise.tracer.objects.attribution import Attribution
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.objects.sharing import LINE, Sharing
from layout_advise.tracer.program.lines import SourceLine
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.trace.trace import Reference, Trace


@dataclass(frozen=True, slots=True)
class SharedObject:
    """``false`` of the object's lines are falsely shared, ``true`` exchange data. ``fields`` are those accessed by the
    references that meet in the former, from ``threads``, at ``places`` of the source."""

    object: MemoryObject
    false: int
    true: int
    threads: tuple[int, ...]
    fields: tuple[str, ...]
    places: tuple[str, ...]


def shared_objects(sharing: Sharing, attribution: Attribution, trace: Trace) -> tuple[SharedObject, ...]:
    """The objects with falsely shared lines, most lines first; the threads' own frames are left out."""
    modules = Modules(trace.mappings)
    found = []
    for item in attribution.objects:
        false = _lines_in(item, sharing.false)
        if not false or item.name.startswith("frame of "):
            continue
        users = [trace.references[r] for r in item.references if r in sharing.users]
        threads = tuple(sorted({r.thread for r in users}))
        fields = dict.fromkeys(name for r in users if (name := _field(item, r, trace)))
        places = dict.fromkeys(line.short() for r in users if (line := _line(modules, r.pc)) is not None)
        found.append(SharedObject(item, false, _lines_in(item, sharing.true), threads, tuple(fields), tuple(places)))
    return tuple(sorted(found, key=lambda s: -s.false))


def _lines_in(item: MemoryObject, lines: Iterable[int]) -> int:
    return sum(line < item.end and item.base < line + LINE for line in lines)


def _field(item: MemoryObject, reference: Reference, trace: Trace) -> str | None:
    """The member of the object's elements that the reference accesses, where it is always the same."""
    stream, declared = trace.streams[reference.id], item.type
    if stream is None or declared is None or not declared.element_bytes or len(declared.members) < 2:
        return None
    offset = residue(stream, item.element_base or item.base, declared.element_bytes)
    if offset is None:
        return None
    return next((m.name for m in declared.members if m.offset <= offset < m.offset + m.bytes), None)


def _line(modules: Modules, pc: int) -> SourceLine | None:
    module = modules.module_at(pc)
    return module.binary.line(pc - module.load_base) if module is not None else None
