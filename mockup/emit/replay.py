"""A replay as C: the loads and stores of the traced call in their order and loops, in the old or in a new layout.

No computation: what is loaded is thrown away, stores write zeros. It has the exports of a mock-up (``tracer/agent/abi.h``)
and is checked and timed in snapshots like one. All accesses are made in words of at most 8 bytes, in every layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layout_advise.errors import ReplayError
from layout_advise.layoutalgebra.derive.structure import Candidate, FieldMap, Relayout, first_buffers
from layout_advise.mockup.emit.copies import copy_function, map_function, place_function, place_text
from layout_advise.mockup.emit.frame import buffer_specs
from layout_advise.mockup.emit.scope import identifier
from layout_advise.mockup.evidence.touch_nest import Touch, TouchNest
from layout_advise.mockup.remap.field_runs import uncovered
from layout_advise.mockup.remap.indices.index_terms import decompose
from layout_advise.tracer.trace.trace import Reference

_MACROS = """#define LOAD(size, at) __asm__ volatile("" : : "r"(*(const la_i##size##_u *)(at)))
#define STORE(size, at) (*(volatile la_i##size##_u *)(at) = 0)"""


@dataclass(frozen=True, slots=True)
class _Digits:
    """An index of one dimension: ``const + sum(coefs[k] * index of the k-th loop around)``."""

    const: int
    coefs: tuple[int, ...]

    def text(self, inner: int) -> str:
        terms = [f"{c} * i{k}" if c != 1 else f"i{k}" for k, c in enumerate(self.coefs) if c]
        constant = self.const + inner
        return f"({' + '.join([*terms, *([str(constant)] if constant or not terms else [])])})"

    def within(self, trips: Sequence[int], count: int, inner: int) -> bool:
        """Returns whether the index stays in 0 .. count - 1."""
        ends = [c * (t - 1) for c, t in zip(self.coefs, trips, strict=True)]
        low = self.const + sum(min(0, e) for e in ends)
        return low >= 0 and self.const + inner + sum(max(0, e) for e in ends) < count


def emit_replay(
    body: Sequence[Touch | TouchNest],
    symbol: str,
    candidate: Candidate | None,
    *,
    check: bool = False,
    wrong: bool = False,
    put: bool = False,
) -> str:
    """The C source; ``candidate`` None replays in the program's own layout. ``check`` records every reference and compares
    every new place with the map (slow); ``wrong`` moves every access by one field, which the check must find. ``put``: it
    tells where its layout has what was at an old address.

    Raises ReplayError where an access does not decompose over the candidate's structures.
    """
    relayouts = candidate.relayouts if candidate is not None else ()
    if any(r.chosen is not None for r in relayouts):
        raise ReplayError(f"candidate {candidate.id if candidate else ''}", "a choice of elements is not replayed")
    first = first_buffers(relayouts)
    writer = _Writer(relayouts, first, check, wrong)
    writer.nests(body, (), 1)
    fields = frozenset((r.structure.id, m.field) for r in relayouts for m in r.fields)
    parts = [
        f"/* Replay of the loads and stores of one call of {identifier(symbol)}: no computation, not a mock-up.\n"
        f" * Layout: {'as in the program' if candidate is None else '; '.join(r.term for r in relayouts)}. */",
        '#include "mockup.h"',
        _MACROS,
        buffer_specs(relayouts, 0, {}),
        copy_function(relayouts, first, fields, True),
        copy_function(relayouts, first, fields, False),
        *(
            map_function(r, f, _map(number))
            for number, (r, f) in enumerate(zip(relayouts, first, strict=True))
            if check or put
        ),
        *(
            [place_function(relayouts, {r.structure.id: _map(k) for k, r in enumerate(relayouts)})]
            if put and relayouts
            else ()
        ),
        _kernel(symbol, writer),
        f"LA_EXPORT void la_run(struct la_context *context)\n{{\n    {identifier(symbol)}_replay(context);\n}}",
    ]
    return "\n\n".join(parts) + "\n"


def _kernel(symbol: str, writer: _Writer) -> str:
    lines = [f"static __attribute__((noinline)) void {identifier(symbol)}_replay(struct la_context *context)", "{"]
    lines.append("    (void)context;")
    lines += [f"    uint8_t *const b{k} = context->buffers[{k}];" for k in sorted(writer.buffers)]
    return "\n".join([*lines, *writer.lines, "}"])


def _map(number: int) -> str:
    return f"map_{number}"


