"""Loops with AVX-512 that are measured by themselves: masks made before them, and masks and registers read after them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import Const, Lane, MaskBit
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.mockup.machine.disassembly import decode_one
from layout_advise.mockup.machine.liveness import uses_and_kills
from layout_advise.mockup.machine.loop_regions import LoopNest, hottest_nests
from layout_advise.tracer.program.binary import ElfBinary

LOOP = """
.text
.globl f
.type f, @function
f:
    BEFORE
    nopl 0(%rax)
    nopl 0(%rax)
1:
    vmovupd (%rdi), %zmm1
    vaddpd %zmm1, %zmm1, %zmm1{%k1}
    vmovupd %zmm1, (%rdi)
    add $64, %rdi
    dec %rsi
    jne 1b
    AFTER
    ret
.size f, .-f
"""


def nest_of(folder: Path, before: str, after: str = "nopl 0(%rax)\n nopl 0(%rax)") -> tuple[LoopNest, ElfBinary]:
    (folder / "f.s").write_text(LOOP.replace("BEFORE", before).replace("AFTER", after))
    subprocess.run(["gcc", "-shared", "-o", folder / "f.so", folder / "f.s"], check=True)
    binary = ElfBinary.open_module(folder / "f.so")
    function = binary.region("f", 0)
    found = next(hottest_nests(function, dict.fromkeys(build_cfg(function).blocks, 1)))
    if isinstance(found, NotLiftedError):
        raise found
    return found, binary


def lifted(nest: LoopNest, binary: ElfBinary) -> Lifted:
    return lift(nest.region(binary.region("f", 0)), outs=nest.outs, known=nest.known)


def test_a_constant_mask_from_before_the_loop_is_known(tmp_path: Path) -> None:
    nest, binary = nest_of(tmp_path, "mov $0x55, %eax\n kmovb %eax, %k1")
    known = dict(nest.known)
    assert [known[MaskBit(1, i)] for i in range(9)] == [Const("i1", int(i % 2 == 0 and i < 8)) for i in range(9)]
    assert not any(isinstance(live.location, MaskBit) for live in lifted(nest, binary).live_ins)


def test_a_mask_that_is_not_known_is_refused_by_name(tmp_path: Path) -> None:
    nest, binary = nest_of(tmp_path, "kmovb %edx, %k1")
    with pytest.raises(NotLiftedError, match=r"k1.*mask register that was set before"):
        lifted(nest, binary)


def test_a_mask_that_is_read_after_the_loop_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(NotLiftedError, match="reads mask register k1"):
        nest_of(tmp_path, "mov $0x55, %eax\n kmovb %eax, %k1", "kmovb %k1, %eax\n nopl 0(%rax)")


def test_all_of_a_zmm_register_is_left_behind(tmp_path: Path) -> None:
    nest, _ = nest_of(tmp_path, "kxnorb %k1, %k1, %k1", "vmovupd %zmm1, (%rdx)\n nopl 0(%rax)")
    assert [place.index for place in nest.outs if isinstance(place, Lane) and place.number == 1] == list(range(8))


@pytest.mark.parametrize(
    ("code", "used", "killed"),
    [
        ("62f1ed48580a", {("v", 2), ("g", 2)}, {("v", 1)}),  # vaddpd zmm1, zmm2, [rdx]
        ("62f1ed49580a", {("v", 1), ("v", 2), ("g", 2), ("k", 1)}, {("v", 1)}),  # the same {k1}
        ("62f1edc9580a", {("v", 2), ("g", 2), ("k", 1)}, {("v", 1)}),  # the same {k1}{z}
        ("c5ec41cb", {("k", 2), ("k", 3)}, {("k", 1)}),  # kandw k1, k2, k3
        ("62f2fd498a0a", {("k", 1), ("v", 1), ("g", 2)}, set()),  # vcompresspd [rdx]{k1}, zmm1: not lifted
    ],
)
def test_what_is_read_and_written(code: str, used: set[tuple[str, int]], killed: set[tuple[str, int]]) -> None:
    assert uses_and_kills(decode_one(bytes.fromhex(code), 0x1000)) == (used, killed)
