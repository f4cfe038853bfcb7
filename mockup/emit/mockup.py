"""A whole mock-up as C: what the agent calls (``tracer/agent/abi.h``), written to be read by the report's reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from layout_advise import tracer
from layout_advise.errors import NotVectorisedError
from layout_advise.layoutalgebra.structure import Axis, Candidate, FieldMap, Relayout, Structure
from layout_advise.mockup.binding import Access, accesses, bind, executed
from layout_advise.mockup.effects import BITS, FS_BASE, Gpr
from layout_advise.mockup.emit.copies import chosen_tables, copy_functions, map_function
from layout_advise.mockup.emit.ctext import CTYPE
from layout_advise.mockup.emit.lanes import LaneWriter, lanes_text
from layout_advise.mockup.emit.program import Writer
from layout_advise.mockup.emit.scope import Scope, analyse, gathers, identifier
from layout_advise.mockup.emit.sidebyside import side_by_side
from layout_advise.mockup.emit.text import Settings
from layout_advise.mockup.flow import RIP
from layout_advise.mockup.lifted import Imm, Item, Lifted, Linear, LiveIn, LiveOut, Load, Loop
from layout_advise.mockup.remap import Plan, plan
from layout_advise.tracer.trace import Trace

Variant = Literal["plain", "restrict", "simd"]

PAGE = 4096
LINE = 64
MMAP_THRESHOLD = 128 << 10
"""From this size on glibc's malloc maps a block of its own (mallopt(3), M_MMAP_THRESHOLD)."""


def include_directories() -> tuple[Path, ...]:
    """Where ``mockup.h`` and ``abi.h`` are: what a compiler needs by ``-I``."""
    return Path(__file__).parent, Path(str(tracer.__file__)).parent / "agent"


