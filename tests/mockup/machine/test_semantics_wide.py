"""The semantics table's AVX-512 part against the processor: every form on random and special values; all state compared."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import pytest

from layout_advise.mockup.ir.effects import Gpr, Lane, MaskBit, Semantics
from layout_advise.mockup.machine.conditions import UndefinedFlagError
from layout_advise.mockup.machine.disassembly import Insn, decode_one
from layout_advise.mockup.machine.semantics import semantics
from tests.mockup.machine.test_semantics_native import a_state, assert_agreed, equal_but_for_nans, lanes_of, native_condition
from tests.support.lifting import instruction_forms, native_oracle, wide_forms
from tests.support.lifting.interpret import State, condition, flag_bits, step
from tests.support.lifting.native_oracle import MEMORY, MEMORY_BYTES, WIDE, Native
from tests.support.tracing.processor import HAS_WIDE

ROUNDS = 2
_FLAG_ORDER = ("b", "e", "s", "o", "p")

pytestmark = pytest.mark.skipif(not HAS_WIDE, reason="this processor has no AVX-512 (avx512f, bw, dq, vl, cd)")


def a_mask(r: random.Random) -> int:
    return r.choice((0, 2**64 - 1, r.getrandbits(64), r.getrandbits(64), r.getrandbits(64), 1 << r.randrange(16)))


def a_wide_state(r: random.Random, kind: int) -> Native:
    plain = a_state(r, kind)
    lanes = lanes_of(kind, 256, r)
    for register in (1, 2, 17, 18):  # equal neighbours now and then, so that equality compares have something to find
        if r.random() < 0.3:
            lanes[8 * register : 8 * register + 8] = lanes[8 * register + 8 : 8 * register + 16]
    if r.random() < 0.3:
        lanes[144 : 144 + 8] = lanes[24:32]
    return Native(plain.gpr, tuple(lanes), plain.flags, plain.memory, tuple(a_mask(r) for _ in range(8)))


def fitted(form: str, state: Native, r: random.Random) -> Native:
    """The state with small indices, or with counts that shift by something, in register 5."""
    lanes, name = list(state.lanes), form.split()[0]
    if "gather" in name or "scatter" in name:
        narrow = name[name.index("ter" if "scatter" in name else "her") + 3] == "d"
        small = [r.randint(-20, 20) for _ in range(16)]
        if narrow:
            lanes[40:48] = [small[2 * i] % 2**32 | small[2 * i + 1] % 2**32 << 32 for i in range(8)]
        else:
            lanes[40:48] = [small[i] % 2**64 for i in range(8)]
    elif name.startswith(("vpsl", "vpsr")) and r.random() < 0.8:
        step = {"w": 16, "d": 32, "q": 64}[name[-1]] if "v" in name[5:] else 64
        counts = [sum(r.choice((0, 1, 7, 15, 16, 31, 33, 63)) << at for at in range(0, 64, step)) for _ in range(8)]
        lanes[40:48] = counts
    return Native(state.gpr, tuple(lanes), state.flags, state.memory, state.masks)


@dataclass(frozen=True)
class Case:
    form: str
    insn: Insn
    before: Native
    after: Native


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    folder: Path = tmp_path_factory.mktemp("wide")
    forms = wide_forms.every()
    program, code = native_oracle.build(forms, folder, WIDE)
    r = random.Random(20261122)
    given = [(n, fitted(form, a_wide_state(r, (n + turn) % 4), r)) for n, form in enumerate(forms) for turn in range(ROUNDS)]
    after = native_oracle.run(program, given, folder, WIDE)
    insns = [decode_one(data, at) for at, data in code]
    return [Case(forms[n], insns[n], before, result) for (n, before), result in zip(given, after, strict=True)]


@cache
def meaning(insn: Insn) -> Semantics:
    return semantics(insn)


def interpreted(case: Case) -> State:
    registers: dict[Gpr | Lane | MaskBit, int] = {Gpr(i): value for i, value in enumerate(case.before.gpr)}
    registers |= {Lane(i // 8, i % 8): value for i, value in enumerate(case.before.lanes)}
    registers |= {MaskBit(k, i): mask >> i & 1 for k, mask in enumerate(case.before.masks) for i in range(64)}
    memory = {MEMORY + i: byte for i, byte in enumerate(case.before.memory)}
    return step(meaning(case.insn), State(registers, memory, flag_bits(*(case.before.flag(f) for f in _FLAG_ORDER))))


def differences(case: Case) -> list[str]:
    got = interpreted(case)
    loose = "fm" in case.form.split()[0] or "fnm" in case.form.split()[0]
    found = [f"r{i} {got.registers[Gpr(i)]:#x} {v:#x}" for i, v in enumerate(case.after.gpr) if got.registers[Gpr(i)] != v]
    for i, want in enumerate(case.after.lanes):
        have = got.registers[Lane(i // 8, i % 8)]
        if have != want and not (loose and equal_but_for_nans(case.form, have, want)):
            found.append(f"lane {i // 8}.{i % 8} {have:#x} {want:#x}")
    for k, want in enumerate(case.after.masks):
        have = sum(got.registers[MaskBit(k, i)] << i for i in range(64))
        if have != want:
            found.append(f"k{k} {have:#x} {want:#x}")
    if bytes(got.memory[MEMORY + i] for i in range(MEMORY_BYTES)) != case.after.memory:
        found.append("memory")
    for cc in instruction_forms.CONDITIONS:
        try:
            if condition(cc, got) != native_condition(cc, case.after):
                found.append(f"condition {cc}")
        except UndefinedFlagError:
            continue
    return found


def test_every_form_does_what_the_processor_does(cases: list[Case]) -> None:
    assert_agreed((case.form, case.insn, partial(differences, case)) for case in cases)


def test_the_oracle_notices_a_wrong_mask_and_a_wrong_upper_lane(cases: list[Case]) -> None:
    case = next(c for c in cases if c.form == "kandw k1, k2, k3")
    lanes = (*case.after.lanes[:255], case.after.lanes[255] ^ 1)
    masks = (*case.after.masks[:7], case.after.masks[7] ^ 1 << 63)
    spoilt = Native(case.after.gpr, lanes, case.after.flags, case.after.memory, masks)
    assert [d.split()[0] for d in differences(Case(case.form, case.insn, case.before, spoilt))] == ["lane", "k7"]
