"""Instructions at another address: the disassembler reads the same instruction, the processor does the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from layout_advise.errors import LayoutAdviseError, RefusedError
from layout_advise.mockup.machine.disassembly import decode_one
from layout_advise.mockup.readdressed.operand import at_register
from layout_advise.tracer.code.decoder import GPR_NAMES
from tests.support.tracing.assembled import assemble, read_by_objdump

_FORMS = """
mov rax, [rbx+8]
mov [rbx+rcx*8+0x1000], r9
mov byte ptr [rsi], 7
mov word ptr [rsi+r9], 0x1234
movzx eax, byte ptr [r13]
movsxd r8, dword ptr [r12+4]
add qword ptr [rax+rax], 5
lock xadd [rdi], rax
lock cmpxchg [rdi+8], ecx
movups xmm9, [rsp+16]
movaps [rip+64], xmm1
cvtsi2sd xmm3, dword ptr [rbp-4]
pshufb xmm2, [rdi]
pinsrd xmm2, [rdi+4], 1
vmovups ymm1, [rax+rdx*4]
vaddsd xmm1, xmm9, [r10+8]
vfmadd231pd ymm1, ymm2, [rdi+r8*8]
vmovupd zmm17, [rax+64]
vaddpd zmm1{k1}{z}, zmm2, [rax+rdx*8+128]
vaddps ymm20, ymm21, dword ptr [rax]{1to8}
fld qword ptr [rbx]
crc32 rax, byte ptr [rcx]
movbe rax, [rbx]
andn rax, rbx, [rcx]
"""


@pytest.mark.parametrize("distance", [0, 8, -64, 1 << 20])
def test_only_the_address_is_another(tmp_path: Path, distance: int) -> None:
    """As the assembler has it that is given the address in words."""
    code, made, wanted, at = assemble(tmp_path, _FORMS).ranges[0].code, b"", "", 0
    forms = _FORMS.strip().splitlines()
    while at < len(code):
        insn, form = decode_one(code[at:], 0x1000), forms.pop(0)
        at += insn.size
        for register in (n for n in range(16) if n != 4):
            made += at_register(insn.bytes, register, distance)
            wanted += re.sub(r"\[.*\]", f"[{GPR_NAMES[register]}{distance:+}]", form) + "\n"
    assert not forms
    assert read_by_objdump(tmp_path, made) == read_by_objdump(tmp_path, assemble(tmp_path, wanted).ranges[0].code)


@pytest.mark.parametrize("code", ["a1 0011223344556677", "50", "0f05", "ff"])
def test_what_has_no_such_operand_is_refused(code: str) -> None:
    with pytest.raises(LayoutAdviseError):
        at_register(bytes.fromhex(code), 1)


def test_high_bytes_have_no_prefix() -> None:
    """``mov ah, [rbx]`` with a prefix would be ``mov spl, ...``."""
    assert at_register(bytes.fromhex("8a23"), 1)
    with pytest.raises(RefusedError, match="another instruction"):
        at_register(bytes.fromhex("8a23"), 9)
