"""The observation of one call: trace, memory objects, structures with their layout terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from layout_advise import machine
from layout_advise.layoutalgebra.derive.accesses import Access, Derived, MemoryObjectShape
from layout_advise.layoutalgebra.derive.companion_arrays import records_beside
from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.layoutalgebra.derive.derive import derive_structure, unknown
from layout_advise.layoutalgebra.derive.other_sizes import has_other_rows, of_other_sizes
from layout_advise.layoutalgebra.derive.structure import Chosen, Structure
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.layoutalgebra.sets.spans import spans, within
from layout_advise.mockup.evidence.pointer_tables import PointerTable
from layout_advise.observe.other_users import Usage
from layout_advise.observe.policy import OBSERVE
from layout_advise.observe.shared_lines import SharedObject, shared_objects
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.folding.merge_threads import merged
from layout_advise.tracer.objects.attribution import Attribution, attribute
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.objects.sharing import find_sharing
from layout_advise.tracer.process.stopped_program import Range, StoppedProgram
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Trace

RSP = 4


@dataclass(frozen=True, slots=True)
class Observation:
    """One traced call. ``trace`` is that of ``team`` (all threads of a parallel region apart) merged, where there is one.
    ``written`` and ``touched`` are the hulls of what it stores to and of all that it accesses, without
    the stack frames below the entry, in whole cache lines."""

    region: Region
    trace: Trace
    derived: tuple[Derived, ...]
    written: tuple[Range, ...]
    touched: tuple[Range, ...]
    indexed: frozenset[str] = frozenset()
    """Ids of the structures that the code reaches through a loaded index."""
    used_part: Mapping[str, float] = field(default_factory=dict)
    """By id of such a structure: which part of its elements the call uses, where that is known exactly."""
    runs: frozenset[str] = frozenset()
    """Ids of those of which the call uses one run of neighbours."""
    filled: Mapping[str, float] = field(default_factory=dict)
    """By id of such a structure: which part of the memory with elements that the call uses these fill, by lines or pages."""
    scattered: int = 0
    """How many heap blocks one reference reaches, where these are many: objects allocated one by one."""
    chosen: Mapping[str, Chosen] = field(default_factory=dict)
    """By id: the elements used, where they are at most one of each few neighbours."""
    team: Trace | None = None
    shared: tuple[SharedObject, ...] = ()
    """False sharing between the threads of a parallel region."""
    varying: frozenset[int] = frozenset()
    """General registers that differ at the entries of the traced calls, where it is a batch of them."""
    put: tuple[Range, ...] = ()
    """The cache lines in which the program writes what these calls touch, between them."""
    puts: int | None = None
    """How many words of these are put back between the calls of a batch; None where it is not known what is written."""
    attribution: Attribution | None = None
    """Which objects the trace touches, those that are not worth a structure included."""
    users: Mapping[str, Usage] = field(default_factory=dict)
    """By id: who else of the program uses it between the calls."""
    tables: Mapping[str, PointerTable] = field(default_factory=dict)
    """By id of a structure: the pointers through which its elements are reached."""
    refused: tuple[str, ...] = ()
    """What looks like an array of pointers to scattered objects and cannot be gathered, and why."""
    exchanged: tuple[frozenset[str], ...] = ()
    """Ids of structures that take each other's place from call to call (double buffers): they are re-laid alike."""

    @property
    def structures(self) -> tuple[Structure, ...]:
        """The structures of ``derived``."""
        return tuple(d.structure for d in self.derived)

    @property
    def met(self) -> frozenset[int]:
        """The start addresses of the objects with falsely shared lines."""
        return frozenset(s.object.element_base or s.object.base for s in self.shared)

    @property
    def terms(self) -> int:
        """Number of nodes of the folded trace."""
        return sum(count_nodes(stream) for stream in self.trace.streams)


def count_nodes(stream: object) -> int:
    """Nodes of one folded stream; a set counts as one."""
    if stream is None:
        return 0
    nodes = getattr(stream, "nodes", None)
    return 1 if nodes is None else sum(_nodes(node) for node in nodes)


def _nodes(node: object) -> int:
    return 1 + sum(_nodes(child) for child in getattr(node, "body", ()))


def observe(
    program: StoppedProgram, main: ElfBinary, region: Region, call: int, max_refs: int, work: Path | None = None
) -> Observation:
    """Trace the call that ``program`` is about to make with the clone and derive the structures it touches. The raw records
    lie in ``work`` meanwhile."""
    return observed(program, main, region, trace_call(program, region, call, max_refs, folder=work))


