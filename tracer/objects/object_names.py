"""Names and declarations of pieces of memory in the source: by the variables and pointers that lead to them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from elftools.dwarf.die import DIE

from layout_advise.layoutalgebra.derive.declared import Declared
from layout_advise.tracer.objects.memory_object import MemoryObject
from layout_advise.tracer.objects.pointers import Held, Pointer
from layout_advise.tracer.program.dwarf_types import describe

_STACK_NAMES = ("[stack]", "frame of ")
MOST_NUMBERED = 8


def numbered(objects: list[MemoryObject]) -> tuple[MemoryObject, ...]:
    """Blocks of one line (``allocate(a(n), b(n))``) by number; of so many that they are a list's nodes none needs a name."""
    same = Counter(o.name for o in objects if o.alloc_site is not None and o.name.startswith("heap block of "))
    places = {name: sorted(o.base for o in objects if o.name == name) for name, n in same.items() if 1 < n <= MOST_NUMBERED}
    return tuple(
        replace(o, name=f"heap block {places[o.name].index(o.base) + 1} of {o.alloc_site}") if o.name in places else o
        for o in objects
    )


class Types:
    """Declared types of pointers' targets, each looked up once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Declared | None] = {}

    def of(self, target: DIE | None) -> Declared | None:
        """The declaration in a target's debugging entry; ``None`` where it says nothing."""
        if target is None:
            return describe(target)
        key = id(target.dwarfinfo), target.offset
        if key not in self._known:
            self._known[key] = describe(target)
        return self._known[key]


def named(found: MemoryObject, pointers: list[Pointer], held: list[Held], types: Types) -> tuple[MemoryObject, DIE | None]:
    """The object with name and type, and the entry of its type where that was found."""
    if found.type is not None or found.name.startswith(_STACK_NAMES) or found.life == "born":  # no pointer led to it yet
        return found, None
    if found.kind == "global":
        own = next((h for h in held if h.address == found.base), None)
        declared = types.of(own.type) if own is not None else None
        if own is not None and declared is not None and declared.bytes <= found.bytes:
            return replace(found, name=own.name, type=declared), own.type
        return found, None
    best: tuple[tuple[int, int], Pointer, Declared | None] | None = None
    for pointer in pointers:
        if not found.base <= pointer.value < found.end:
            continue
        declared = types.of(pointer.target)
        if declared is not None and declared.bytes > found.end - pointer.value:
            declared = None
        score = (_worth(declared), pointer.level)
        if best is None or score < best[0]:
            best = score, pointer, declared
    if best is None:
        return found, None
    _, pointer, declared = best
    step = declared.element_bytes if declared is not None else 1
    first = pointer.value - (pointer.value - found.base) // step * step
    first = first if declared is not None else found.base
    return replace(found, name=pointer.name, type=declared, element_base=first), pointer.target if declared else None


def _worth(declared: Declared | None) -> int:
    """How much a pointer's type tells: structures most, then numbers, then bytes, which may be anything; void nothing."""
    if declared is None:
        return 3
    if len(declared.members) > 1:
        return 0
    return 2 if declared.element_bytes == 1 else 1
