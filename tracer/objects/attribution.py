"""Assigns the references of a trace to the pieces of the program's memory that they touch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from layout_advise.layoutalgebra.sets.spans import AddressSpan, addresses, spans
from layout_advise.tracer.objects.members import split_by
from layout_advise.tracer.objects.memory_object import Key, MemoryObject
from layout_advise.tracer.objects.pointers import Read
from layout_advise.tracer.objects.program_memory import ProgramMemory
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Life, Trace

_UNSURE: dict[Life | None, str] = {
    "freed": "it touches a block that the call frees, and what else the call then puts there",
    "born": "it touches a block that the call allocates",
}


@dataclass(frozen=True, slots=True)
class ObjectTouch:
    """A reference touches object number ``object``, ``accesses`` times (``None``: it is not known how often; so it is with
    a block that the call frees, whose memory it may use again)."""

    object: int
    accesses: int | None


@dataclass(frozen=True, slots=True)
class Attribution:
    """``touches[i]`` and ``inexact[i]`` (a reason or ``None``) belong to the trace's reference ``i``."""

    objects: tuple[MemoryObject, ...]
    touches: tuple[tuple[ObjectTouch, ...], ...]
    inexact: tuple[str | None, ...]

    def mixed(self, reference: int) -> bool:
        """Returns whether the reference touches several objects."""
        return len(self.touches[reference]) > 1


def attribute(trace: Trace, main: ElfBinary, read: Read) -> Attribution:
    """The objects that the trace touches, most accesses first, and which reference touches which.

    ``read(address, size)`` reads the memory of the stopped program (``StoppedProgram.read``).
    """
    memory = ProgramMemory(trace, main, read)
    found = _attributed(memory, trace)
    records = tuple(memory.records)
    while records:  # mostly once more; records whose arrays a reference runs over together stay whole
        memory.take_apart(records)
        found = _attributed(memory, trace)
        left = split_by(records, [[found.objects[t.object].base for t in touches] for touches in found.touches])
        if len(left) == len(records):
            break
        records = left
        if not records:
            memory.take_apart(())
            found = _attributed(memory, trace)
    return found


def _attributed(memory: ProgramMemory, trace: Trace) -> Attribution:
    counts: list[dict[Key, int | None]] = []
    reasons: list[str | None] = []
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        touched: dict[Key, int | None] = {}
        reason = None
        for span in spans(stream) if stream is not None else ():
            reason = _spread(memory, span, reference.bytes, touched) or reason
        counts.append(touched)
        reasons.append(reason or next((_UNSURE[o] for o in map(memory.life, touched) if o in _UNSURE), None))
    return _assemble(memory, trace, counts, reasons)


def _spread(memory: ProgramMemory, span: AddressSpan, size: int, touched: dict[Key, int | None]) -> str | None:
    """Count the span's accesses for the objects they fall in; returns why that is not exact, if it is not."""
    first = memory.at(span.low)
    if span.high + size <= memory.end_at(span.low, first):
        _add(touched, first.key, span.count)
        return None
    every = addresses(span)
    if every is None:
        for found in (first, memory.at(span.high)):
            _add(touched, found.key, None)
        return "it touches several objects too often to tell them apart"
    every.sort()
    reason, position = None, 0
    counted = span.count is None or span.count == len(every)  # a set holds each address once: it has no split counts
    while position < len(every):
        found = memory.at(int(every[position]))
        stop = int(every.searchsorted(memory.end_at(int(every[position]), found)))
        if int(every[stop - 1]) + size > found.end:
            reason = f"one access crosses the end of {found.name}"
        _add(touched, found.key, stop - position if counted else None)
        position = stop
    return reason


def _add(touched: dict[Key, int | None], key: Key, count: int | None) -> None:
    before = touched.get(key, 0)
    touched[key] = None if before is None or count is None else before + count


def _assemble(
    memory: ProgramMemory, trace: Trace, counts: list[dict[Key, int | None]], reasons: list[str | None]
) -> Attribution:
    weight: dict[Key, int] = {}
    users: dict[Key, list[int]] = {}
    for reference, touched in zip(trace.references, counts, strict=True):
        for key, count in touched.items():
            weight[key] = weight.get(key, 0) + (count or 0)
            users.setdefault(key, []).append(reference.id)
    order = sorted(weight, key=lambda key: (-weight[key], key))
    number = {key: index for index, key in enumerate(order)}
    objects = memory.described([replace(memory.known[key], references=tuple(users[key])) for key in order])
    touches = tuple(
        tuple(ObjectTouch(number[key], None if memory.life(key) == "freed" else c) for key, c in sorted(t.items()))
        for t in counts
    )
    return Attribution(objects, touches, tuple(reasons))
