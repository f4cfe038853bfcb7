"""Calls that walk over the fields of records, as they were observed."""

from __future__ import annotations

from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.sets.nests import Affine, FoldedStream, Loop, Point, Stream
from layout_advise.observe.observe import Observation
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.objects.attribution import Attribution, ObjectTouch
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.trace.trace import Control, Reference, Registers, Trace

COUNT, BASE = 1000, 1 << 20
RECORDS = Structure(
    "s0", "p", BASE, 48 * COUNT, (Dim(COUNT, 48),), tuple(Field(n, 8 * k, 8, None, 100) for k, n in enumerate("abcdef"))
)


def walk(offset: int) -> Stream:
    return FoldedStream((Loop(Affine(COUNT), (Point(Affine(BASE + offset, (48,))),)),), COUNT)


def seen(streams: list[Stream], first_pc: int, *, folds: bool = True) -> Observation:
    """A call that accesses 8 bytes by each of ``streams`` in every turn of one loop."""
    references = tuple(Reference(k, first_pc + k, 0, "read", 8) for k in range(len(streams)))
    last = len(streams) - 1
    nodes = (Loop(Affine(COUNT), (Point(Affine(0)),)),) if folds else None
    control = Control(nodes, ((0, last),), None if folds else "irregular")
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    trace = Trace("f", 1, "step", references, tuple(streams), 1, False, registers, (), (), control=control)
    block = MemoryObject("heap", "p", BASE, 48 * COUNT, references=tuple(range(len(streams))))
    touches = ((ObjectTouch(0, COUNT),),) * len(streams)
    attribution = Attribution((block,), touches, (None,) * len(streams))
    derived = (Derived(RECORDS, None, 8, 0, False),)
    return Observation(Region("f", "function", 0, (), "", 0), trace, derived, (), (), attribution=attribution)


GROW, FORAGE = seen([walk(0), walk(8)], 100), seen([walk(16), walk(24), walk(32), walk(40)], 200)
