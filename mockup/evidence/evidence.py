"""The knowledge of the traced call that the passes over the lifted form rely on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layout_advise.layoutalgebra.derive.structure import Structure
from layout_advise.mockup.evidence.binding import Access, Binding, bind_references, key_of
from layout_advise.mockup.ir.loop_body import ReadOnly
from layout_advise.tracer.trace.trace import Trace


def no_constants(address: int, size: int) -> bytes | None:
    """Knows of no read-only data."""
    return None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The trace of one call, the structures found in it, and which structure each traced reference belongs to.

    ``constant(address, size)`` returns bytes of the program that cannot change at run time, None elsewhere.
    """

    trace: Trace
    structures: tuple[Structure, ...]
    binding: Binding
    constant: ReadOnly = no_constants

    @classmethod
    def of(cls, trace: Trace, structures: Sequence[Structure], constant: ReadOnly = no_constants) -> Evidence:
        """The evidence of ``trace``, with its references bound to ``structures``."""
        return cls(trace, tuple(structures), bind_references(trace, structures), constant)

    def reached_by(self, access: Access) -> tuple[str, ...]:
        """The ids of all structures that ``access`` reaches: :meth:`Binding.reached_by`."""
        return self.binding.reached_by(key_of(access))

    def structure_of(self, access: Access) -> str | None:
        """The id of the structure that ``access`` belongs to; None where it is none of them alone."""
        return self.binding.structure_of.get(key_of(access))

    def structure(self, access: Access) -> Structure | None:
        """That structure itself."""
        name = self.structure_of(access)
        return next((s for s in self.structures if s.id == name), None)
