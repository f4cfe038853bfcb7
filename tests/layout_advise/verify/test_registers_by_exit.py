"""Of the registers that a loop leaves, those count that are read where it was left."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from layout_advise.mockup.ir.effects import Gpr
from layout_advise.mockup.lift.flow import RIP
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.loop_regions import LoopNest, hottest_nests
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Registers
from layout_advise.verify.verify import live_outs

SEARCH = """
    .text
    .globl search
    .type search, @function
search:
    xorl %eax, %eax
    xorl %ecx, %ecx
    xorl %r9d, %r9d
again:
    movq (%rdi,%rax,8), %rdx
    cmpq %rsi, %rdx
    je found
    addq %rdx, %rcx
    incq %rax
    cmpq %r8, %rax
    jl again
    leaq 0x1000(%rcx), %rax
    ret
found:
    leaq 0x2000(%rax), %rax
    ret
    .size search, .-search
    .section .note.GNU-stack,"",@progbits
"""
RAX, RCX = 0, 1


def test_a_register_counts_where_the_code_behind_the_loop_reads_it(tmp_path: Path) -> None:
    """annoy's loop leaves 41 registers, of which none of its exits has use for all."""
    (tmp_path / "search.s").write_text(SEARCH)
    subprocess.run(["gcc", "-shared", "-o", "search.so", "search.s"], cwd=tmp_path, check=True)
    binary = ElfBinary.open_module(tmp_path / "search.so")
    function = binary.find("search")
    region = binary.region(function, 0)
    samples = dict.fromkeys(range(function.start, function.start + function.size), 1)
    (nest,) = hottest_nests(region, samples)
    assert isinstance(nest, LoopNest)
    assert {out.number for out in nest.outs if isinstance(out, Gpr)} >= {RAX, RCX}
    lifted = lift(nest.region(region), outs=nest.outs)
    (found,) = (e for e, kept in zip(nest.exits, nest.kept, strict=True) if ("g", RCX) not in kept)
    (ended,) = set(nest.exits) - {found}
    assert all((out.read_at is None) == (out.location == RIP) for out in lifted.live_outs)

    def left(exit: int, **differing: int) -> tuple[bytes, ...]:
        values = [differing.get("rax", 7) if n == RAX else differing.get("rcx", 9) if n == RCX else 0 for n in range(16)]
        return live_outs(replace(NONE, gpr=tuple(values), rip=exit), lifted)

    assert left(found) == left(found, rcx=1) != left(found, rax=1)
    assert left(ended) == left(ended, rax=1) != left(ended, rcx=1)
    assert left(found) != left(ended)


NONE = Registers((0,) * 16, 0, 0, 0, 0)
