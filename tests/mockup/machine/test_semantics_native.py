"""The semantics table against the processor: every form on random and special values; all state is compared."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Gpr, Lane, MaskBit
from layout_advise.mockup.machine.conditions import UndefinedFlagError
from layout_advise.mockup.machine.disassembly import Insn, decode_one
from layout_advise.mockup.machine.semantics import semantics
from tests.support.lifting import instruction_forms, native_oracle
from tests.support.lifting.interpret import State, condition, flag_bits, step
from tests.support.lifting.native_oracle import CENTRE, MEMORY, MEMORY_BYTES, Native

ROUNDS = 8
_FIXED_FLAGS = 0x202  # interrupts on, and the bit that is always set
_FLAG_ORDER = ("b", "e", "s", "o", "p")

DOUBLES = [0, 1 << 63, 0x3FF0000000000000, 0xBFF8000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000123,
           0xFFF8000000000000, 0x7FF4000000000007, 1, 0x800FFFFFFFFFFFFF, 0x0010000000000000, 0x7FEFFFFFFFFFFFFF,
           0x41DFFFFFFFC00000, 0xC1E0000000000000, 0x43E0000000000000, 0x4004000000000000, 0x3FE0000000000000]  # fmt: skip
SINGLES = [0, 1 << 31, 0x3F800000, 0xBFC00000, 0x7F800000, 0xFF800000, 0x7FC00123, 0xFFC00000, 0x7FA00007, 1, 0x807FFFFF,
           0x00800000, 0x7F7FFFFF, 0x4EFFFFFF, 0xCF000000, 0x5F000000, 0x40200000, 0x3F000000]  # fmt: skip
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
    makers: tuple[Callable[[], int], ...] = (
        lambda: a_double(r), lambda: a_single(r) | a_single(r) << 32, lambda: a_word(r), lambda: r.getrandbits(64),
    )  # fmt: skip
    return [makers[kind]() for _ in range(count)]


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


def fitted(form: str, state: Native, r: random.Random) -> Native:
    """The state changed so that ``form`` does not trap and touches only the shared memory."""
    gpr, lanes = list(state.gpr), list(state.lanes)
    name = form.split()[0]
    if form in instruction_forms.DIVISIONS:
        bits = {"cl": 8, "cx": 16, "ecx": 32, "rcx": 64}[form.split()[1]]
        divisor = gpr[1] % 2**bits or 3
        if name == "idiv":  # a small signed dividend whose upper half is its sign
            divisor = divisor if divisor not in (2**bits - 1,) else 5
            dividend = r.getrandbits(bits) - 2 ** (bits - 1)
        else:
            dividend = r.getrandbits(bits)
        if bits == 8:
            gpr[0] = gpr[0] & ~0xFFFF | (abs(dividend) % 100 if name == "idiv" else dividend)
            divisor = divisor if name == "div" else r.randint(1, 120)
        else:
            low = dividend % 2**bits
            high = (dividend >> bits) % 2**bits
            gpr[0] = gpr[0] >> bits << bits | low
            gpr[2] = gpr[2] >> bits << bits | high
        gpr[1] = gpr[1] >> bits << bits | divisor
    if "cmpxchg" in form and r.random() < 0.5:  # what is expected stands there
        at = CENTRE - MEMORY + 32 + 8 * (gpr[6] if gpr[6] < 2**63 else gpr[6] - 2**64)
        gpr[0] = int.from_bytes(state.memory[at : at + 8], "little")
    if "gather" in name:
        narrow = name[name.index("gather") + 6] == "d"
        small = [r.randint(-40, 40) for _ in range(8)]
        lanes[20:24] = [small[i] % 2**64 for i in range(4)]
        if narrow:
            lanes[20:24] = [small[2 * i] % 2**32 | small[2 * i + 1] % 2**32 << 32 for i in range(4)]
    if (
        name.startswith(("vpsllv", "vpsrlv", "vpsrav", "psll", "psrl", "psra", "vpsll", "vpsrl", "vpsra"))
        and r.random() < 0.8
    ):
        counts = [
            r.choice((0, 1, 7, 15, 16, 31, 33, 63)) | r.choice((0, 3, 31, 40)) * (2**32 * ("v" in name[5:]))
            for _ in range(8)
        ]
        lanes[20:24], lanes[8:12] = counts[:4], (counts[4:] if form.endswith("xmm2") else lanes[8:12])
    return Native(tuple(gpr), tuple(lanes), state.flags, state.memory)


@dataclass(frozen=True)
class Case:
    number: int
    form: str
    insn: Insn
    before: Native
    after: Native


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    folder: Path = tmp_path_factory.mktemp("oracle")
    forms = instruction_forms.every()
    program, code = native_oracle.build(forms, folder)
    r = random.Random(20260101)
    given = [(n, fitted(form, a_state(r, turn % 4), r)) for n, form in enumerate(forms) for turn in range(ROUNDS)]
    after = native_oracle.run(program, given, folder)
    insns = [decode_one(data, at) for at, data in code]
    return [Case(n, forms[n], insns[n], before, result) for (n, before), result in zip(given, after, strict=True)]


def interpreted(case: Case) -> State:
    registers: dict[Gpr | Lane | MaskBit, int] = {Gpr(i): value for i, value in enumerate(case.before.gpr)}
    registers |= {Lane(i // 4, i % 4): value for i, value in enumerate(case.before.lanes)}
    registers |= {Lane(n, i): 0 for n in range(16) for i in range(4, 8)}
    memory = {MEMORY + i: byte for i, byte in enumerate(case.before.memory)}
    return step(semantics(case.insn), State(registers, memory, flag_bits(*(case.before.flag(f) for f in _FLAG_ORDER))))


def differences(case: Case) -> list[str]:
    got = interpreted(case)
    loose = any(part in case.form.split()[0] for part in ("fm", "fnm", "dpp"))
    found = [f"r{i} {got.registers[Gpr(i)]:#x} {v:#x}" for i, v in enumerate(case.after.gpr) if got.registers[Gpr(i)] != v]
    for i, want in enumerate(case.after.lanes):
        have = got.registers[Lane(i // 4, i % 4)]
        if have != want and not (loose and equal_but_for_nans(case.form, have, want)):
            found.append(f"lane {i // 4}.{i % 4} {have:#x} {want:#x}")
    memory = bytes(got.memory[MEMORY + i] for i in range(MEMORY_BYTES))
    if memory != case.after.memory:
        found.append("memory")
    for cc in instruction_forms.CONDITIONS:
        try:
            have_flag = condition(cc, got)
        except UndefinedFlagError:
            continue
        if have_flag != native_condition(cc, case.after):
            found.append(f"condition {cc} {have_flag}")
    return found


def equal_but_for_nans(form: str, have: int, want: int) -> bool:
    """The NaN that a fused multiply-add or a dot product returns of several, and the sign of a negated one, are left
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


def test_every_form_does_what_the_processor_does(cases: list[Case]) -> None:
    assert_agreed((case.form, case.insn, partial(differences, case)) for case in cases)


def test_plain_arithmetic_leaves_every_condition_readable(cases: list[Case]) -> None:
    names = "add sub cmp test and or xor neg inc dec adc sbb ucomisd comiss ptest popcnt".split()  # noqa: SIM905
    seen = set()
    for case in cases:
        if case.insn.mnemonic in names:
            state = interpreted(case)
            for cc in instruction_forms.CONDITIONS:
                condition(cc, state)
            seen.add(case.insn.mnemonic)
    assert seen == set(names)


def test_the_oracle_notices_a_wrong_result(cases: list[Case]) -> None:
    case = next(c for c in cases if c.form == "add eax, ecx")
    lanes = (*case.after.lanes[:7], case.after.lanes[7] ^ 1, *case.after.lanes[8:])
    spoilt = Native(case.after.gpr, lanes, case.after.flags ^ 1, case.after.memory)
    assert [d.split()[0] for d in differences(Case(case.number, case.form, case.insn, case.before, spoilt))] == [
        "lane", *["condition"] * 4,
    ]  # fmt: skip
