"""The semantics table against the processor: every form on random and special values; all state is compared."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from layout_advise.mockup.machine.disassembly import decode_one
from tests.support.lifting import instruction_forms, native_oracle
from tests.support.lifting.interpret import condition
from tests.support.lifting.native_oracle import CENTRE, MEMORY, Native
from tests.support.lifting.random_states import Case, a_state, assert_agreed, differences, interpreted

ROUNDS = 8


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
    if form in instruction_forms.STRINGS:
        gpr[6] = CENTRE + r.randint(-64, 64)
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
