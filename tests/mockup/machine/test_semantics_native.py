"""The semantics table against the processor: every form on random and special values; all state is compared."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from layout_advise.mockup.machine.disassembly import decode_one
from tests.support.lifting import instruction_forms, native_oracle
from tests.support.lifting.fitted_states import fitted
from tests.support.lifting.interpret import condition
from tests.support.lifting.native_oracle import Native
from tests.support.lifting.random_states import Case, a_state, assert_agreed, differences, interpreted

ROUNDS = 8


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    folder: Path = tmp_path_factory.mktemp("oracle")
    forms = instruction_forms.every()
    program, code = native_oracle.build(forms, folder)
    r = random.Random(20260101)
    given = [(n, fitted(form, a_state(r, turn % 4), r)) for n, form in enumerate(forms) for turn in range(ROUNDS)]
    after = native_oracle.run(program, given, folder)
    insns = [decode_one(data, at) for at, data in code]
    return [Case(forms[n], insns[n], before, result) for (n, before), result in zip(given, after, strict=True)]


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
    assert [d.split()[0] for d in differences(Case(case.form, case.insn, case.before, spoilt))] == [
        "lane", *["condition"] * 4,
    ]  # fmt: skip
