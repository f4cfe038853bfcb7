"""The text around the computation: header, buffers, the kernel's parameters and variables, registers in and out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure, new_buffers
from layout_advise.mockup.emit.c_text import CTYPE, among, integer, within_text
from layout_advise.mockup.emit.calls_c import shared_variables
from layout_advise.mockup.emit.copies import Pieces, coded_text
from layout_advise.mockup.emit.packs.writer import PackWriter
from layout_advise.mockup.emit.program import BodyWriter
from layout_advise.mockup.emit.scope import Scope, identifier
from layout_advise.mockup.emit.settings import EmitSettings, Variant
from layout_advise.mockup.ir.effects import BITS, FS_BASE, Gpr
from layout_advise.mockup.ir.lifted import Imm, Let, Lifted, LiveIn, LiveOut, Val, Var, everything
from layout_advise.mockup.lift.flow import RIP
from layout_advise.mockup.remap.entered_indices import Entered, EnteredCode
from layout_advise.mockup.remap.links import Links

PAGE = 4096
LINE = 64
MMAP_THRESHOLD = 128 << 10
"""From this size on glibc's malloc maps a block of its own (mallopt(3), M_MMAP_THRESHOLD)."""
MOST_BUFFERS = 512
"""So many new arrays a mock-up can be handed (``LA_MAX_BUFFERS`` in ``tracer/agent/abi.h``)."""
MALLOC_HEAD = 16
"""Bytes of malloc's own before each block: arrays of whole pages do not all start at one place in a page."""


def kernel_name(lifted: Lifted) -> str:
    """The function that holds the hotspot's own computation."""
    return identifier(lifted.symbol) + "_mockup"


def header(lifted: Lifted, candidate: Candidate | None, settings: EmitSettings, refused: str) -> str:
    """The comment at the top: what the mock-up is of, its layout, and how it is written."""
    lines = [f"/* Mock-up of {lifted.symbol}, lifted from machine code at {lifted.entry:#x}."]
    if candidate is None:
        lines.append(" * Layout: as in the program (identity).")
    for relayout in candidate.relayouts if candidate is not None else ():
        structure = relayout.structure
        lines.append(
            f" * Layout of {structure.name} ({structure.count} elements of {structure.element_bytes} bytes): {relayout.term}"
        )
        if structure.via is not None:
            lines.append(" *   The elements are objects that lie anywhere; they are copied through the pointers to them.")
        if structure.blocks:
            lines.append(f" *   The elements lie in {len(structure.blocks)} blocks; they are numbered by their addresses.")
        if relayout.chosen is not None:
            lines.append(f" *   Stored is, of each {relayout.chosen.block} neighbours, the one that this call uses.")
        for part in relayout.parts:
            lines.append(f" *   {', '.join(part.fields)}: {part.term}, units of {part.unit_bytes} bytes")
    if candidate is not None:
        lines.append(f" * Candidate {candidate.id}: {', '.join(candidate.families)}; variant {settings.variant}.")
    if refused:
        lines.append(f" * {refused[0].upper()}{refused[1:]}.")
    if settings.ends:
        lines.append(" * Check build: ends at the first access whose place is not that of the map.")
    elif settings.check:
        lines.append(" * Check build: records every reference and compares every new address with the map.")
    if settings.wrong:
        what = "values" if settings.wrong == "values" else "index map"
        lines.append(f" * DELIBERATELY WRONG {what}: has to fail the comparison.")
    return "\n".join(line.replace("*/", "* /") for line in lines) + " */"


def mixes_products(lifted: Lifted) -> bool:
    """Returns whether products are added as well as subtracted (or subtracted from)."""
    lets = [item for item in everything(lifted.body) if isinstance(item, Let)]
    products = {let.value for let in lets if let.name == "fmul"}
    return {"fadd", "fsub"} <= {let.name for let in lets if products & {*let.args}}


def libm(scope: Scope) -> str:
    # Under names of our own: the compiler must not fold or merge what the original's library computed.
    lines = []
    for function, (result, args) in sorted(scope.calls.items()):
        types = ", ".join(CTYPE[a] for a in args) or "void"
        lines.append(f'extern {CTYPE[result]} la_libm_{function}({types}) __asm__("{function}") __attribute__((const));')
    return "\n".join(lines)


