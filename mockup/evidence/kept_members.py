"""Members that only calls which stay calls touch: they keep their places, and no layout moves them (decision 123)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.mockup.evidence.binding import Binding, Key, bind_references, keys_made, touched_bytes
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.tracer.trace.trace import Trace


def with_kept_members(lifted: Lifted, trace: Trace, structures: Sequence[Structure]) -> tuple[Structure, ...]:
    """``structures``, in which members are cold that the calls which ``lifted`` keeps touch, and its own code does not. One
    whose members they all are stays as it is."""
    if not lifted.native:
        return tuple(structures)
    binding, made = bind_references(trace, structures), keys_made(lifted.body)
    kept = {key for key in binding.reference_of if lifted.runs_natively(key[0]) and key not in made}
    return tuple(_without(one, binding, kept) for one in structures)


def _without(structure: Structure, binding: Binding, kept: Collection[Key]) -> Structure:
    """The structure with the members as cold ones that the references ``kept`` touch, and no others."""
    keys = binding.keys_of(structure.id)
    theirs = {b for k in keys if k in kept for b in _touched(binding, k, structure)}
    ours = {b for k in keys if k not in kept for b in _touched(binding, k, structure)}
    moved = [f for f in structure.fields if not theirs.isdisjoint(f.place) and ours.isdisjoint(f.place)]
    left = tuple(f for f in structure.fields if f not in moved)
    if not moved or not left:
        return structure
    return replace(structure, fields=left, cold=tuple(sorted((*structure.cold, *moved), key=lambda f: f.offset)))


def _touched(binding: Binding, key: Key, structure: Structure) -> frozenset[int]:
    """The bytes of elements that a reference touches; all where that is not known."""
    found = touched_bytes(binding.stream_in(key, structure.id), binding.reference_of[key].bytes, structure)
    return found if found is not None else frozenset(range(structure.element_bytes))
