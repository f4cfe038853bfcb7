"""The structure that every lifted access belongs to, proved by the trace.

An access (``Load``, ``Store``, ``Atomic``) is tied by ``(pc, operand)`` to a traced reference; its own address is the traced
one plus its ``part``. Registers that happen to hold the right value prove nothing (they once made a wrong binding look
verified), the traced addresses do. One instruction may also reach a structure and other memory in turn, where the program
has one type for both, or its compiler one piece of code: which of them is then told by each address at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.sets.nests import FoldedStream, Stream
from layout_advise.layoutalgebra.sets.spans import spans
from layout_advise.mockup.evidence.pools import PoolPart, part_in_pool
from layout_advise.mockup.evidence.streams import distinct, hull, meets, part_in, residues
from layout_advise.mockup.ir.effects import BITS
from layout_advise.mockup.ir.lifted import Atomic, Executed, Item, Lifted, LiftedLoop, Load, Store
from layout_advise.mockup.machine.openmp_runtime import retried
from layout_advise.tracer.trace.trace import Reference, Trace

Access = Load | Store | Atomic
Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Binding:
    """``structure_of[(pc, operand)]`` is the id of the structure that reference belongs to (absent: none of them alone).

    ``reference_of`` gives the traced reference and ``streams`` its addresses (in one of ``pools`` those where its elements
    are thought to lie); ``impossible`` maps structure ids to the reason why no candidate of that structure can be built.
    """

    reference_of: dict[Key, Reference]
    streams: dict[Key, Stream]
    structure_of: dict[Key, str]
    impossible: dict[str, str]
    shared: dict[Key, Mapping[str, Stream]] = field(default_factory=dict)
    """By reference that reaches structures and other memory too: by id of each of them the addresses that lie in it."""
    pools: frozenset[str] = frozenset()
    """Ids of the structures whose elements lie in several blocks: where they are thought to lie is no place in memory."""

    def pooled(self, key: Key) -> bool:
        """Returns whether the addresses of a reference in ``streams`` are only thought ones."""
        return self.structure_of.get(key, "") in self.pools

    def keys_of(self, name: str) -> list[Key]:
        """Every reference that reaches the structure ``name``, alone or among other memory."""
        alone = [key for key, one in self.structure_of.items() if one == name]
        return alone + [key for key, parts in self.shared.items() if name in parts]

    def reached_by(self, key: Key) -> tuple[str, ...]:
        """The ids of all structures that a reference reaches; an empty one stands for other memory beside them."""
        alone = self.structure_of.get(key)
        return (*self.shared.get(key, ()), "") if alone is None else (alone,)

    def stream_in(self, key: Key, name: str) -> Stream:
        """The addresses of a reference that lie in the structure ``name``, which it reaches."""
        return self.shared[key][name] if key in self.shared else self.streams[key]

    def times_in(self, key: Key, name: str) -> tuple[int, int]:
        """How often at least and at most a reference accesses the structure ``name``, which it reaches."""
        part = self.stream_in(key, name)
        exact = key not in self.shared or isinstance(part, FoldedStream)
        return distinct(part), part.count if exact else self.streams[key].count


def key_of(access: Access) -> Key:
    """The traced reference's (pc, operand)."""
    return access.origin.pc, access.operand


def executed(access: Access) -> tuple[Executed, ...]:
    """The (pc, operand, part) of all references that the access stands for: its own, or those of its lanes."""
    return tuple(lane for lane in access.lanes if lane is not None) or ((*key_of(access), access.part),)


def keys_made(body: Sequence[Item]) -> frozenset[Key]:
    """The (pc, operand) of every reference that the statements stand for."""
    return frozenset((pc, operand) for access in accesses(body) for pc, operand, _ in executed(access))


def access_bytes(access: Access) -> int:
    """Size of the access in bytes."""
    return BITS[access.value.ty if isinstance(access, Load) else access.ty] // 8


def accesses(body: Sequence[Item]) -> Iterator[Access]:
    """Every load, store and atomic operation of a body, loops included, in textual order."""
    for item in body:
        if isinstance(item, Load | Store | Atomic):
            yield item
        elif isinstance(item, LiftedLoop):
            yield from accesses(item.body)


def span(structure: Structure) -> tuple[int, int]:
    """First address of the structure's grid and the first after its memory object."""
    return structure.base, (structure.block_base or structure.base) + structure.bytes


def grid_range(structure: Structure) -> tuple[int, int]:
    """First address of the structure's grid and the first after it, or after its memory object."""
    low, end = span(structure)
    return low, min(end, low + structure.dims[0].count * structure.dims[0].stride)


def in_frames(stream: Stream, trace: Trace) -> bool:
    """Returns whether a reference of several threads stays in the frames that they have in the region: the bounds of these
    together would span all that lies between the threads' stacks."""
    return all(any(t.owns(s.low) and t.owns(s.high) for t in trace.threads) for s in spans(stream))


