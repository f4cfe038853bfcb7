"""What AVX-512 prefixes say, against the text that the bytes were assembled from and objdump's: no such processor needed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import LoadEffect, MaskBit, Read, StoreEffect
from layout_advise.mockup.machine.disassembly import Insn, MemoryOperand, decode_one
from layout_advise.mockup.machine.semantics import semantics
from layout_advise.tracer.code.instructions import decode as decode_traced
from tests.support.lifting import wide_forms
from tests.support.tracing.assembled import BASE, assemble

REFUSED = {
    "vrcp14pd zmm1, zmm2": "depends on the processor",
    "vrsqrt14ss xmm1, xmm2, xmm3": "depends on the processor",
    "vfpclasspd k1, zmm2, 3": "classes of numbers",
    "vcompresspd zmm1{k1}, zmm2": "compression",
    "vpexpandd zmm1{k1}, zmm2": "expansion",
    "vaddpd zmm1, zmm2, zmm3, {rz-sae}": "rz-sae",
    "vrndscalepd zmm1, zmm2, 0x18": "to a fraction",
    "vpconflictd zmm1, zmm2": "conflict",
    "vscalefpd zmm1, zmm2, zmm3": "no rule",
    "vpermb zmm1, zmm2, zmm3": "byte permutation",
    "vpshufb zmm1, zmm2, zmm3": "no rule",
}


def assembled(forms: list[str], folder: Path) -> list[tuple[bytes, str]]:
    """Bytes and objdump's text of each form."""
    source, made = folder / "forms.s", folder / "forms.o"
    source.write_text("\n".join([".intel_syntax noprefix", *forms, ""]))
    subprocess.run(["as", str(source), "-o", str(made)], check=True)
    command = ["objdump", "-d", "-w", "-M", "intel", str(made)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split("\t") for line in lines if re.match(r" +[0-9a-f]+:\t", line)]
    return [(bytes.fromhex(parts[1]), parts[2]) for parts in found]


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Insn, str]]:
    """Every form with a displacement that each element size divides, which is encoded in one byte."""
    forms = [re.sub(r"([+-]\d+)\]", "+128]", form) for form in wide_forms.every()]
    texts = assembled(forms, tmp_path_factory.mktemp("decoding"))
    assert len(texts) == len(forms)
    return [(decode_one(code, 0x1000), text) for code, text in texts]


def test_masks_zeroing_and_broadcasts_are_those_of_objdump(decoded: list[tuple[Insn, str]]) -> None:
    for insn, text in decoded:
        mask = re.search(r"\{k(\d)\}", text)
        assert insn.mask == (int(mask[1]) if mask else 0), text
        assert insn.zeroing == ("{z}" in text), text
        assert insn.broadcast == ("{1to" in text or " BCST " in text), text
        assert insn.rounding == ("sae" if "{sae}" in text else ""), text


def test_displacements_are_those_of_objdump(decoded: list[tuple[Insn, str]]) -> None:
    seen = 0
    for insn, text in decoded:
        for operand in insn.operands:
            if isinstance(operand, MemoryOperand):
                assert operand.displacement == 128, (text, insn.text)
                assert "+0x80]" in text
                seen += 1
    assert seen > 1000


def test_every_form_has_a_rule_that_reads_only_its_own_mask(decoded: list[tuple[Insn, str]]) -> None:
    for insn, text in decoded:
        effects = semantics(insn).effects
        for effect in effects:
            guard = effect.guard if isinstance(effect, LoadEffect | StoreEffect) else None
            if isinstance(guard, Read) and isinstance(guard.location, MaskBit):
                assert guard.location.number == insn.mask, text


def test_masked_accesses_are_numbered_as_the_tracer_numbers_them(tmp_path: Path) -> None:
    """(operand, offset, bytes) of every access of the lifter lies within the tracer's access of that number."""
    forms = [f for f in wide_forms.every() if "[" in f and "{k" in f and "r8" not in f][::7]
    region = assemble(tmp_path, "\n".join([*forms, "ret"]))
    code = region.ranges[0].code
    traced = decode_traced(region)
    assert len(traced) > 300
    for at, instruction in traced.items():
        if not instruction.accesses or at == BASE + len(code) - 1:
            continue
        bounds = {a.operand: (a.memory.disp, a.bytes) for a in instruction.accesses}
        done: dict[int, int] = {}
        for effect in semantics(decode_one(code[at - BASE :], at)).effects:
            if isinstance(effect, LoadEffect | StoreEffect):
                size = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "f32": 4, "f64": 8}[effect.ty]
                assert effect.operand in bounds, instruction
                assert effect.part + size <= bounds[effect.operand][1], instruction
                done[effect.operand] = done.get(effect.operand, 0) + size
        assert done == {operand: size for operand, (_, size) in bounds.items()}, instruction


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_not_known_is_refused_by_name(form: str, tmp_path: Path) -> None:
    ((code, _),) = assembled([form], tmp_path)
    with pytest.raises(NotLiftedError, match=REFUSED[form]):
        semantics(decode_one(code, 0x1000))


def test_half_precision_is_refused_by_name() -> None:
    """gcc -march=native stores 16 bits of a vector register with vmovw where the processor has it."""
    with pytest.raises(NotLiftedError, match="-mno-avx512fp16"):
        decode_one(bytes.fromhex("62f57d087e400148"), 0x36B62)
    with pytest.raises(NotLiftedError, match="not a known"):
        decode_one(bytes.fromhex("0f0f0f0f0f0f0f0f"), 0)
