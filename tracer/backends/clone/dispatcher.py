"""The code of a clone that indirect jumps go through: it finds the copy of the address in the header's target word.

Each range of the original code has a table with the distance of every byte's copy from the table, 0 for what is no
instruction: control then leaves the clone, which is as much a cut in the trace as a full buffer. Addresses outside the
region stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.backends.clone.header import (
    GIVE_FLAGS,
    JMP,
    KEEP_FLAGS,
    SAVED_FLAGS,
    SAVED_RAX,
    SAVED_RCX,
    TARGET,
    slot,
    stop_recording,
)
from layout_advise.tracer.code.operands import RAX, RCX
from layout_advise.tracer.code.region import CodeRange


def write_dispatcher(
    out: Assembler, name: str, ranges: Sequence[CodeRange], copy_of: Callable[[int], Hashable | None]
) -> None:
    """Appends the dispatcher with the label ``dispatch name``. ``copy_of`` gives the label of an address's copy, which has
    been placed, or None."""
    out.label(f"dispatch {name}")
    out.store(slot(out, SAVED_RAX), RAX)
    out.store(slot(out, SAVED_RCX), RCX)
    out.raw(KEEP_FLAGS)
    out.store(slot(out, SAVED_FLAGS), RAX)
    for place in ranges:
        out.load(RCX, slot(out, TARGET))
        out.constant(RAX, place.start)
        out.raw(bytes.fromhex("4829c1 4881f9") + len(place.code).to_bytes(4, "little"))  # sub rcx, rax; cmp rcx, length
        out.branch(b"\x0f\x82", f"hit {name} {place.start}")  # jb
    _leave(out, name)
    for place in ranges:
        _look_up(out, name, place)
    for place in ranges:
        _table(out, name, place, copy_of)


def _leave(out: Assembler, name: str) -> None:
    """Jumps to the target, with all registers as they were; where it is lost, without recording any more."""
    out.label(f"leave {name}")
    out.load(RAX, slot(out, SAVED_FLAGS))
    out.raw(GIVE_FLAGS)
    out.load(RAX, slot(out, SAVED_RAX))
    out.load(RCX, slot(out, SAVED_RCX))
    out.operate(b"\xff", 4, slot(out, TARGET))  # jmp [target]
    out.label(f"lost {name}")
    stop_recording(out)
    out.branch(JMP, f"leave {name}")


def _look_up(out: Assembler, name: str, place: CodeRange) -> None:
    """Replaces the target, whose offset in the range is in rcx, by its copy."""
    out.label(f"hit {name} {place.start}")
    out.branch(b"\x48\x8d\x05", f"table {name} {place.start}")  # lea rax, [rip + table]
    out.raw(bytes.fromhex("48630c88 e302 eb05"))  # movsxd rcx, [rax + rcx * 4]; jrcxz +2; jmp +5
    out.branch(JMP, f"lost {name}")
    out.raw(bytes.fromhex("4801c1"))  # add rcx, rax
    out.store(slot(out, TARGET), RCX)
    out.branch(JMP, f"leave {name}")


def _table(out: Assembler, name: str, place: CodeRange, copy_of: Callable[[int], Hashable | None]) -> None:
    out.label(f"table {name} {place.start}")
    table = len(out.text)
    for address in range(place.start, place.end):
        key = copy_of(address)
        distance = out.labels[key] - table if key is not None else 0
        out.raw(distance.to_bytes(4, "little", signed=True))