def bind_references(trace: Trace, structures: Sequence[Structure]) -> Binding:
    """Binds every traced reference to the structure that all its addresses lie in, or to those that some lie in; problems
    end in ``impossible``."""
    references = {(r.pc, r.operand): r for r in trace.references}
    streams = {
        (r.pc, r.operand): s for r, s in zip(trace.references, trace.streams, strict=True) if s is not None and s.count
    }
    structure_of: dict[Key, str] = {}
    shared: dict[Key, Mapping[str, Stream]] = {}
    impossible = {s.id: s.inexact for s in structures if s.inexact is not None}
    several = frozenset(s.id for s in structures if s.blocks)
    pools = _pools_reached(streams, references, structures)
    structures = [s for s in structures if not s.blocks]
    for key, stream in tuple(streams.items()):
        if trace.threads and in_frames(stream, trace):
            continue
        low, high = hull(stream)
        high += references[key].bytes
        reached = pools.get(key, {})
        alone = next(((name, part.stream) for name, part in reached.items() if part is not None and part.whole), None)
        if alone is not None:
            structure_of[key], streams[key] = alone
            continue
        touched = [s for s in structures if low < span(s)[1] and high > span(s)[0]]
        if len(touched) > 1 or (touched and not span(touched[0])[0] <= low < high <= span(touched[0])[1]):
            met = meets(stream, references[key].bytes, tuple(range(*span(s)) for s in touched))
            touched = [s for s, one in zip(touched, met, strict=True) if one]
        if not reached and len(touched) == 1 and low >= span(touched[0])[0] and high <= span(touched[0])[1]:
            structure_of[key] = touched[0].id
            continue
        parts = {s.id: _part_in(stream, references[key].bytes, s) for s in touched}
        parts |= {name: part.stream if part is not None else None for name, part in reached.items()}
        shared[key] = {name: part for name, part in parts.items() if part is not None and part.count}
        for name in (name for name, part in parts.items() if part is None):
            what = "other memory too" if len(parts) == 1 else "another structure too"
            why = f"the reference at {key[0]:#x} touches {what}, and where is not known or lies across its border"
            impossible.setdefault(name, why)
    return Binding(
        references, streams, structure_of, impossible, {key: parts for key, parts in shared.items() if parts}, several
    )


def _pools_reached(
    streams: Mapping[Key, Stream], references: Mapping[Key, Reference], structures: Sequence[Structure]
) -> dict[Key, dict[str, PoolPart | None]]:
    """By reference the structures of several blocks that it reaches, with what it accesses of them."""
    found: dict[Key, dict[str, PoolPart | None]] = {}
    for pool in (s for s in structures if s.blocks):
        first, end = pool.blocks[0].address, pool.blocks[-1].address + pool.blocks[-1].count * pool.element_bytes
        for key, stream in streams.items():
            low, high = hull(stream)
            if low < end and high + references[key].bytes > first:
                part = part_in_pool(stream, references[key].bytes, pool)
                if part is None or part.stream.count:
                    found.setdefault(key, {})[pool.id] = part
    return found


def _part_in(stream: Stream, size: int, structure: Structure) -> Stream | None:
    """The accesses of ``size`` bytes that lie in the structure; None where that is not known, or no address tells it: some
    are astride its border, or in its memory beside the grid; or it is reached through pointers, and has no place."""
    low, high = grid_range(structure)
    left_over = high < span(structure)[1] and any(meets(stream, size, (range(high, span(structure)[1]),)))
    return None if structure.via is not None or left_over else part_in(stream, size, low, high)


def touched_bytes(stream: Stream, size: int, structure: Structure) -> frozenset[int] | None:
    """The bytes of the structure's elements, from the start of each, that accesses of ``size`` bytes touch; None where the
    addresses are not known exactly."""
    at = residues(stream, structure.base, structure.element_bytes)
    return None if at is None else frozenset((start + k) % structure.element_bytes for start in at for k in range(size))


def _keeps_place(binding: Binding, key: Key, structure: Structure) -> bool:
    """Tells whether a reference goes to members only that no layout moves."""
    cold = {b for one in structure.cold for b in one.place}
    if not cold:
        return False
    touched = touched_bytes(binding.stream_in(key, structure.id), binding.reference_of[key].bytes, structure)
    return touched is not None and touched <= cold


def bind(lifted: Lifted, trace: Trace, structures: Sequence[Structure]) -> Binding:
    """Binds every access of ``lifted``; problems end in ``impossible``, never in a guess."""
    binding = bind_references(trace, structures)
    structure_of, impossible = binding.structure_of, binding.impossible
    for key in retried(lifted.body):
        why = f"the compare-and-swap at {key[0]:#x} updates it, and how often it is tried again differs from run to run"
        for name in filter(None, binding.reached_by(key)):
            impossible.setdefault(name, why)
    lifted_keys = keys_made(lifted.body)
    left_out = {(pc, operand) for pc, operand, _ in lifted.skipped}
    reached = [*structure_of.items(), *((key, name) for key, parts in binding.shared.items() for name in parts)]
    by_id = {one.id: one for one in structures}
    for key, name in reached:
        if lifted.runs_natively(key[0]):
            if _keeps_place(binding, key, by_id[name]):
                continue
            impossible.setdefault(name, f"the reference at {key[0]:#x} is made by a call that stays a call")
        elif key not in lifted_keys and key not in left_out:
            impossible.setdefault(name, f"the traced reference at {key[0]:#x} is not in the lifted code")
    return binding
