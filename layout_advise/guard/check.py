"""A build's debug information held against a guard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layout_advise.guard.from_run import require_types
from layout_advise.guard.guard_file import Guard, GuardedMember, GuardedType, GuardedVariable
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.records.find import find_records, find_variables
from layout_advise.tracer.program.records.members import PlacedMember, RecordLayout
from layout_advise.tracer.program.records.type_text import shape


@dataclass(frozen=True, slots=True)
class MovedMember:
    """One difference: ``what`` as ``particle.vx``, and how it was and is."""

    what: str
    how: str


def moved(guard: Guard, binary: ElfBinary) -> tuple[MovedMember, ...]:
    """The differences of a build, those of one type together. Raises BinaryError where its types are not described."""
    require_types(binary)
    found = find_records(binary.debug, {one.name for one in guard.type})
    variables = find_variables(binary.debug, {one.name for one in guard.variable})
    result = [change for one in guard.type for change in _of_type(one, found[one.name])]
    for variable in guard.variable:
        written = [one.type for one in variables if one.name == variable.name and one.function == variable.function]
        written = written or [one.type for one in variables if one.name == variable.name]
        result += _of_variable(variable, written)
    return tuple(dict.fromkeys(result))


def _of_type(guarded: GuardedType, layouts: Sequence[RecordLayout]) -> Iterator[MovedMember]:
    """A C program may have several records of one name: those of the guard's file count, where it still has one."""
    same_file = [one for one in layouts if one.file == guarded.file]
    if not layouts:
        yield MovedMember(guarded.name, "is gone")
    for layout in same_file or layouts:
        yield from _of_layout(guarded, layout)


def _of_layout(guarded: GuardedType, layout: RecordLayout) -> Iterator[MovedMember]:
    now = {member.name: member for member in layout.members}
    if layout.bytes != guarded.bytes:
        new = [f"{m.name} at {m.at}" for m in layout.members if m.name not in guarded.members]
        added = f"; new: {', '.join(new[:4])}" if new else ""
        yield MovedMember(guarded.name, f"had {guarded.bytes} bytes, has {layout.bytes}{added}")
    for name, before in guarded.members.items():
        after = now.get(name)
        if after is None:
            there = next((m.name for m in layout.members if m.at == before.at and m.name not in guarded.members), None)
            instead = f"; {there} is in its place" if there else ""
            yield MovedMember(f"{guarded.name}.{name}", f"is gone (was at byte {before.at}){instead}")
        elif _place(before) != _place(after) and not (before.at == after.at and 0 in (before.bytes, after.bytes)):
            yield MovedMember(f"{guarded.name}.{name}", f"was at {_shown(before)}, is at {_shown(after)}")
        elif shape(before.type) != shape(after.type):
            yield MovedMember(f"{guarded.name}.{name}", f"was {before.type}, is {after.type}")


def _place(member: GuardedMember | PlacedMember) -> tuple[int, ...]:
    # storage units of bit fields differ between compilers, the bits do not
    return (member.at, member.bytes) if member.first_bit is None else (member.first_bit, member.bits or 0, -1)


def _shown(member: GuardedMember | PlacedMember) -> str:
    if member.first_bit is not None:
        return f"bit {member.first_bit} ({member.bits} bits)"
    return f"byte {member.at} ({member.bytes} byte{'s' if member.bytes != 1 else ''})"


def _of_variable(guarded: GuardedVariable, written: Sequence[str]) -> Iterator[MovedMember]:
    if not written:
        yield MovedMember(guarded.name, f"is gone (was {guarded.type})")
    elif shape(guarded.type) not in {shape(one) for one in written}:
        yield MovedMember(guarded.name, f"was {guarded.type}, is {written[0]}")
