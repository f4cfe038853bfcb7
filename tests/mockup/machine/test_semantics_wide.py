"""The semantics table's AVX-512 part against the processor: every form on random and special values; all state compared."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from layout_advise.mockup.machine.disassembly import decode_one
from tests.support import slower
from tests.support.compilers import HAS_AVX512
from tests.support.lifting import native_oracle, wide_forms
from tests.support.lifting.native_oracle import WIDE, Native
from tests.support.lifting.random_states import Case, assert_agreed, differences
from tests.support.lifting.wide_states import a_wide_state, fitted

pytestmark = pytest.mark.skipif(not HAS_AVX512, reason="this processor has no AVX-512 (avx512f, bw, dq, vl, cd)")


@pytest.fixture(scope="module", params=[1, *slower((2,))])
def cases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Every form on so many states."""
    rounds: int = request.param
    folder: Path = tmp_path_factory.mktemp("wide")
    forms = wide_forms.every()
    program, code = native_oracle.build(forms, folder, WIDE)
    r = random.Random(20261122)
    given = [(n, fitted(form, a_wide_state(r, (n + turn) % 4), r)) for n, form in enumerate(forms) for turn in range(rounds)]
    after = native_oracle.run(program, given, folder, WIDE)
    insns = [decode_one(data, at) for at, data in code]
    return [Case(forms[n], insns[n], before, result) for (n, before), result in zip(given, after, strict=True)]


def test_every_form_does_what_the_processor_does(cases: list[Case]) -> None:
    assert_agreed((case.form, case.insn, partial(differences, case)) for case in cases)


def test_the_oracle_notices_a_wrong_mask_and_a_wrong_upper_lane(cases: list[Case]) -> None:
    case = next(c for c in cases if c.form == "kandw k1, k2, k3")
    lanes = (*case.after.lanes[:255], case.after.lanes[255] ^ 1)
    masks = (*case.after.masks[:7], case.after.masks[7] ^ 1 << 63)
    spoilt = Native(case.after.gpr, lanes, case.after.flags, case.after.memory, masks)
    assert [d.split()[0] for d in differences(Case(case.form, case.insn, case.before, spoilt))] == ["lane", "k7"]
