"""Random states of the processor, and how what instructions leave is compared."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import (
    AtomicEffect,
    Flags,
    Gpr,
    Lane,
    LoadEffect,
    MaskBit,
    Semantics,
    SetEffect,
    StoreEffect,
)
from layout_advise.mockup.machine.conditions import UndefinedFlagError
from layout_advise.mockup.machine.disassembly import Insn
from layout_advise.mockup.machine.semantics import semantics
from tests.support.lifting import instruction_forms
from tests.support.lifting.interpret import Changed, Registers, State, condition, flag_bits, step
from tests.support.lifting.native_oracle import CENTRE, MEMORY, MEMORY_BYTES, Native

_FIXED_FLAGS = 0x202  # interrupts on, and the bit that is always set

_FLAG_ORDER = ("b", "e", "s", "o", "p")

DOUBLES = [0, 1 << 63, 0x3FF0000000000000, 0xBFF8000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000123,
           0xFFF8000000000000, 0x7FF4000000000007, 1, 0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF,
           0x41DFFFFFFFC00000, 0xC1E0000000000000, 0x43E0000000000000, 0x4004000000000000, 0x3FE0000000000000]  # fmt: skip

SINGLES = [0, 1 << 31, 0x3F800000, 0xBFC00000, 0x7F800000, 0xFF800000, 0x7FC00123, 0xFFC00000, 0x7FA00007, 1, 0x807FFFFF,
           0x00800000, 0x7F7FFFFF, 0x4EFFFFFF, 0xCF000000, 0x5F000000, 0x40200000, 0x3F000000]  # fmt: skip

STOCK = 1 << 14
"""Values of a kind that random states are made of."""

WORDS = [
    0,
    1,
    2,
    5,
    63,
    64,
    31,
    2**64 - 1,
    1 << 63,
    (1 << 63) - 1,
    1 << 31,
    (1 << 31) - 1,
    0xFFFFFFFF,
    0x80,
    0x7F80FF0001807F,
]


_ADDRESSES = range(MEMORY, MEMORY + MEMORY_BYTES)


def a_double(r: random.Random) -> int:
    if r.random() < 0.35:
        return r.choice(DOUBLES)
    pattern: int
    (pattern,) = struct.unpack("<Q", struct.pack("<d", r.choice((1.0, -1.0)) * r.uniform(0.5, 2) * 2.0 ** r.randint(-6, 40)))
    return pattern


def a_single(r: random.Random) -> int:
    if r.random() < 0.35:
        return r.choice(SINGLES)
    pattern: int
    (pattern,) = struct.unpack("<I", struct.pack("<f", r.choice((1.0, -1.0)) * r.uniform(0.5, 2) * 2.0 ** r.randint(-6, 40)))
    return pattern


def a_word(r: random.Random) -> int:
    return r.choice(WORDS) if r.random() < 0.4 else r.getrandbits(64) >> r.choice((0, 0, 8, 32, 48))


def lanes_of(kind: int, count: int, r: random.Random) -> list[int]:
    return r.choices(_stock(kind), k=count)


@cache
def _stock(kind: int) -> tuple[int, ...]:
    """Many values of a kind to draw from, in every run the same: making each anew took a quarter of all the time."""
    r = random.Random(kind)
    makers: tuple[Callable[[], int], ...] = (
        lambda: a_double(r), lambda: a_single(r) | a_single(r) << 32, lambda: a_word(r), lambda: r.getrandbits(64),
    )  # fmt: skip
    return tuple(makers[kind]() for _ in range(STOCK))


def prepare() -> None:
    """Make the values that states are drawn from, before processes are forked that would each make them."""
    for kind in range(4):
        _stock(kind)


def a_state(r: random.Random, kind: int) -> Native:
    gpr = lanes_of(2 + kind % 2, 16, r)
    gpr[4], gpr[5], gpr[7], gpr[8] = MEMORY + 128, MEMORY + 192, CENTRE, CENTRE
    gpr[6], gpr[9] = (r.choice((0, 2, 4, 2**64 - 2)) for _ in range(2))
    lanes = lanes_of(kind, 64, r)
    for register in range(1, 5):  # equal neighbours now and then, so that equality compares have something to find
        if r.random() < 0.3:
            lanes[4 * register : 4 * register + 4] = lanes[4 * register + 4 : 4 * register + 8]
    memory = struct.pack(f"<{MEMORY_BYTES // 8}Q", *lanes_of(kind, MEMORY_BYTES // 8, r))
    return Native(tuple(gpr), tuple(lanes), _FIXED_FLAGS | r.getrandbits(12) & 0x8D5, memory)


@dataclass(frozen=True)
class Case:
    """An instruction, and the states before and after it on the processor; both with AVX-512 or both without."""

    form: str
    insn: Insn
    before: Native
    after: Native


@dataclass(frozen=True, slots=True)
class NativeRegisters(Registers):
    """The registers of a native state by their locations; lanes that it does not have are 0."""

    state: Native

    def __getitem__(self, place: Gpr | Lane | MaskBit) -> int:
        if isinstance(place, Gpr):
            return self.state.gpr[place.number]
        if isinstance(place, Lane):
            lanes = self.state.lanes_each
            return self.state.lanes[place.number * lanes + place.index] if place.index < lanes else 0
        return self.state.masks[place.number] >> place.index & 1

    def __iter__(self) -> Iterator[Gpr | Lane | MaskBit]:
        yield from (Gpr(n) for n in range(16))
        yield from (Lane(*divmod(n, self.state.lanes_each)) for n in range(len(self.state.lanes)))
        yield from (MaskBit(k, bit) for k in range(len(self.state.masks)) for bit in range(64))

    def __len__(self) -> int:
        return 16 + len(self.state.lanes) + 64 * len(self.state.masks)


def interpreted(case: Case) -> State:
    effects = meaning(case.insn)
    memory = dict(zip(_ADDRESSES, case.before.memory, strict=True)) if uses_memory(effects) else {}
    flags = flag_bits(*(case.before.flag(f) for f in _FLAG_ORDER))
    return step(effects, State(NativeRegisters(case.before), memory, flags))


@lru_cache(maxsize=8)
def meaning(insn: Insn) -> Semantics:
    """What an instruction does; the states of one follow one another."""
    return semantics(insn)


def uses_memory(effects: Semantics) -> bool:
    return any(isinstance(one, (LoadEffect, StoreEffect, AtomicEffect)) for one in effects.effects)


def differences(case: Case) -> list[str]:
    got = interpreted(case)
    assert isinstance(got.registers, Changed)
    found = _registers_that_differ(case, got.registers.new)
    memory = bytes(got.memory.values()) if got.memory else case.before.memory  # its addresses ascend
    if memory != case.after.memory:
        found.append("memory")
    same = case.before.flags == case.after.flags and not sets_flags(meaning(case.insn))
    for cc in () if same else instruction_forms.CONDITIONS:
        try:
            have_flag = condition(cc, got)
        except UndefinedFlagError:
            continue
        if have_flag != native_condition(cc, case.after):
            found.append(f"condition {cc} {have_flag}")
    return found


def _registers_that_differ(case: Case, new: Mapping[Gpr | Lane | MaskBit, int]) -> list[str]:
    before, after, each = case.before, case.after, case.before.lanes_each
    gpr, lanes, masks = list(before.gpr), list(before.lanes), list(before.masks)
    for place, value in new.items():
        if isinstance(place, Gpr):
            gpr[place.number] = value
        elif isinstance(place, Lane) and place.index < each:
            lanes[place.number * each + place.index] = value
        elif isinstance(place, MaskBit):
            masks[place.number] = masks[place.number] & ~(1 << place.index) | value << place.index
    loose = any(part in case.form.split()[0] for part in ("fm", "fnm", "dpp"))
    found = [f"r{n} {have:#x} {want:#x}" for n, have, want in _unequal(gpr, after.gpr)]
    for n, have, want in _unequal(lanes, after.lanes):
        if not (loose and equal_but_for_nans(case.form, have, want)):
            found.append(f"lane {n // each}.{n % each} {have:#x} {want:#x}")
    return found + [f"k{n} {have:#x} {want:#x}" for n, have, want in _unequal(masks, after.masks)]


def _unequal(have: list[int], want: tuple[int, ...]) -> list[tuple[int, int, int]]:
    if tuple(have) == want:
        return []
    return [(n, *pair) for n, pair in enumerate(zip(have, want, strict=True)) if pair[0] != pair[1]]


def sets_flags(effects: Semantics) -> bool:
    return any(isinstance(one, SetEffect) and isinstance(one.location, Flags) for one in effects.effects)


def equal_but_for_nans(form: str, have: int, want: int) -> bool:
    """Which of several NaN operands a fused multiply-add or a dot product returns, and the sign of a negated one, are left
    open: processors differ."""
    single = form.split()[0].endswith("s") and form.split()[0][-2:] in ("ps", "ss")
    parts = [(have & 0xFFFFFFFF, want & 0xFFFFFFFF), (have >> 32, want >> 32)] if single else [(have, want)]
    infinity, mask = (0x7F800000, 0x7FFFFFFF) if single else (0x7FF << 52, (1 << 63) - 1)
    return all(a == b or (a & mask > infinity and b & mask > infinity) for a, b in parts)


def native_condition(cc: str, state: Native) -> bool:
    b, e, s, o, p = (state.flag(f) for f in _FLAG_ORDER)
    base = {"o": o, "b": b, "e": e, "be": b or e, "s": s, "p": p, "l": s != o, "le": e or s != o}
    opposite = {"no": "o", "ae": "b", "ne": "e", "a": "be", "ns": "s", "np": "p", "ge": "l", "g": "le"}
    return base[cc] if cc in base else not base[opposite[cc]]


def assert_agreed(results: Iterable[tuple[str, Insn, Callable[[], list[str]]]]) -> None:
    """No form of the ``results`` differs; each has a name, an instruction and what tells the differences."""
    wrong: dict[str, str] = {}
    for form, insn, differences in results:
        try:
            found = differences()
        except (NotLiftedError, KeyError) as error:
            found = [repr(error)]
        if found:
            wrong.setdefault(f"{form} ({insn.text})", ", ".join(found[:4]))
    assert not wrong, f"{len(wrong)} forms\n" + "\n".join(f"{form}: {what}" for form, what in list(wrong.items())[:60])
