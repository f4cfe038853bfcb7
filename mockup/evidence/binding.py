"""The structure that every lifted access belongs to, proved by the trace.

An access (``Load``, ``Store``, ``Atomic``) is tied by ``(pc, operand)`` to a traced reference; its own address is the traced
one plus its ``part``. Registers that happen to hold the right value prove nothing (they once made a wrong binding look
verified), the traced addresses do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.layoutalgebra.sets.nests import Stream
from layout_advise.layoutalgebra.sets.spans import spans
from layout_advise.mockup.evidence.streams import hull, meets
from layout_advise.mockup.ir.effects import BITS
from layout_advise.mockup.ir.lifted import Atomic, Executed, Item, Lifted, LiftedLoop, Load, Store
from layout_advise.mockup.machine.openmp_runtime import retried
from layout_advise.tracer.trace.trace import Reference, Trace

Access = Load | Store | Atomic
Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Binding:
    """``structure_of[(pc, operand)]`` is the id of the structure that reference belongs to (absent: none of them).

    ``reference_of`` gives the traced reference and ``streams`` its addresses; ``impossible`` maps structure ids to the
    reason why no candidate of that structure can be built.
    """

    reference_of: dict[Key, Reference]
    streams: dict[Key, Stream]
    structure_of: dict[Key, str]
    impossible: dict[str, str]


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


def in_frames(stream: Stream, trace: Trace) -> bool:
    """Returns whether a reference of several threads stays in the frames that they have in the region: the bounds of these
    together would span all that lies between the threads' stacks."""
    return all(any(t.owns(s.low) and t.owns(s.high) for t in trace.threads) for s in spans(stream))


def bind_references(trace: Trace, structures: Sequence[Structure]) -> Binding:
    """Binds every traced reference to the structure that all its addresses lie in; problems end in ``impossible``."""
    references = {(r.pc, r.operand): r for r in trace.references}
    streams = {
        (r.pc, r.operand): s for r, s in zip(trace.references, trace.streams, strict=True) if s is not None and s.count
    }
    structure_of: dict[Key, str] = {}
    impossible = {s.id: s.inexact for s in structures if s.inexact is not None}
    for key, stream in streams.items():
        if trace.threads and in_frames(stream, trace):
            continue
        low, high = hull(stream)
        high += references[key].bytes
        touched = [s for s in structures if low < span(s)[1] and high > span(s)[0]]
        if len(touched) > 1 or (touched and not span(touched[0])[0] <= low < high <= span(touched[0])[1]):
            met = meets(stream, references[key].bytes, tuple(range(*span(s)) for s in touched))
            touched = [s for s, one in zip(touched, met, strict=True) if one]
        if len(touched) == 1 and low >= span(touched[0])[0] and high <= span(touched[0])[1]:
            structure_of[key] = touched[0].id
            continue
        for structure in touched:
            what = "other memory too" if len(touched) == 1 else "another structure too"
            impossible.setdefault(structure.id, f"the reference at {key[0]:#x} touches {what}")
    return Binding(references, streams, structure_of, impossible)


def bind(lifted: Lifted, trace: Trace, structures: Sequence[Structure]) -> Binding:
    """Binds every access of ``lifted``; problems end in ``impossible``, never in a guess."""
    binding = bind_references(trace, structures)
    structure_of, impossible = binding.structure_of, binding.impossible
    for key in retried(lifted.body) & structure_of.keys():
        why = f"the compare-and-swap at {key[0]:#x} updates it, and how often it is tried again differs from run to run"
        impossible.setdefault(structure_of[key], why)
    lifted_keys = keys_made(lifted.body)
    left_out = {(pc, operand) for pc, operand, _ in lifted.skipped}
    for key, name in structure_of.items():
        if key not in lifted_keys and key not in left_out:
            impossible.setdefault(name, f"the traced reference at {key[0]:#x} is not in the lifted code")
        elif lifted.runs_natively(key[0]):
            impossible.setdefault(name, f"the reference at {key[0]:#x} is also made by a call that stays a call")
    return binding
