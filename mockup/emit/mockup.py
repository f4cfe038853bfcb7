"""A whole mock-up as C: what the agent calls (``tracer/agent/abi.h``), written to be read by the report's reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layout_advise import tracer
from layout_advise.errors import RemapError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.mockup.emit.arrays import (
    field_pointers,
    loops,
    misplaced_accesses,
    overlaps,
    recorders,
    still_known,
)
from layout_advise.mockup.emit.calls_c import runtime_declarations
from layout_advise.mockup.emit.copies import (
    block_tables,
    chosen_tables,
    copy_functions,
    map_function,
    place_function,
    value_function,
)
from layout_advise.mockup.emit.frame import (
    base_arguments,
    buffer_specs,
    enter_text,
    header,
    kernel_name,
    kernel_text,
    libm,
    mixes_products,
    run_text,
)
from layout_advise.mockup.emit.packs.byte_masks import byte_masks
from layout_advise.mockup.emit.packs.find import nothing_packed, packed
from layout_advise.mockup.emit.packs.fmaddsub import join_fmaddsub, keeps_lanes
from layout_advise.mockup.emit.packs.lined_up import in_one_piece
from layout_advise.mockup.emit.packs.pack import Packs
from layout_advise.mockup.emit.packs.writer import PackWriter
from layout_advise.mockup.emit.program import BodyWriter
from layout_advise.mockup.emit.scope import Scope, analyse, gathers, identifier
from layout_advise.mockup.emit.settings import EmitSettings
from layout_advise.mockup.emit.simd.block_loops import BlockLoopWriter
from layout_advise.mockup.emit.simd.chosen_loops import NO_SIMD_LOOPS, simd_loops
from layout_advise.mockup.emit.simd.iterations import compared_bytes
from layout_advise.mockup.emit.simd.vector_slots import VectorSlotWriter, vector_include
from layout_advise.mockup.emit.statics import NewArrays, declarations, name, new_arrays
from layout_advise.mockup.emit.writer_state import WriterContext
from layout_advise.mockup.evidence.binding import accesses, bind
from layout_advise.mockup.evidence.prefetched import prefetched
from layout_advise.mockup.ir.effects import FS_BASE, Gpr
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.remap.entered_indices import entered_codes, entered_sites, entry_registers, translated
from layout_advise.mockup.remap.kept_pointers import kept_pointers
from layout_advise.mockup.remap.links import NO_LINKS, find_links, pieces_of
from layout_advise.mockup.remap.plan import plan
from layout_advise.mockup.remap.reread_fields import of_one_type, read_where_used
from layout_advise.tracer.trace.trace import Trace

PLAIN = EmitSettings()
SSE = 16
"""Bytes of the vectors that every processor has: a check build is made with no flags."""


def include_directories() -> tuple[Path, ...]:
    """Returns where ``mockup.h`` and ``abi.h`` are: what a compiler needs by ``-I``."""
    return Path(__file__).parent, Path(str(tracer.__file__)).parent / "agent"


@dataclass(frozen=True, slots=True)
class Emitted:
    """A mock-up's C; whether what was packed in the original is statements of packs, all of it (``packs``), or nothing was
    (``unpacked``); and how many pairs of arrays a compiler has to show apart in one of its innermost loops."""

    text: str
    packs: bool
    unpacked: bool
    overlaps: int
    wide: bool
    """Whether there are vector types in it."""
    translated: frozenset[str] = frozenset()
    """Ids of structures (:func:`~layout_advise.mockup.remap.entered_indices.translated`)."""


def emit(
    lifted: Lifted,
    candidate: Candidate | None,
    trace: Trace,
    structures: Sequence[Structure],
    settings: EmitSettings = PLAIN,
) -> Emitted:
    """Returns the C source of a mock-up; ``candidate`` None gives the identity.

    Raises RemapError where an access does not decompose over the candidate's structure, or nothing can be read again as
    asked, NotVectorisedError where ``simd``
    or ``lanes`` is asked for and nothing in the hotspot can be told of or written so.
    """
    lifted, packs = _grouped(lifted, candidate, trace, structures, settings)
    if settings.reread and packs.at:
        raise RemapError("no mock-up that reads again", "several elements at once are vector statements")
    context = _context(lifted, candidate, trace, structures, settings)
    writer = _writer(context, packs, settings)
    writer.body(lifted.body)
    arrays = new_arrays(candidate, context.plan, context.pointers, settings)
    parts = [
        header(lifted, candidate, settings, context.simd.refused),
        *_head(lifted, context, arrays, settings),
        *_copies(candidate, context, arrays, settings),
        *_code(lifted, context, writer, arrays, settings),
    ]
    return Emitted(
        "\n\n".join(part for part in parts if part) + "\n",
        bool(packs.at) and packs.all_of_them,
        not settings.turned and settings.blocks is None and nothing_packed(lifted),
        overlaps(lifted.body, context.plan, context.pointers),
        bool(context.simd.abreast or packs.at),
        translated(context.plan, lifted, context.entered, context.links, context.kept, trace.accesses / max(1, trace.calls)),
    )


def _grouped(
    lifted: Lifted, candidate: Candidate | None, trace: Trace, structures: Sequence[Structure], settings: EmitSettings
) -> tuple[Lifted, Packs]:
    """``lifted`` with lanes of packed instructions together, as far as the layout keeps them so, and the packs."""
    abreast = settings.turned and any(loop.abreast for loop in loops(lifted.body))
    if not settings.vectors or settings.blocks is not None or not keeps_lanes(candidate) or abreast:
        return lifted, Packs()
    lifted = join_fmaddsub(lifted)
    if settings.turned or settings.compared:
        return lifted, Packs()
    together, packs = packed(lifted, settings.vector_bytes)
    # a compiler that finds some of them apart would look for others
    whole = in_one_piece(packs, plan(together, candidate, bind(together, trace, structures)))
    return (together, packs) if whole else (lifted, Packs())


def _context(
    lifted: Lifted, candidate: Candidate | None, trace: Trace, structures: Sequence[Structure], settings: EmitSettings
) -> WriterContext:
    """Returns what the writers read."""
    binding = bind(lifted, trace, structures)
    placed = plan(lifted, candidate, binding)
    if settings.blocks is not None:
        placed = replace(placed, blocks=plan(lifted, settings.blocks, binding).blocks)
    relayouts = candidate.relayouts if candidate is not None else ()
    scope = analyse(lifted)
    plain = settings.variant == "plain"
    maps = {r.structure.id: f"map_{identifier(r.structure.name)}_{k}" for k, r in enumerate(relayouts)}
    misplaced = settings.wrong and settings.wrong != "values"
    entered = {} if trace.threads else entered_sites(placed, lifted)
    links = NO_LINKS
    if _with_links(settings, trace):
        links = find_links(lifted, placed, candidate, words=settings.put, registers=entry_registers(lifted))
    again = read_where_used(lifted.body, placed, frozenset(scope.hoisted)) if settings.reread else frozenset()
    return WriterContext(
        scope,
        placed,
        binding,
        check=settings.check,
        wrong=misplaced_accesses(lifted, placed, settings.wrong == "writes") if misplaced else frozenset(),
        altered=misplaced_accesses(lifted, placed, writes=False) if settings.wrong == "values" else frozenset(),
        recorders=recorders(lifted) if settings.check and not settings.ends else {},
        pointers=field_pointers(relayouts, blocks=plain or any(p.along for p in placed.places.values())),
        maps=maps,
        watched=tuple(maps[r.structure.id] for r in relayouts if r.structure.via is None) if settings.ends else (),
        registers=_known_registers(lifted, trace, scope, settings.varying),
        gathers=gathers([a for a in accesses(lifted.body) if a.uid not in placed.places], scope),
        independent=settings.variant == "simd",
        counters=frozenset(loop.counter for loop in loops(lifted.body)) if plain and not settings.check else frozenset(),
        # clang makes at most eight checks at run time: enough for a mock-up with few pointers, not for one array
        unrelated=settings.clang,
        known=frozenset(loop.uid for loop in loops(lifted.body) if loop.known and still_known(loop, placed)),
        masks=byte_masks(lifted, SSE if settings.check else settings.vector_bytes),
        simd=simd_loops(lifted, placed, settings) if settings.turned and not settings.compared else NO_SIMD_LOOPS,
        entered=entered,
        kept={} if trace.threads else kept_pointers(placed, lifted, binding),
        links=links,
        prefetched=prefetched(lifted, binding),
        pieces=pieces_of(candidate) if plain and not trace.threads else {},
        brought=entered_codes(links, lifted, entered),
        again=again,
        typed=of_one_type(lifted.body, placed) if again else frozenset(),
    )


def _with_links(settings: EmitSettings, trace: Trace) -> bool:
    """Tells whether pointers may become numbers of elements: not where accesses are written side by side."""
    return settings.variant in ("plain", "restrict") and not trace.threads


def _known_registers(lifted: Lifted, trace: Trace, scope: Scope, varying: frozenset[int]) -> dict[int, int]:
    """By number of a live-in value, what the traced call had there; not of registers that differ from call to call."""
    return {
        live.value.number: trace.registers.gpr[live.location.number]
        for live in lifted.live_ins
        if isinstance(live.location, Gpr)
        and live.value.number in scope.live_ins
        and live.location != FS_BASE
        and live.location.number not in varying
        and not trace.threads
    }


def _writer(context: WriterContext, packs: Packs, settings: EmitSettings) -> BodyWriter:
    if packs.at:
        return PackWriter(context, packs)
    return BlockLoopWriter(context) if settings.variant == "lanes" else VectorSlotWriter(context)


def _head(lifted: Lifted, context: WriterContext, arrays: NewArrays, settings: EmitSettings) -> Iterator[str]:
    """Includes and declarations."""
    if not mixes_products(lifted):
        yield "#define LA_UNMIXED"
    if settings.ends:
        yield "#define LA_ENDS"
    include = '#include "mockup.h"'
    if context.simd.abreast and settings.variant == "simd":
        sides = [(loop, context.simd.abreast[loop.uid]) for loop in loops(lifted.body) if loop.uid in context.simd.abreast]
        include = vector_include(context.simd.slots, settings.vector_bytes, compared_bytes(sides))
    yield include + ('\n#include "opaque.h"' if context.scope.opaque else "")
    yield libm(context.scope)
    yield runtime_declarations(context.scope)
    yield declarations(arrays.relayouts, settings.offset, arrays.static)
    yield buffer_specs(arrays.relayouts, settings.offset, {k: name(k) for k in arrays.static})


def _copies(candidate: Candidate | None, context: WriterContext, arrays: NewArrays, settings: EmitSettings) -> Iterator[str]:
    """The functions that copy in and out, and those of the maps in a check build."""
    yield chosen_tables(arrays.relayouts)
    yield block_tables(arrays.relayouts)
    yield from copy_functions(candidate, context.binding, context.plan, arrays.first, context.links, context.pieces)
    if settings.check or settings.put:
        for relayout, first in zip(arrays.relayouts, arrays.first, strict=True):
            yield map_function(relayout, first, context.maps[relayout.structure.id])
    if settings.put and arrays.relayouts:
        yield place_function(arrays.relayouts, context.maps)
        yield value_function(arrays.relayouts, context.links, context.pieces)


def _code(
    lifted: Lifted, context: WriterContext, writer: BodyWriter, arrays: NewArrays, settings: EmitSettings
) -> Iterator[str]:
    """The kernel, and what calls it."""
    kernel = kernel_name(lifted)
    yield kernel_text(lifted, context.scope, writer, kernel, list(arrays.at), settings.variant, arrays.places)
    handed = (f"context->buffers[{b}] + {o}" for pointer, (b, o) in arrays.at.items() if pointer not in arrays.places)
    ends = [one.end for one in context.entered.values()] + [one.end for one in context.brought.values()]
    slots = max(ends, default=0)
    yield enter_text(context.entered.values(), context.brought.values(), slots, context.links, context.pieces)
    yield run_text(kernel, [*base_arguments(lifted, writer), *handed], slots)