def buffer_starts(relayouts: Sequence[Relayout], offset: int) -> list[int]:
    """How far from the start of a page each buffer starts, where the first does so by ``offset``."""
    starts, before = [], 0
    for structure, buffer in new_buffers(relayouts):
        starts.append((offset + (before if _adjacent(structure, buffer.bytes) else 0)) % PAGE)
        head = MALLOC_HEAD if structure.kind == "heap" else 0
        before = -(-(before + buffer.bytes + head) // LINE) * LINE
    return starts


def buffer_specs(relayouts: Sequence[Relayout], offset: int, own: Mapping[int, str]) -> str:
    """Returns what the agent is to allocate, ``offset`` bytes after the start of a page; of those that are arrays of the
    mock-up's own, which."""
    buffers = new_buffers(relayouts)
    lines = ["LA_EXPORT const uint32_t la_abi = LA_ABI;", f"LA_EXPORT const uint32_t la_buffer_count = {len(buffers)};"]
    lines.append("LA_EXPORT const struct la_buffer_spec la_buffers[] = {")
    for k, ((structure, buffer), start) in enumerate(zip(buffers, buffer_starts(relayouts, offset), strict=True)):
        name = buffer.name.replace("*/", "")
        array = f", .own = {own[k]}" if k in own else ""
        lines.append(
            f"    {{.bytes = {max(buffer.bytes, 1)}, .align = {LINE}, .offset = {start}, "
            f".like = {_like(structure):#x}{array}}}, /* {name} */"
        )
    if not buffers:
        lines.append("    {.bytes = 0}")
    return "\n".join([*lines, "};"])


def _like(structure: Structure) -> int:
    """The address of one of the elements."""
    if structure.via is not None:
        return structure.via.first
    return structure.blocks[0].address if structure.blocks else structure.base


def _adjacent(structure: Structure, size: int) -> bool:
    """Returns whether a program would have the new arrays one after another: they are one variable, or malloc takes them
    from its heap. It maps larger ones by themselves; they all start at the same place in a page, and may slow each other
    down."""
    return structure.kind != "heap" or size < MMAP_THRESHOLD


def kernel_text(
    lifted: Lifted,
    scope: Scope,
    writer: BodyWriter,
    name: str,
    pointers: Sequence[str],
    variant: Variant,
    static: Mapping[str, str],
) -> str:
    """``pointers`` are handed over, but for those in ``static``, which point into arrays that the compiler sees."""
    kind = "uint8_t *" if variant == "plain" else "uint8_t *restrict "
    # where the layout is unchanged, the promise is about the arrays that addresses start from
    # but not where code that is not lifted may write to them too
    base = "uint8_t *" if pointers or scope.opaque else kind
    bases = [base + name for _, name in sorted(writer.bases.items())]
    entered = ["const int64_t *entered"] if writer.context.entered or writer.context.brought else []
    own = (kind + p for p in pointers if p not in static)
    parameters = ", ".join(["struct la_context *context", *entered, *bases, *own])
    lines = [f"static LA_APART void {name}({parameters})", "{"]
    if scope.opaque:
        lines.append("    struct la_call call = {0};")
    lines += [f"    uint8_t *const {pointer} = {place};" for pointer, place in static.items()]
    lines += [f"    {line}" for line in shared_variables(scope)]
    outs = [f"    {_live_out(live, writer)}" for live in lifted.live_outs]
    mentioned = set(re.findall(r"\w+", "\n".join([*writer.before, *writer.lines, *outs])))
    for live in lifted.live_ins:
        if scope.names[live.value.number] in mentioned:
            lines += [f"    {line}" for line in _live_in(live, scope)]
    vectors = writer.vectors if isinstance(writer, PackWriter) else []
    lines += [f"    {kind} {name} = {{0}};" for kind, name in vectors]
    live_in_values = {live.value.number for live in lifted.live_ins}
    coded = [one for one in writer.context.links.codes if isinstance(one, Val | Var)]
    for number, ty in sorted(scope.variables.items()):
        if Var(number, ty) not in coded and (not isinstance(writer, PackWriter) or number not in writer.lane_of):
            lines.append(f"    {CTYPE[ty]} {writer.variable(Var(number, ty))} = 0;")
    kept = [one for one in coded if isinstance(one, Var) or one.number in scope.hoisted]
    lines += [f"    int64_t {name} = 0;" for name in sorted(map(writer.code_name, kept))]
    for number, ty in sorted(scope.hoisted.items()):
        if number not in live_in_values:
            lines.append(f"    {CTYPE[ty]} {writer.called(Val(number, ty))} = 0;")
    for hidden in writer.hidden.values():
        lines.append(f"    int64_t {hidden} = 0;")
        lines.append(f"    LA_UNKNOWN({hidden});")
    entered_slots = sorted({slot for one in writer.context.entered.values() for slot in range(one.slot, one.end)})
    given = ((writer.entered_name(slot), slot) for slot in entered_slots)
    lines += [f"    const int64_t {name} = entered[{slot}];" for name, slot in given if name in mentioned]
    brought = writer.context.brought.items()
    lines += [f"    const int64_t {writer.brought_name(value)} = entered[{one.slot}];" for value, one in brought]
    lines += _kept(writer)
    lines += writer.lines
    return "\n".join([*lines, *outs, "}"])


def _kept(writer: BodyWriter) -> list[str]:
    """The lines that make, once a call, indices of pointers that stay where they are. Where these are loaded again, any
    store may have changed them, for all that the compiler knows: so it is with the pointers of a source. They are static
    and take no register: a source has one for the record that its pointers are in anyway."""
    before = [f"    {line}" for line in writer.before]
    if not writer.kept:
        return before
    return [f"    static la_i64 kept[{len(writer.kept)}];", *before, "    LA_REACHED(kept);"]


def _live_in(live: LiveIn, scope: Scope) -> list[str]:
    name, ty = scope.names[live.value.number], live.value.ty
    if isinstance(live.location, Gpr):
        source = "context->in.fs_base" if live.location == FS_BASE else f"context->in.gpr[{live.location.number}]"
        if live.half is not None or ty in ("i1", "i8", "i16", "i32"):
            return [f"const {CTYPE[ty]} {name} = ({CTYPE[ty]})({source} >> {32 * (live.half or 0)});"]
        return [f"const {CTYPE[ty]} {name} = {'la_as_f64((int64_t)' if ty == 'f64' else '(int64_t)('}{source});"]
    at = 8 * live.location.index + 4 * (live.half or 0)
    return [f"{CTYPE[ty]} {name};", f"la_get(&{name}, &context->in, {live.location.number}, {at}, {BITS[ty] // 8});"]


def _live_out(live: LiveOut, writer: BodyWriter) -> str:
    ty, text = live.operand.ty, writer.text(live.operand)
    if isinstance(live.location, Gpr):
        register = "rip" if live.location == RIP else f"gpr[{live.location.number}]"
        place = f"(uint8_t *)&context->out.{register} + {4 * (live.half or 0)}"
    else:
        place = f"context->out.vector[{live.location.number}] + {8 * live.location.index + 4 * (live.half or 0)}"
    cell = "la_i8" if ty == "i1" else f"la_{ty}_u"
    return f"*({cell} *)({place}) = {text};" + ("" if not isinstance(live.operand, Imm) else " /* a constant */")


def base_arguments(lifted: Lifted, writer: BodyWriter) -> list[str]:
    """The arguments for the kernel's base pointers."""
    registers = {live.value.number: live.location for live in lifted.live_ins}
    found = [registers[number] for number in sorted(writer.bases)]
    return [f"(uint8_t *)context->in.gpr[{location.number}]" for location in found if isinstance(location, Gpr)]


def enter_text(
    entered: Collection[Entered], codes: Collection[EnteredCode], slots: int, links: Links, pieces: Pieces
) -> str:
    """The function that makes the indices that a call brings along, or the new addresses; empty where there are none."""
    if not slots:
        return ""
    lines = [f"LA_EXPORT const uint32_t la_entered = {slots};"]
    lines.append("LA_EXPORT void la_enter(const struct la_context *context, int64_t *entered)")
    lines.append("{")
    for one in {one.slot: one for one in entered}.values():
        structure = one.site.relayout.structure
        lines.append("    {")
        start = one.site.offset.const % (1 << 64)
        lines.append(f"        int64_t rest = (int64_t)(context->in.gpr[{one.register}] + UINT64_C({start:#x}));")
        if one.inside is not None:
            at = "rest" if structure.blocks else f"rest + {integer(structure.base, 'i64')}"
            lines.append(f"        entered[{one.inside}] = {within_text(at, structure)};")
        piece = pieces.get(structure.id)
        if structure.blocks or piece is not None:
            number = f"rest / {structure.dims[0].stride}"
            if structure.blocks:
                number = f"la_number({among(structure)}, {structure.element_bytes}, rest)"
            if piece is not None:
                number = f"(int64_t)context->buffers[{piece.buffer}] + {piece.step} * ({number})"
            lines += [f"        entered[{one.slot}] = {number}; /* from {structure.name} */", "    }"]
            continue
        for k, dim in enumerate(structure.dims):
            lines.append(f"        entered[{one.slot + k}] = rest / {dim.stride}; /* from {structure.name} */")
            lines.append(f"        rest %= {dim.stride};")
        lines.append("    }")
    for code in codes:
        old = f"(int64_t)context->in.gpr[{code.register}] - {code.shift}"
        lines.append(f"    entered[{code.slot}] = {coded_text('code_of', old, code.structure, links, pieces)};")
    return "\n".join([*lines, "}"])


def run_text(kernel: str, pointers: Sequence[str], slots: int) -> str:
    """The functions that call the kernel: with indices made by itself, and with those that were made before."""

    def call(*arguments: str) -> str:
        return f"    {kernel}({','.join(['context', *(f'{chr(10)}        {a}' for a in (*arguments, *pointers))])});"

    if not slots:
        return f"LA_EXPORT void la_run(struct la_context *context)\n{{\n{call()}\n}}"
    made = f"    int64_t entered[{slots}];\n    la_enter(context, entered);\n{call('entered')}"
    ready = f"LA_EXPORT void la_run_entered(struct la_context *context)\n{{\n{call('context->entered')}\n}}"
    return f"LA_EXPORT void la_run(struct la_context *context)\n{{\n{made}\n}}\n\n{ready}"
