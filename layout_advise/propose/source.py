"""The source of the mock-ups of one call: its lifted code in all forms, its trace, its structures and its compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout, Structure
from layout_advise.mockup.emit import kernel_name
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.kept_calls import kept_calls
from layout_advise.mockup.evidence.pointer_tables import PointerTable, covering
from layout_advise.mockup.evidence.pools import pieces_of, spans_of
from layout_advise.mockup.ir.data_branches import branches_on_data
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.rewrite.frame_variables import frame_variables
from layout_advise.mockup.rewrite.passes import rewrite
from layout_advise.mockup.run.code_placement import InnerLoop, hot_loop
from layout_advise.observe.observe import Observation, is_beyond_the_l2
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.recipes import Code
from layout_advise.tracer.code.calls_out import calls_unseen
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.stopped_program import Range, Strided
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.source_names import in_source
from layout_advise.tracer.program.symbols import Function
from layout_advise.tracer.trace.trace import Trace

LONGEST_LOOP = 4096
"""Bytes; longer loops are not compared with those of the mock-ups."""


@dataclass(frozen=True, slots=True)
class Source:
    """The traced code of one call, ready to be written in other layouts. ``trace`` is that of ``team``, where there is one,
    merged."""

    code: Code
    lifted: Lifted
    trace: Trace
    structures: tuple[Structure, ...]
    compiler: Compiled
    team: Trace | None = None
    tables: Mapping[str, PointerTable] = field(default_factory=dict)
    varying: frozenset[int] = frozenset()
    put: tuple[Range, ...] = ()
    """Where the program writes between the calls of a batch: mock-ups tell where their layouts have it."""
    loop: InnerLoop | None = None
    """The short loop in which the hotspot spends its time; None where it has none."""
    long_loop: InnerLoop | None = None
    """The same, where that may be a long one."""
    module: ElfBinary | None = None
    """The file that the code is from, loaded at ``load_base``: what names in sentences are taken from."""
    load_base: int = 0
    branches: bool = False
    """Whether the way that the code takes depends on the data."""
    hangs_on_place: bool = False
    """Whether times depend on where the code lies (:func:`depends_on_place`)."""
    region: Region | None = None
    """The original's machine code."""

    @property
    def kernel(self) -> str:
        """The C function that holds the loops of a mock-up."""
        return kernel_name(self.lifted)

    @property
    def as_lifted(self) -> Code:
        """The code before it was rewritten: its accesses are those of the trace, one by one."""
        return Code(self.lifted, self.lifted, self.code.gathered)

    def told(self, reason: str) -> str:
        """A reason with addresses and names of machine code as the source has them."""
        return in_source(reason, self.module, self.load_base) if self.module is not None else reason

    def forbidden(self, candidate: Candidate | None) -> tuple[Range, ...]:
        """The memory that a mock-up of ``candidate`` must not touch: see :func:`forbidden`."""
        return forbidden(candidate, self.tables)

    def guarded(self, candidate: Candidate | None) -> tuple[Range | Strided, ...]:
        """What is guarded while it is compared: all of that; where calls stay calls, which may use members that keep their
        places, only those that are re-laid."""
        if candidate is None or not kept_calls(self.lifted):
            return self.forbidden(candidate)
        parts = [members_of(r) or forbidden(replace(candidate, relayouts=(r,)), self.tables) for r in candidate.relayouts]
        return tuple(item for part in parts for item in part)


def source_of(seen: Observation, lifted: Lifted, module: ElfBinary, function: Function, *, verify: bool = False) -> Source:
    """The source of mock-ups for the observed call; ``verify``: the lifted form is checked after each pass."""
    unseen = calls_unseen(seen.region, seen.trace.untaken, seen.trace.called)
    lifted = frame_variables(lifted, Evidence.of(seen.trace, seen.structures), unseen)
    loop, branches = hot_loop(seen.region, seen.trace), branches_on_data(lifted)
    hangs = depends_on_place(seen, branches, loop)
    known = compiler_of(module, function)
    compiler = replace(known, short=loop is not None, last=known.family.own_alignment if hangs else ())
    return Source(
        code_of(seen, lifted, verify=verify),
        lifted,
        seen.trace,
        seen.structures,
        compiler,
        team=seen.team,
        tables=seen.tables,
        varying=seen.varying,
        put=seen.put,
        loop=loop,
        long_loop=hot_loop(seen.region, seen.trace, LONGEST_LOOP),
        module=module,
        load_base=seen.region.load_base,
        branches=branches,
        hangs_on_place=hangs,
        region=seen.region,
    )


def depends_on_place(seen: Observation, branches: bool, loop: InnerLoop | None) -> bool:
    """Tells whether times depend on where the code lies: how well a processor predicts branches on data changes with their
    addresses, and how fast it fetches a short loop with where that begins in a cache line. Beyond the L2 it waits for the
    data instead."""
    return branches or (not is_beyond_the_l2(seen) and loop is not None)


def compiler_of(module: ElfBinary, function: Function) -> Compiled:
    """The compiler of the program's code with the flags that it was given."""
    known = module.compiler(function)
    return Compiled(known.executable or "gcc", known.flags)


def code_of(seen: Observation, lifted: Lifted, *, verify: bool = False) -> Code:
    """The lifted hotspot in both forms, as far as the trace of ``seen`` shows them to be the same."""
    image = open_image(seen.region.path, seen.region.load_base)
    forms = rewrite(lifted, Evidence.of(seen.trace, seen.structures, image.read), seen.tables, verify=verify)
    return Code(lifted.as_pointers or lifted, forms.elements, forms.gathered, forms.rolled)


def members_of(layout: Relayout) -> tuple[Strided, ...]:
    """The members that ``layout`` re-lays, of all elements, neighbours together; empty where no others keep their places, or
    where the elements do not follow each other."""
    structure, runs = layout.structure, list[tuple[int, int]]()
    for lo, hi in sorted((f.offset, f.offset + f.bytes) for f in structure.fields):
        if runs and runs[-1][1] == lo:
            runs[-1] = runs[-1][0], hi
        else:
            runs.append((lo, hi))
    step = structure.element_bytes
    in_a_row = all(a.stride == b.count * b.stride for a, b in pairwise(structure.dims))
    if not structure.placed or layout.chosen is not None or not in_a_row or runs == [(0, step)]:
        return ()
    end = structure.base + structure.count * step
    return tuple(Strided(structure.base + lo, end, step, hi - lo) for lo, hi in runs)


def forbidden(candidate: Candidate | None, tables: Mapping[str, PointerTable] | None = None) -> tuple[Range, ...]:
    """The memory that a mock-up of ``candidate`` must not touch: the structures that it re-lays. Of objects reached through
    pointers (``tables`` by structure) the largest pieces that they make up."""
    layouts = candidate.relayouts if candidate is not None else ()
    found = []
    for structure in (r.structure for r in layouts):
        if structure.via is not None:
            pieces = covering(tables[structure.id]) if tables and structure.id in tables else ()
            found += [Range(*piece) for piece in pieces]
        elif structure.blocks:
            found += [Range(*piece) for piece in pieces_of(*spans_of(structure))]
        else:
            found.append(Range(structure.base, (structure.block_base or structure.base) + structure.bytes))
    return tuple(found)