def observed(program: StoppedProgram, main: ElfBinary, region: Region, trace: Trace) -> Observation:
    """The structures that the traced call touches; ``program`` is parked at it."""
    attribution = attribute(trace, main, program.read)
    left_out = _scattered(attribution)
    shared = shared_objects(find_sharing(trace), attribution, trace) if trace.threads else ()
    met = {s.object.base for s in shared}
    data = (
        o
        for number, o in enumerate(attribution.objects)
        if is_data(o, least=1 if o.base in met else OBSERVE.least_bytes) and number not in left_out
    )
    parts: list[list[Part]] = [[(obj, attribution, trace)] for obj in data]
    derived = tuple(derive(part[0][0], number, part) for number, part in enumerate(parts))
    derived = with_records(derived, parts)
    own = trace.registers.gpr[RSP] + (8 if region.kind == "function" else 0)  # return address and frame; a loop has none
    written, touched = _ranges(trace, own, writes=True), _ranges(trace, own, writes=False)
    return Observation(
        region,
        merged(trace),
        derived,
        written,
        touched,
        team=trace if trace.threads else None,
        shared=shared,
        attribution=attribution,
        scattered=scattered_blocks(attribution),
    )


def _scattered(attribution: Attribution) -> frozenset[int]:
    """The numbers of the heap blocks that are objects allocated one by one: all their references reach many, and none of
    them holds a good part of what these hold, as an arena beside objects of their own does."""
    many = frozenset(n for n, touches in enumerate(attribution.touches) if len(touches) >= OBSERVE.scattered)
    objects = enumerate(attribution.objects)
    found = {n: o.bytes for n, o in objects if o.kind == "heap" and many.issuperset(o.references)}
    least = OBSERVE.arena * sum(found.values())
    return frozenset(number for number, size in found.items() if size < least)


def scattered_blocks(attribution: Attribution) -> int:
    """How many heap blocks the reference touches that touches most of them; 0 where no reference touches many."""
    heap = [obj.kind == "heap" for obj in attribution.objects]
    most = max((sum(heap[t.object] for t in touches) for touches in attribution.touches), default=0)
    return most if most >= OBSERVE.scattered else 0


def is_data(obj: MemoryObject, least: int = OBSERVE.least_bytes) -> bool:
    """Tells whether the object is data that could be laid out differently: not a frame, not a few scalars (of which there
    are many enough where threads fight for them), and there before the call."""
    pool = obj.kind == "global" and obj.type is None and obj.name.startswith(".")  # a section, not a variable
    return obj.kind != "stack" and obj.bytes >= least and not pool and obj.life != "born"


def united(seen: Observation, regions: Sequence[Observation], calls: Sequence[Observation] = ()) -> Observation:
    """``seen`` with its structures as those of other ``regions``, and other ``calls`` of its own region, use them too; what
    only these use is left out. Counts of accesses are then those of one call of each. Not of other calls that have the same
    structure with rows of another length: it has the sizes of ``seen`` then."""
    derived, every = [], []
    for one in seen.derived:
        name, base = one.structure.id, one.structure.block_base or one.structure.base
        alike = (o for o in calls if not _in_other_sizes(one.structure, o))
        parts = [part for o in (seen, *alike, *regions) if (part := object_at(o, base, one.structure.bytes)) is not None]
        derived.append(derive(parts[0][0], int(name[1:]), parts) if len(parts) > 1 else one)
        every.append(parts)
    return replace(seen, derived=with_records(derived, every))


def _in_other_sizes(structure: Structure, other: Observation) -> bool:
    """Tells whether another call has a structure in its block with rows of another length, and nothing else of it."""
    there = [s for s in other.structures if (s.block_base, s.bytes) == (structure.block_base, structure.bytes)]
    return any(has_other_rows(structure, s) and of_other_sizes(structure, s) is not None for s in there)


def references_of(seen: Observation, named: Observation | None = None) -> dict[str, frozenset[tuple[int, int]]]:
    """The references that touch each structure of ``named`` (by default of ``seen`` itself) in the call that ``seen`` is of:
    addresses of instructions and numbers of their operands, by the structure's id."""
    found: dict[str, frozenset[tuple[int, int]]] = {}
    for one in (named or seen).structures:
        part = object_at(seen, one.block_base or one.base, one.bytes)
        if part is not None:
            touched, _, trace = part
            found[one.id] = frozenset((trace.references[n].pc, trace.references[n].operand) for n in touched.references)
    return found


def object_at(seen: Observation, base: int, size: int) -> Part | None:
    """The memory object of ``size`` bytes at ``base``, and which references of the trace touch it."""
    if seen.attribution is None:
        return None
    found = (o for o in seen.attribution.objects if (o.base, o.bytes) == (base, size))
    return next(((o, seen.attribution, seen.team or seen.trace) for o in found), None)


Part = tuple[MemoryObject, Attribution, Trace]


def with_records(derived: Sequence[Derived], parts: Sequence[Sequence[Part]]) -> tuple[Derived, ...]:
    """``derived`` from ``parts``, once more where others show that plain numbers are records."""
    if all(d.steps == 1 for d in derived):
        return tuple(derived)
    accesses = {d.structure.id: accesses_to(part)[0] for d, part in zip(derived, parts, strict=True)}
    records = records_beside(derived, accesses)
    return tuple(
        derive(part[0][0], int(d.structure.id[1:]), part, records.get(d.structure.id, 0)) if d.structure.id in records else d
        for d, part in zip(derived, parts, strict=True)
    )


