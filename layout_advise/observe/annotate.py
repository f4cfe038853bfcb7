"""Annotations of the trace's file besides the accesses, so that it can be read without the program: source places, loops,
and what was touched, with its fields and the loops that use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.atoms import covered
from layout_advise.layoutalgebra.sets.spans import spans
from layout_advise.observe.observe import Observation
from layout_advise.tracer.code.code_loops import MachineLoop, innermost, loops_of
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.objects.attribution import Attribution
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.modules import Modules
from layout_advise.tracer.trace.trace import (
    Allocation,
    CodeLoop,
    InlinedCall,
    LoopUse,
    SourcePlace,
    Trace,
    TracedField,
    TracedObject,
)

Bounds = list[tuple[int, int]]
"""First and last byte of each span of a reference."""


def annotated(seen: Observation, main: ElfBinary) -> Trace:
    """The observation's trace with ``places``, ``loops`` and ``objects``."""
    trace, loops = seen.trace, _loops(seen.region)
    modules = Modules(trace.mappings, main)
    found = {loop.head: place(modules, loop.head, None) for loop in loops}
    pcs = sorted({r.pc for r, s in zip(trace.references, trace.streams, strict=True) if s is not None})
    places = tuple(place(modules, pc, innermost(loops, pc)) for pc in pcs)
    drawn = [CodeLoop(n.head, n.parent, n.depth, p.function, p.file, p.line) for n in loops for p in (found[n.head],)]
    loop_at = {p.pc: p.loop for p in places}
    derived = {d.structure.block_base: d for d in seen.derived}
    attribution = seen.attribution or Attribution((), (), ())
    blocks = {block.order: block for block in (*trace.allocations, *trace.born)}
    counts: list[list[int | None]] = [[] for _ in attribution.objects]
    for touch in chain.from_iterable(attribution.touches):
        counts[touch.object].append(touch.accesses)
    where = [
        [(s.low, s.high + reference.bytes - 1) for s in spans(stream)] if stream is not None else []
        for reference, stream in zip(trace.references, trace.streams, strict=True)
    ]
    objects = tuple(
        _laid_out(made, trace, attribution, obj, derived.get(obj.element_base or obj.base), loop_at)
        for number, obj in enumerate(attribution.objects)
        for made in (_object(obj, blocks.get(-1 if obj.order is None else obj.order), counts[number], where, modules),)
    )
    return replace(trace, places=places, loops=tuple(drawn), objects=objects)


def _loops(region: Region) -> tuple[MachineLoop, ...]:
    """The hotspot's loops; none where its code does not decode (then Valgrind has traced it)."""
    try:
        return loops_of(region)
    except TraceError:
        return ()


def place(modules: Modules, pc: int, loop: int | None) -> SourcePlace:
    """The source place of the instruction at ``pc``."""
    module = modules.module_at(pc)
    if module is None:
        return SourcePlace(pc, None, None, None, (), loop)
    address = pc - module.load_base
    function, source = module.binary.function_at(address), module.binary.line(address)
    inlined = tuple(InlinedCall(c.function, c.call.file, c.call.line) for c in module.binary.inlined(address))
    name = function.name if function is not None else None
    return SourcePlace(pc, name, source.file if source else None, source.line if source else None, inlined, loop)


def _callers(block: Allocation, modules: Modules) -> tuple[SourcePlace, ...]:
    """The calls that led to the block's allocation; a call is the instruction before the one it returns to."""
    found = []
    for pc in block.stack:
        where, module = place(modules, pc - 1, None), modules.module_at(pc - 1)
        name = where.function
        if module is not None and name is not None and name.startswith("_Z"):
            name = module.binary.demangled.get(name, name)
        found.append(replace(where, pc=pc, function=name))
    return tuple(found)


def _object(
    obj: MemoryObject,
    block: Allocation | None,
    counts: Sequence[int | None],
    where: Sequence[Bounds],
    modules: Modules,
) -> TracedObject:
    """An object without its layout; ``counts`` are the accesses of each reference that touches it, ``where`` the bounds of
    all references. There may be as many objects as a program has allocated."""
    low, high = _extent(obj, where)
    return TracedObject(
        kind=obj.kind,
        name=obj.name,
        type=obj.type.name if obj.type is not None else None,
        base=obj.base,
        bytes=obj.bytes,
        low=low,
        high=high,
        accesses=None if None in counts else sum(c for c in counts if c is not None),
        references=obj.references,
        order=obj.order,
        site=obj.alloc_site,
        stack=_callers(block, modules) if block is not None else (),
        life=obj.life,
    )


def _laid_out(
    plain: TracedObject,
    trace: Trace,
    attribution: Attribution,
    obj: MemoryObject,
    derived: Derived | None,
    loop_at: dict[int, int | None],
) -> TracedObject:
    """``plain`` with what is known of the object's layout: nothing where the call frees it, and may use its memory again."""
    if derived is None or plain.life == "freed":
        return plain
    return replace(
        plain,
        layout=str(derived.term) if derived.term is not None else None,
        element_bytes=derived.structure.element_bytes,
        fields=_fields(trace, attribution, obj, derived, loop_at),
    )


def _extent(obj: MemoryObject, where: Sequence[Bounds]) -> tuple[int, int]:
    """First and last byte of ``obj`` that is touched; where a reference's bounds go beyond it, those of the object."""
    base, end = obj.base, obj.end  # of hundreds of thousands of objects: the loop is kept bare
    low, high = end, base - 1
    for number in obj.references:
        for first, last in where[number]:
            if first < end and last >= base:
                low, high = min(low, first), max(high, last)
    return max(low, base), min(high, end - 1)


def _fields(
    trace: Trace, attribution: Attribution, obj: MemoryObject, derived: Derived, loop_at: dict[int, int | None]
) -> tuple[TracedField, ...]:
    """The fields of the object's element, counted by the loop that the access is made in, and by the thread where there are
    several."""
    structure = derived.structure
    counts: list[dict[_Use, list[int]]] = [{} for _ in structure.fields]
    for number in obj.references:
        stream, reference = trace.streams[number], trace.references[number]
        if stream is None or attribution.mixed(number):
            continue
        pieces = covered(stream, reference.bytes, structure.base, structure.element_bytes) or ()
        for field, count in zip(structure.fields, counts, strict=True):
            hits = sum(start < field.offset + field.bytes and field.offset < start + size for start, size in pieces)
            if hits:
                thread = reference.thread if trace.threads else None
                row = count.setdefault((loop_at.get(reference.pc), thread), [0, 0])
                row[0] += hits * stream.count if reference.kind != "write" else 0
                row[1] += hits * stream.count if reference.kind != "read" else 0
    return tuple(
        TracedField(f.name, f.offset, f.bytes, f.type, f.reads, f.writes, _uses(c))
        for f, c in zip(structure.fields, counts, strict=True)
    )


_Use = tuple[int | None, int | None]  # loop, thread


def _uses(counts: dict[_Use, list[int]]) -> tuple[LoopUse, ...]:
    def order(item: tuple[_Use, Sequence[int]]) -> tuple[int, int, int]:
        (loop, thread), count = item
        return -sum(count), -1 if loop is None else loop, thread or 0

    return tuple(LoopUse(loop, reads, writes, t) for (loop, t), (reads, writes) in sorted(counts.items(), key=order))
