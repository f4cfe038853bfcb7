"""Calls of machine code that is not lifted, as C: through a pointer where the registers of the ABI suffice."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.machine.call_abi import INTEGERS, VECTOR_COUNT, register_name

_TYPES: tuple[tuple[str, frozenset[str]], ...] = (
    ("void", frozenset()),
    ("struct la_i", frozenset({"rax"})),
    ("struct la_d", frozenset({"xmm0"})),
    ("struct la_ii", frozenset({"rax", "rdx"})),
    ("struct la_id", frozenset({"rax", "xmm0"})),
    ("struct la_dd", frozenset({"xmm0", "xmm1"})),
    ("struct la_v", frozenset({"xmm0", "xmm0.1"})),
)
"""What a function returns -> the registers in which it does so (SysV ABI, 3.2.3)."""
_FLOAT_ARGUMENTS = 8


def returned_type(used: Collection[str]) -> str | None:
    """The C type of what is returned in the registers that are ``used``; None where no type covers them."""
    return next((name for name, registers in _TYPES if registers.issuperset(used)), None)


def returned_text(name: str, register: str, kind: str) -> str:
    """The integer in a register of what ``name``, of the type ``kind``, holds."""
    vector, _, lane = register.partition(".")
    if kind == "struct la_v":
        return f"la_as_i64({name}.xmm0[{lane or 0}])"
    return f"la_as_i64({name}.{vector})" if vector.startswith("xmm") else f"{name}.{vector}"


def argument_list(handed: Mapping[Gpr | Lane, str]) -> list[str] | None:
    """The arguments that make a compiler put the integers ``handed`` where they belong; None where it would not."""
    vectors = {place.number for place in handed if isinstance(place, Lane)}
    lanes = [place for place in handed if isinstance(place, Lane)]
    others = handed.keys() - set(INTEGERS) - set(lanes) - {VECTOR_COUNT}
    if others or any(lane.index > 1 or lane.number >= _FLOAT_ARGUMENTS for lane in lanes):
        return None
    count = max((n + 1 for n, place in enumerate(INTEGERS) if place in handed), default=0)
    found = [handed.get(place, "INT64_C(0)") for place in INTEGERS[:count]]
    found = [f"(int64_t)({text})" for text in found]
    for number in range(max(vectors, default=-1) + 1):
        low, high = (handed.get(Lane(number, index)) for index in (0, 1))
        text = f"la_as_f64({low or 0})"
        found.append(text if high is None else f"(la_f64x2_passed){{{text}, la_as_f64({high})}}")
    return found


def through_record(handed: Mapping[Gpr | Lane, str], target: str, stack: str) -> list[str]:
    """The statements of a call with any registers, by a record of all of them."""
    lines = [f"call.{record_member(register_name(place))} = {text};" for place, text in handed.items()]
    wide = any(isinstance(place, Lane) and place.index > 1 for place in handed)
    return [*lines, f"call.wide = {int(wide)};", f"la_opaque(&call, {target}, {stack});"]


def record_member(name: str) -> str:
    """The member of ``struct la_call`` that stands for a register."""
    number, _, lane = name.removeprefix("xmm").partition(".")
    return name if name[0] == "r" else f"vector[{number}][{lane or 0}]"