def derive(obj: MemoryObject, number: int, parts: Sequence[Part], record: int = 0) -> Derived:
    """The structure of one memory object, from the references that touch it, in each of the traces of ``parts``; of records
    of that size, where it is known."""
    accesses, inexact = accesses_to(parts)
    base = obj.element_base or obj.base
    shape = MemoryObjectShape(
        f"s{number}",
        obj.name,
        base,
        obj.base + obj.bytes - base,
        obj.kind,
        obj.type.name if obj.type else None,
        obj.alloc_site,
    )
    if not accesses:
        return unknown(shape, inexact)
    found = derive_structure(shape, accesses, obj.type, inexact=inexact, record=record)
    type_, structure = obj.type, found.structure
    if type_ is None or structure.type is None or structure.element_bytes == type_.element_bytes or structure.count <= 1:
        return found
    return replace(found, structure=replace(structure, type=_several(type_, structure.element_bytes)))


def _several(declared: Declared, element: int) -> str | None:
    """The type's name for elements that are not the declared ones: so many of these, or (parts of one, say) of no type with
    a name."""
    times, rest = divmod(element, declared.element_bytes) if declared.element_bytes else (0, 1)
    return f"{declared.name}[{times}]" if not rest else None


def accesses_to(parts: Sequence[Part]) -> tuple[list[Access], str | None]:
    """The accesses to a memory object, and why they do not tell its structure exactly."""
    accesses: list[Access] = []
    inexact: str | None = None
    for touched, attribution, trace in parts:
        if trace.truncated:
            inexact = inexact or f"the trace was cut after {trace.accesses} accesses"
        for reference in touched.references:
            stream = trace.streams[reference]
            assert stream is not None
            mixed = attribution.mixed(reference)
            stream = within(stream, touched.base, touched.end) if mixed else stream
            if stream is None:
                inexact = inexact or f"the reference at {trace.references[reference].pc:#x} touches other memory too"
                continue
            inexact = inexact or _doubt(touched, attribution, reference, stream, trace)
            accesses.append(Access(stream, trace.references[reference].bytes, trace.references[reference].kind))
    return accesses, inexact


def _ranges(trace: Trace, top: int, *, writes: bool) -> tuple[Range, ...]:
    stack = next((m for m in trace.mappings if m.start <= top < m.end), None)
    found: list[Range] = []
    mapped = [(m.start, m.end) for m in trace.mappings]
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        if stream is None or (writes and reference.kind == "read"):
            continue
        for span in spans(stream):
            below = stack is not None and stack.start <= span.low < top
            below = below or any(thread.owns(span.low) for thread in trace.threads)
            if not below:
                found += _mapped(span.low, span.high + reference.bytes, mapped)
    return merge(found)


def _doubt(obj: MemoryObject, attribution: Attribution, number: int, part: Stream, trace: Trace) -> str | None:
    """Why a reference's accesses ``part`` to the object are not known exactly. What it does to other memory beside is no
    reason: blocks that come and go there, memory that the call gets."""
    why = attribution.inexact[number]
    if why is None or not attribution.mixed(number) or obj.life in ("freed", "born"):
        return why
    crosses = any(span.high + trace.references[number].bytes > obj.end for span in spans(part))
    return why if crosses else None


def _mapped(low: int, high: int, mapped: Sequence[tuple[int, int]]) -> Iterator[Range]:
    """What is there of ``low`` .. ``high``: the bounds of addresses whose set is not known may lie in different mappings."""
    parts = [Range(max(low, start), min(high, end)) for start, end in mapped if start < high and low < end]
    yield from parts or [Range(low, high)]


def merge(ranges: Sequence[Range], line: int = 64) -> tuple[Range, ...]:
    """Ranges rounded out to cache lines, sorted, those that overlap or touch joined."""
    rounded = sorted((r.start // line * line, -(-r.end // line) * line) for r in ranges if r.end > r.start)
    merged: list[tuple[int, int]] = []
    for start, end in rounded:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return tuple(Range(start, end) for start, end in merged)


def density(seen: Observation, derived: Derived) -> float:
    """The part of the elements that an index picks from which the call touches; 1 where that is not known, or has no
    term."""
    name = derived.structure.id
    picked = derived.term is not None and name in seen.indexed and name not in seen.runs
    return seen.used_part.get(name, 1.0) if picked else 1.0


def is_beyond_the_l2(seen: Observation) -> bool:
    """Tells whether a call touches more than the L2 of the cores that work on it holds: what lies beyond, others use as
    well."""
    cache = _l2_bytes()
    threads = len(seen.team.threads) if seen.team is not None else 1
    return bool(cache) and sum(r.end - r.start for r in seen.touched) > threads * cache


def leaves_data(seen: Observation) -> bool:
    """Tells whether other calls use other elements than this one, and all together more than the L2 holds: then what a call
    leaves in the caches is not what the next one needs."""
    return any(density(seen, d) <= OBSERVE.most_touched and d.structure.bytes > _l2_bytes() for d in seen.derived)


def _l2_bytes() -> int:
    """Of one core's; 0: not known."""
    return machine.caches().get((2, "Unified"), 0)