class _Writer:
    def __init__(self, relayouts: Sequence[Relayout], first: Sequence[int], check: bool, wrong: bool) -> None:
        self.relayouts, self.first, self.check, self.wrong = relayouts, first, check, wrong
        self.lines: list[str] = []
        self.buffers: set[int] = set()

    def nests(self, body: Sequence[Touch | TouchNest], trips: tuple[int, ...], depth: int) -> None:
        """The loops; how often they run is hidden, as it is from the original's compiler."""
        pad = "    " * depth
        for item in body:
            if isinstance(item, Touch):
                self.lines += [f"{pad}{line}" for line in self.touch(item, trips)]
                continue
            k = len(trips)
            self.lines.append(f"{pad}{{ int64_t n{k} = {item.trip};")
            self.lines.append(f"{pad}LA_OPAQUE(n{k});")
            self.lines.append(f"{pad}for (int64_t i{k} = 0; i{k} < n{k}; ++i{k}) {{")
            self.nests(item.body, (*trips, item.trip), depth + 1)
            self.lines.append(f"{pad}}} }}")

    def touch(self, touch: Touch, trips: tuple[int, ...]) -> Iterator[str]:
        """One execution of a reference."""
        reference = touch.reference
        old = f"INT64_C({touch.const})" + "".join(
            f" {'+' if c > 0 else '-'} INT64_C({abs(c)}) * i{k}" for k, c in enumerate(touch.coefs) if c
        )
        if self.check:
            yield f"la_record(&context->check, {old}, {reference.id});"
        number = self.structure_of(touch, trips)
        if number is None:
            for at, size in _words(0, reference.bytes):
                yield from _access(reference, size, f"{old} + {at}" if at else old)
            return
        layout = self.relayouts[number]
        digits, offset = _digits(touch, layout)
        for at, size, mapped, delta, inner in _pieces(offset, reference.bytes, layout, reference):
            for digit, dim in zip(digits, layout.structure.dims, strict=True):
                last = inner if dim is layout.structure.dims[-1] else 0
                if not digit.within(trips, dim.count, last):
                    raise _refused(reference, layout, "its loops run across the ends of a dimension")
            indices = [d.text(inner if k == len(digits) - 1 else 0) for k, d in enumerate(digits)]
            buffer = self.first[number] + mapped.buffer
            self.buffers.add(buffer)
            moved = 8 if self.wrong else 0
            new = f"b{buffer} + {place_text(mapped, indices, delta + moved)}"
            if self.check:
                here = f"{old} + {at}"
                yield f"la_compare(&context->check, {here}, {new}, {_map(number)}(context, {here}), {reference.id});"
                yield "context->check.remapped++;"
                if self.wrong:  # it may lie outside the buffer
                    continue
            yield from _access(reference, size, new)

    def structure_of(self, touch: Touch, trips: tuple[int, ...]) -> int | None:
        """Returns which re-laid structure the reference touches, as a whole; None for none of them."""
        ends = [c * (t - 1) for c, t in zip(touch.coefs, trips, strict=True)]
        low = touch.const + sum(min(0, e) for e in ends)
        high = touch.const + sum(max(0, e) for e in ends) + touch.reference.bytes
        for number, layout in enumerate(self.relayouts):
            structure = layout.structure
            end = (structure.block_base or structure.base) + structure.bytes
            if low < end and high > structure.base:
                if low < structure.base or high > end:
                    raise _refused(touch.reference, layout, "it touches other memory too")
                return number
        return None


def _access(reference: Reference, size: int, at: str) -> Iterator[str]:
    if reference.kind != "write":
        yield f"LOAD({8 * size}, {at});"
    if reference.kind != "read":
        yield f"STORE({8 * size}, {at});"


def _words(at: int, size: int) -> Iterator[tuple[int, int]]:
    """Pieces of 8, 4, 2 and 1 bytes."""
    end = at + size
    while at < end:
        word = next(w for w in (8, 4, 2, 1) if w <= end - at)
        yield at, word
        at += word


def _refused(reference: Reference, layout: Relayout, why: str) -> ReplayError:
    return ReplayError(f"the reference at {reference.pc:#x} to {layout.structure.name} cannot be replayed", why)


def _digits(touch: Touch, layout: Relayout) -> tuple[list[_Digits], int]:
    """The indices, and the access's offset in its element."""
    structure = layout.structure
    strides = tuple(d.stride for d in structure.dims)
    parts = [decompose(c, strides) for c in touch.coefs]
    if any(part is None for part in parts):
        raise _refused(touch.reference, layout, "a loop runs over the fields of an element")
    rest, starts = touch.const - structure.base, []
    for stride in strides:
        starts.append(rest // stride)
        rest %= stride
    columns = [tuple(part[k] for part in parts if part is not None) for k in range(len(strides))]
    return [_Digits(start, column) for start, column in zip(starts, columns, strict=True)], rest


def _pieces(offset: int, size: int, layout: Relayout, reference: Reference) -> Iterator[tuple[int, int, FieldMap, int, int]]:
    """(distance from the access's start, bytes, map, distance from the field's start, elements further on), in words; cut at
    fields, also where they stay neighbours."""
    structure, at = layout.structure, 0
    while at < size:
        inner, local = divmod(offset + at, structure.element_bytes)
        found = next(
            (
                m
                for m in layout.fields
                if structure.fields[m.field].offset
                <= local
                < structure.fields[m.field].offset + structure.fields[m.field].bytes
            ),
            None,
        )
        if found is None:
            raise _refused(reference, layout, uncovered(structure, local, size - at))
        field = structure.fields[found.field]
        delta = local - field.offset
        length = min(size - at, field.bytes - delta)
        for start, word in _words(0, length):
            yield at + start, word, found, delta + start, inner
        at += length