def emit_mockup(
    lifted: Lifted,
    candidate: Candidate | None,
    trace: Trace,
    structures: Sequence[Structure],
    *,
    variant: Variant = "plain",
    check: bool = False,
    wrong: bool = False,
    offset: int = 0,
    varying: frozenset[int] = frozenset(),
    vector_bytes: int = 16,
) -> str:
    """The C source of a mock-up; ``candidate`` None gives the identity.

    ``variant`` ``restrict`` promises the compiler that the new buffers' fields do not overlap, ``simd`` also that the
    iterations of the loops marked so are independent (:func:`layout_advise.mockup.reroll.reroll` marks them). ``check``
    records every reference and compares every new place with the map (slow). ``wrong`` reads (where nothing is read:
    writes) elements at wrong places, in bounds: such a mock-up must fail the comparison.
    ``offset`` places the new buffers that many bytes (a multiple of 64) after the start of a page.
    ``varying`` are the general registers of which the mock-up must not take the traced value for granted.
    ``vector_bytes`` is the width of the vector registers that the compiler's flags allow: of loops around others whose
    iterations are independent, ``simd`` runs as many side by side as fill one.
    Raises RemapError where an access does not decompose over the candidate's structure, NotVectorisedError where ``simd``
    is asked for and nothing in the hotspot can be told of or written so.
    """
    binding = bind(lifted, trace, structures)
    placed = plan(lifted, candidate, binding)
    relayouts = candidate.relayouts if candidate is not None else ()
    scope = analyse(lifted)
    settings = Settings(check, _wrong(lifted, placed) if wrong else frozenset(), independent=variant == "simd")
    if check:
        settings.recorders = recorders(lifted)
    settings.registers = {
        live.value.number: trace.registers.gpr[live.location.number]
        for live in lifted.live_ins
        if isinstance(live.location, Gpr)
        and live.value.number in scope.live_ins
        and live.location != FS_BASE
        and live.location.number not in varying
        and not trace.threads
    }
    parameters = _pointers(relayouts, settings)
    settings.maps = {r.structure.id: f"map_{identifier(r.structure.name)}_{k}" for k, r in enumerate(relayouts)}
    settings.gathers = gathers([a for a in accesses(lifted.body) if id(a) not in placed.places], scope)
    refused = ""
    if variant == "simd" and not check and not wrong:
        refused = _side_by_side(lifted, placed, settings, vector_bytes)
    writer = LaneWriter(scope, placed, binding, settings)
    writer.body(lifted.body)
    first = first_buffers(relayouts)
    kernel = kernel_name(lifted)
    parts = [
        _header(lifted, candidate, variant, check, wrong, refused),
        (lanes_text(settings.lanes, vector_bytes) if settings.abreast else '#include "mockup.h"')
        + ('\n#include "opaque.h"' if scope.opaque else ""),
        _libm(scope),
        buffer_specs(relayouts, offset),
        chosen_tables(relayouts),
        *copy_functions(candidate, binding, placed, first),
        *(map_function(r, f, settings.maps[r.structure.id]) for r, f in zip(relayouts, first, strict=True) if check),
        _kernel(lifted, scope, writer, kernel, [name for name, _ in parameters], variant),
        _run(kernel, [*_bases(lifted, writer), *(f"context->buffers[{first[r] + b}] + {o}" for _, (r, b, o) in parameters)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _side_by_side(lifted: Lifted, placed: Plan, settings: Settings, vector_bytes: int) -> str:
    """Settle which loops run elements side by side, and how many; the reason where one of them cannot."""
    loops = list(_loops(lifted.body))
    sizes, refused = [], ""
    for loop in (x for x in loops if x.abreast):
        try:
            found = side_by_side(loop, lifted)
        except NotVectorisedError as error:
            refused = error.line()
            if not any(x.independent for x in loops):
                raise
            continue
        settings.abreast[id(loop)] = found
        blocks = [a.block for x in accesses(loop.body) for a in _split(placed, x)]
        sizes.append(min([vector_bytes // found.size(loop.body), *blocks]))
    settings.lanes = min(sizes, default=1)
    return refused


def _split(placed: Plan, access: Access) -> list[Axis]:
    place = placed.places.get(id(access))
    return [a for p in place.pieces for a in p.map.axes if a.part == "mod"] if place is not None else []


def _loops(items: Sequence[Item]) -> Iterator[Loop]:
    for item in items:
        if isinstance(item, Loop):
            yield item
            yield from _loops(item.body)


def kernel_name(lifted: Lifted) -> str:
    """The function that holds the hotspot's own computation."""
    return identifier(lifted.symbol) + "_mockup"


def recorders(lifted: Lifted) -> dict[int, frozenset[int]]:
    """The accesses that stand for an execution of their reference, and in which lanes (0 where there are none): of every
    reference its lowest live part, the load where it also stores."""
    by_key: dict[tuple[int, int], list[tuple[Access, int, int]]] = {}
    for access in accesses(lifted.body):
        for lane, reference in enumerate(access.lanes or executed(access)):
            if reference is not None:
                by_key.setdefault(reference[:2], []).append((access, lane, reference[2]))
    chosen: dict[int, frozenset[int]] = {}
    for group in by_key.values():
        loads = [entry for entry in group if isinstance(entry[0], Load)] or group
        lowest = min(part for _, _, part in loads)
        seen: list[tuple[Linear, int, tuple[int, ...]]] = []
        for access, lane, part in loads:
            # the same piece read twice, as two types, is one reference
            if part == lowest and (access.address, lane, access.turn) not in seen:
                seen.append((access.address, lane, access.turn))
                chosen[id(access)] = chosen.get(id(access), frozenset()) | {lane}
    return chosen


def _wrong(lifted: Lifted, placed: Plan) -> frozenset[int]:
    moved = [a for a in accesses(lifted.body) if id(a) in placed.places]
    loads = [a for a in moved if isinstance(a, Load)]
    return frozenset(id(a) for a in loads or moved)


def _pointers(relayouts: Sequence[Relayout], settings: Settings) -> list[tuple[str, tuple[int, int, int]]]:
    """One pointer a record or a field of its own: its name, and (number of the relayout, buffer, offset).

    The fields of a record are reached from one pointer, as a compiler would do it: there are not registers for each.
    """
    result: list[tuple[str, tuple[int, int, int]]] = []
    names: dict[str, tuple[int, int] | None] = {}
    for number, relayout in enumerate(relayouts):
        structure = relayout.structure
        for mapped in relayout.fields:
            shared = in_record(relayout, mapped)
            wanted = relayout.buffers[mapped.buffer].name if shared else structure.fields[mapped.field].name
            name, record = f"at_{identifier(wanted)}", (number, mapped.buffer) if shared else None
            if name in names and (record is None or names[name] != record):
                name = f"{name}_{identifier(structure.id)}"
            while name in names and (record is None or names[name] != record):
                name += "_"
            if name not in names:
                result.append((name, (number, mapped.buffer, 0 if shared else mapped.offset)))
            names[name] = record
            settings.pointers[structure.id, mapped.field] = name
            settings.offsets[structure.id, mapped.field] = mapped.offset if shared else 0
    return result


def in_record(relayout: Relayout, mapped: FieldMap) -> bool:
    """Whether a field lies between others of its element in one record."""
    fields = relayout.structure.fields
    alike = [m for m in relayout.fields if m.buffer == mapped.buffer and m.axes == mapped.axes]
    start, end = min(m.offset for m in alike), max(m.offset + fields[m.field].bytes for m in alike)
    strides = [a.stride for a in mapped.axes if relayout.structure.dims[a.dim].count > 1]
    return len(alike) > 1 and start == 0 and all(stride >= end - start for stride in strides)


def first_buffers(relayouts: Sequence[Relayout]) -> list[int]:
    """The number of the first buffer of each."""
    first, total = [], 0
    for relayout in relayouts:
        first.append(total)
        total += len(relayout.buffers)
    return first


def _header(lifted: Lifted, candidate: Candidate | None, variant: str, check: bool, wrong: bool, refused: str) -> str:
    lines = [f"/* Mock-up of {lifted.symbol}, lifted from machine code at {lifted.entry:#x}."]
    if candidate is None:
        lines.append(" * Layout: as in the program (identity).")
    for relayout in candidate.relayouts if candidate is not None else ():
        structure = relayout.structure
        lines.append(
            f" * Layout of {structure.name} ({structure.count} elements of {structure.element_bytes} bytes): {relayout.term}"
        )
        if relayout.chosen is not None:
            lines.append(f" *   Stored is, of each {relayout.chosen.block} neighbours, the one that this call uses.")
        for part in relayout.parts:
            lines.append(f" *   {', '.join(part.fields)}: {part.term}, units of {part.unit_bytes} bytes")
    if candidate is not None:
        lines.append(f" * Candidate {candidate.id}: {', '.join(candidate.families)}; variant {variant}.")
    if refused:
        lines.append(f" * {refused[0].upper()}{refused[1:]}.")
    if check:
        lines.append(" * Check build: records every reference and compares every new address with the map.")
    if wrong:
        lines.append(" * DELIBERATELY WRONG index map: has to fail the comparison.")
    return "\n".join(line.replace("*/", "* /") for line in lines) + " */"


def _libm(scope: Scope) -> str:
    # Under names of our own: the compiler must not fold or merge what the original's library computed.
    lines = []
    for function, (result, args) in sorted(scope.calls.items()):
        types = ", ".join(CTYPE[a] for a in args) or "void"
        lines.append(f'extern {CTYPE[result]} la_libm_{function}({types}) __asm__("{function}") __attribute__((const));')
    return "\n".join(lines)


def buffer_specs(relayouts: Sequence[Relayout], offset: int) -> str:
    """What the agent is to allocate, ``offset`` bytes after the start of a page."""
    buffers = [(b, r.structure) for r in relayouts for b in r.buffers]
    lines = ["LA_EXPORT const uint32_t la_abi = LA_ABI;", f"LA_EXPORT const uint32_t la_buffer_count = {len(buffers)};"]
    lines.append("LA_EXPORT const struct la_buffer_spec la_buffers[] = {")
    before = 0
    for buffer, structure in buffers:
        name = buffer.name.replace("*/", "")
        start = (offset + (before if _adjacent(structure, buffer.bytes) else 0)) % PAGE
        before = -(-(before + buffer.bytes) // LINE) * LINE
        lines.append(
            f"    {{.bytes = {max(buffer.bytes, 1)}, .align = {LINE}, .offset = {start}, "
            f".like = {structure.base:#x}}}, /* {name} */"
        )
    if not buffers:
        lines.append("    {.bytes = 0}")
    return "\n".join([*lines, "};"])


def _adjacent(structure: Structure, size: int) -> bool:
    """Whether a program would have the new arrays one after another: they are one variable, or malloc takes them from its
    heap. It maps larger ones by themselves; they all start at the same place in a page, and may slow each other down."""
    return structure.kind != "heap" or size < MMAP_THRESHOLD


def _kernel(lifted: Lifted, scope: Scope, writer: Writer, name: str, pointers: Sequence[str], variant: Variant) -> str:
    kind = "uint8_t *" if variant == "plain" else "uint8_t *restrict "
    # where the layout is unchanged, the promise is about the arrays that addresses start from
    bases = [(kind if not pointers else "uint8_t *") + name for _, name in sorted(writer.bases.items())]
    parameters = ", ".join(["struct la_context *context", *bases, *(kind + p for p in pointers)])
    lines = [f"static __attribute__((noinline)) void {name}({parameters})", "{"]
    if scope.opaque:
        lines.append("    struct la_call call = {0};")
    outs = [f"    {_live_out(live, writer)}" for live in lifted.live_outs]
    mentioned = set(re.findall(r"\w+", "\n".join([*writer.lines, *outs])))
    for live in lifted.live_ins:
        if scope.names[live.value.number] in mentioned:
            lines += [f"    {line}" for line in _live_in(live, scope)]
    for number, ty in sorted(scope.variables.items()):
        lines.append(f"    {CTYPE[ty]} x{number} = 0;")
    live_in_values = {live.value.number for live in lifted.live_ins}
    for number, ty in sorted(scope.hoisted.items()):
        if number not in live_in_values:
            lines.append(f"    {CTYPE[ty]} {scope.names.get(number, f'v{number}')} = 0;")
    for hidden in writer.hidden.values():
        lines.append(f"    int64_t {hidden} = 0;")
        lines.append(f"    LA_UNKNOWN({hidden});")
    lines += writer.lines
    return "\n".join([*lines, *outs, "}"])


def _live_in(live: LiveIn, scope: Scope) -> list[str]:
    name, ty = scope.names[live.value.number], live.value.ty
    if isinstance(live.location, Gpr):
        source = "context->in.fs_base" if live.location == FS_BASE else f"context->in.gpr[{live.location.number}]"
        if live.half is not None or ty in ("i1", "i8", "i16", "i32"):
            return [f"const {CTYPE[ty]} {name} = ({CTYPE[ty]})({source} >> {32 * (live.half or 0)});"]
        return [f"const {CTYPE[ty]} {name} = {'la_as_f64((int64_t)' if ty == 'f64' else '(int64_t)('}{source});"]
    at = 8 * live.location.index + 4 * (live.half or 0)
    return [f"{CTYPE[ty]} {name};", f"la_get(&{name}, &context->in, {live.location.number}, {at}, {BITS[ty] // 8});"]


def _live_out(live: LiveOut, writer: Writer) -> str:
    ty, text = live.operand.ty, writer.text(live.operand)
    if isinstance(live.location, Gpr):
        register = "rip" if live.location == RIP else f"gpr[{live.location.number}]"
        place = f"(uint8_t *)&context->out.{register} + {4 * (live.half or 0)}"
    else:
        place = f"context->out.vector[{live.location.number}] + {8 * live.location.index + 4 * (live.half or 0)}"
    cell = "la_i8" if ty == "i1" else f"la_{ty}_u"
    return f"*({cell} *)({place}) = {text};" + ("" if not isinstance(live.operand, Imm) else " /* a constant */")


def _bases(lifted: Lifted, writer: Writer) -> list[str]:
    """The arguments for the kernel's base pointers."""
    registers = {live.value.number: live.location for live in lifted.live_ins}
    found = [registers[number] for number in sorted(writer.bases)]
    return [f"(uint8_t *)context->in.gpr[{location.number}]" for location in found if isinstance(location, Gpr)]


def _run(kernel: str, pointers: Sequence[str]) -> str:
    arguments = ",\n        ".join(["context", *pointers])
    return f"LA_EXPORT void la_run(struct la_context *context)\n{{\n    {kernel}({arguments});\n}}"
