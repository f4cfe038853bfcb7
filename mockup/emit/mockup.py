"""A whole mock-up as C: what the agent calls (``tracer/agent/abi.h``), written to be read by the report's reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from layout_advise import tracer
from layout_advise.errors import NotVectorisedError
from layout_advise.layoutalgebra.derive.structure import Axis, Candidate, Structure
from layout_advise.mockup.emit.arrays import loops, overlaps, pointers, recorders, still_known, wrongly_placed
from layout_advise.mockup.emit.copies import chosen_tables, copy_functions, map_function
from layout_advise.mockup.emit.frame import (
    Variant,
    base_arguments,
    buffer_specs,
    first_buffers,
    header,
    kernel_name,
    kernel_text,
    libm,
    mixes_products,
    run_text,
)
from layout_advise.mockup.emit.openmp_c import runtime_declarations
from layout_advise.mockup.emit.packs.find import nothing_packed, packed
from layout_advise.mockup.emit.packs.fmaddsub import keeps_lanes, mixed_together
from layout_advise.mockup.emit.packs.pack import Packs
from layout_advise.mockup.emit.packs.writer import PackWriter, in_one_piece
from layout_advise.mockup.emit.program import BodyWriter
from layout_advise.mockup.emit.scope import Scope, analyse, gathers, identifier
from layout_advise.mockup.emit.simd.block_loops import LaneLoopWriter
from layout_advise.mockup.emit.simd.iterations import SimdIterations, compared_bytes, side_by_side
from layout_advise.mockup.emit.simd.vector_slots import LaneWriter, lanes_text
from layout_advise.mockup.emit.statics import declarations, name, place, static_buffers
from layout_advise.mockup.emit.writer_state import EmitSettings
from layout_advise.mockup.evidence.binding import Access, accesses, bind
from layout_advise.mockup.ir.effects import FS_BASE, Gpr
from layout_advise.mockup.ir.lifted import Lifted, LiftedLoop
from layout_advise.mockup.remap.plan import RemapPlan, plan
from layout_advise.tracer.trace.trace import Trace


def include_directories() -> tuple[Path, ...]:
    """Where ``mockup.h`` and ``abi.h`` are: what a compiler needs by ``-I``."""
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


def emit(
    lifted: Lifted,
    candidate: Candidate | None,
    trace: Trace,
    structures: Sequence[Structure],
    *,
    variant: Variant = "plain",
    check: bool = False,
    wrong: bool | Literal["writes"] = False,
    offset: int = 0,
    varying: frozenset[int] = frozenset(),
    vector_bytes: int = 16,
    vectors: bool = True,
    blocks: Candidate | None = None,
    clang: bool = False,
) -> Emitted:
    """The C source of a mock-up; ``candidate`` None gives the identity.

    ``variant`` ``restrict`` promises the compiler that the new buffers' fields do not overlap, ``simd`` also that the
    iterations of the loops marked so are independent (:func:`layout_advise.mockup.rewrite.reroll.reroll` marks them).
    ``lanes`` promises what ``restrict`` does, and has a loop over a block's elements inside of what they share, in plain C.
    ``check`` records every reference and compares every new place with the map (slow). ``wrong`` reads elements at wrong
    places, in bounds, or writes them where nothing is read or ``"writes"`` is given: such a mock-up must fail the
    comparison. ``offset`` places the new buffers that many bytes (a multiple of 64) after the start of a page. ``varying``
    are the general registers of which the mock-up must not take the traced value for granted. ``vector_bytes`` is the width
    of the vector registers that the compiler's flags allow: of loops around others whose iterations are independent,
    ``simd`` runs as many side by side as fill one. ``vectors`` False: what was packed instructions is written lane by lane
    all the same. ``blocks``: loops are cut into blocks as for this candidate. ``clang``: it is going to compile this.
    Raises RemapError where an access does not decompose over the candidate's structure, NotVectorisedError where ``simd``
    or ``lanes`` is asked for and nothing in the hotspot can be told of or written so.
    """
    packs = Packs()
    turned = variant in ("simd", "lanes")
    abreast = turned and any(loop.abreast for loop in loops(lifted.body))
    if vectors and blocks is None and keeps_lanes(candidate) and not abreast:
        lifted = mixed_together(lifted)
        if not turned and not check and not wrong:
            lifted, packs = _packed(lifted, candidate, trace, structures, vector_bytes)
    binding = bind(lifted, trace, structures)
    placed = plan(lifted, candidate, binding)
    if blocks is not None:
        placed = replace(placed, blocks=plan(lifted, blocks, binding).blocks)
    relayouts = candidate.relayouts if candidate is not None else ()
    scope = analyse(lifted)
    settings = _settings(lifted, placed, trace, scope, variant, check, wrong, varying)
    # it makes at most eight checks at run time: enough for a mock-up with few pointers, not for the one array of the source
    settings.unrelated = clang
    parameters = pointers(relayouts, settings, blocks=variant == "plain" or any(p.along for p in placed.places.values()))
    settings.maps = {r.structure.id: f"map_{identifier(r.structure.name)}_{k}" for k, r in enumerate(relayouts)}
    refused = ""
    if turned and not check and not wrong:
        refused = _side_by_side(lifted, placed, settings, vector_bytes if variant == "simd" else None)
    writer: BodyWriter
    if packs.at:
        writer = PackWriter(scope, placed, binding, settings, packs)
    else:
        writer = (LaneLoopWriter if variant == "lanes" else LaneWriter)(scope, placed, binding, settings)
    writer.body(lifted.body)
    first = first_buffers(relayouts)
    pairs = overlaps(lifted.body, placed, settings)
    seen = variant == "plain" and not check and not wrong
    static = static_buffers(candidate, placed) if seen else frozenset()
    at = {pointer: (first[r] + b, o) for pointer, (r, b, o) in parameters}
    places = {pointer: place(relayouts, offset, b, o) for pointer, (b, o) in at.items() if b in static}
    kernel = kernel_name(lifted)
    sides = [(loop, settings.abreast[id(loop)]) for loop in loops(lifted.body) if id(loop) in settings.abreast]
    parts = [
        header(lifted, candidate, variant, check, wrong, refused),
        *(() if mixes_products(lifted) else ("#define LA_UNMIXED",)),
        (
            lanes_text(settings.lanes, vector_bytes, compared_bytes(sides))
            if settings.abreast and variant == "simd"
            else '#include "mockup.h"'
        )
        + ('\n#include "opaque.h"' if scope.opaque else ""),
        libm(scope),
        runtime_declarations(scope),
        declarations(relayouts, offset, static),
        buffer_specs(relayouts, offset, {k: name(k) for k in static}),
        chosen_tables(relayouts),
        *copy_functions(candidate, binding, placed, first),
        *(map_function(r, f, settings.maps[r.structure.id]) for r, f in zip(relayouts, first, strict=True) if check),
        kernel_text(lifted, scope, writer, kernel, list(at), variant, places),
        run_text(
            kernel,
            [
                *base_arguments(lifted, writer),
                *(f"context->buffers[{b}] + {o}" for p, (b, o) in at.items() if p not in places),
            ],
        ),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    unpacked = not turned and blocks is None and nothing_packed(lifted)
    return Emitted(text, bool(packs.at) and packs.all_of_them, unpacked, pairs, bool(settings.abreast or packs.at))


def _packed(
    lifted: Lifted, candidate: Candidate | None, trace: Trace, structures: Sequence[Structure], vector_bytes: int
) -> tuple[Lifted, Packs]:
    """With packs where the layout keeps them all in one piece: a compiler that finds them apart would look for others."""
    together, packs = packed(lifted, vector_bytes)
    whole = in_one_piece(packs, plan(together, candidate, bind(together, trace, structures)))
    return (together, packs) if whole else (lifted, Packs())


def _settings(
    lifted: Lifted,
    placed: RemapPlan,
    trace: Trace,
    scope: Scope,
    variant: Variant,
    check: bool,
    wrong: bool | Literal["writes"],
    varying: frozenset[int],
) -> EmitSettings:
    settings = EmitSettings(
        check,
        wrongly_placed(lifted, placed, wrong == "writes") if wrong else frozenset(),
        independent=variant == "simd",
        counters=frozenset(loop.counter for loop in loops(lifted.body)) if variant == "plain" and not check else frozenset(),
    )
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
    settings.gathers = gathers([a for a in accesses(lifted.body) if id(a) not in placed.places], scope)
    settings.known = frozenset(id(loop) for loop in loops(lifted.body) if loop.known and still_known(loop, placed))
    return settings


def emit_mockup(
    lifted: Lifted, candidate: Candidate | None, trace: Trace, structures: Sequence[Structure], **options: Any
) -> str:
    """The text alone of what :func:`emit` gives for the same arguments."""
    return emit(lifted, candidate, trace, structures, **options).text


def _side_by_side(lifted: Lifted, placed: RemapPlan, settings: EmitSettings, vector_bytes: int | None) -> str:
    """Settle which loops run elements side by side, and how many: as fill vectors of ``vector_bytes``, else as a block has;
    the reason where one of them cannot.

    Raises NotVectorisedError where that leaves nothing to be written so.
    """
    sizes: list[int] = []
    refused: NotVectorisedError | None = None
    for loop in (x for x in loops(lifted.body) if x.abreast):
        blocks = [a.block for x in accesses(loop.body) for a in _split(placed, x)]
        try:
            found = side_by_side(loop, lifted)
            if vector_bytes is None:
                _in_blocks(loop, found, blocks)
        except NotVectorisedError as error:
            refused = error
            continue
        settings.abreast[id(loop)] = found
        sizes.append(min([vector_bytes // found.size(loop.body) if vector_bytes else max(blocks), *blocks]))
    settings.lanes = min(sizes, default=1)
    left = sizes if vector_bytes is None else [x for x in loops(lifted.body) if x.independent]
    if refused is not None and not left:
        raise refused
    if vector_bytes is None and not sizes:
        what = "nothing is written by element of a block"
        raise NotVectorisedError(what, "there is no independent loop around others")
    return refused.line() if refused is not None else ""


def _in_blocks(loop: LiftedLoop, found: SimdIterations, blocks: Sequence[int]) -> None:
    """Raises NotVectorisedError where ``loop`` is not to be written by element of a block in plain C."""
    where = f"the loop at {loop.head:#x} is not written by element of a block"
    if found.masked:
        raise NotVectorisedError(where, "its iterations jump at different places")
    if not blocks or any(size & (size - 1) for size in blocks):
        raise NotVectorisedError(where, "what it accesses lies in no blocks of a power of two")


def _split(placed: RemapPlan, access: Access) -> list[Axis]:
    place = placed.places.get(id(access))
    return [a for p in place.pieces for a in p.map.axes if a.part == "mod"] if place is not None else []
