"""Contents of the vector registers at a loop's entry, and the part of them that the code after it reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.mockup.ir.effects import Const, Expr, Lane, MaskBit, Op, Read
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.cfg import Cfg, build_cfg
from layout_advise.mockup.machine.entry_values import Known, known_vectors, states_before
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.machine.liveness import Liveness
from layout_advise.mockup.machine.loop_regions import LoopNest, hottest_nests
from layout_advise.tracer.program.binary import ElfBinary

ONE, TWO, THREE = 0x3FF0000000000000, 0x4000000000000000, 0x4008000000000000
SOURCE = """
.section .rodata
.balign 16
pair: .double 1.0, 2.0
three: .double 3.0
.text
.globl f
.type f, @function
f:
    movapd pair(%rip), %xmm1       # two constants
    movsd three(%rip), %xmm2       # a constant, and zero above it
    unpcklpd %xmm2, %xmm2
    movapd %xmm0, %xmm3            # what the caller handed over, twice
    unpcklpd %xmm3, %xmm3
    movss (%rdi), %xmm4            # one float four times
    shufps $0, %xmm4, %xmm4
    movq %rsi, %xmm5
    punpcklqdq %xmm5, %xmm5
    movapd pair(%rip), %xmm7
1:
    movsd (%rdi), %xmm6            # another value in each iteration,
    unpcklpd %xmm6, %xmm6
    movapd %xmm6, %xmm8            # kept here from the last one
    addpd %xmm1, %xmm7             # starts as a constant
2:
    addsd %xmm2, %xmm0
    mulsd %xmm1, %xmm0
    inc %rax
    cmp $8, %rax
    jne 2b
    add $8, %rdi
    dec %rsi
    jne 1b
    leaq three(%rip), %rdi
    mov $2, %eax
    call CALLEE@PLT
    ret
.size f, .-f
"""


def cfg_of(folder: Path, callee: str = "printf") -> tuple[Cfg, ElfBinary]:
    (folder / "f.s").write_text(SOURCE.replace("CALLEE", callee))
    subprocess.run(["gcc", "-shared", "-o", folder / "f.so", folder / "f.s"], check=True)
    binary = ElfBinary.open_module(folder / "f.so")
    return build_cfg(binary.region("f", 0)), binary


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> list[dict[Lane | MaskBit, Expr]]:
    """The known contents at the heads of the outer and the inner loop."""
    cfg, binary = cfg_of(tmp_path_factory.mktemp("entry"))
    constant = open_image(str(binary.path), 0).read
    before = states_before(cfg, constant)
    return [dict(known_vectors(cfg, before, loop.head, loop.head, constant)) for loop in cfg.loops]


def test_constants_are_known_in_both_lanes(entered: list[dict[Lane | MaskBit, Expr]]) -> None:
    for known in entered:
        assert [known[Lane(1, k)] for k in (0, 1)] == [Const("i64", ONE), Const("i64", TWO)]
        assert [known[Lane(2, k)] for k in (0, 1)] == [Const("i64", THREE), Const("i64", THREE)]


def test_a_value_spread_over_lanes_is_one_value(entered: list[dict[Lane | MaskBit, Expr]]) -> None:
    for known in entered:
        for register in (3, 5):
            assert known[Lane(register, 1)] == Read(Lane(register, 0), "i64")
            assert Lane(register, 0) not in known


def test_a_float_in_both_halves_is_told(entered: list[dict[Lane | MaskBit, Expr]]) -> None:
    half = Op("lo32", "i32", (Read(Lane(4, 0), "i64"),))
    for known in entered:
        assert known[Lane(4, 0)] == Op("pair", "i64", (half, half))
        assert known[Lane(4, 1)] == Read(Lane(4, 0), "i64")


def test_what_changes_in_a_loop_is_not_constant(entered: list[dict[Lane | MaskBit, Expr]]) -> None:
    outer, inner = entered
    for known in (outer, inner):
        assert not isinstance(known.get(Lane(7, 0)), Const)
        assert Lane(0, 0) not in known
    # before the outer loop has run nothing is in xmm6, and afterwards something: at its head it is not known
    assert Lane(6, 1) not in outer
    # inside both registers hold what was just loaded
    assert inner[Lane(8, 0)] == inner[Lane(8, 1)] == inner[Lane(6, 1)] == Read(Lane(6, 0), "i64")


@pytest.mark.parametrize(("callee", "floats"), [("printf", 2), ("__printf_chk", 2), ("puts", 0), ("unknown", 8)])
def test_vector_arguments_of_a_call_behind_the_loop(tmp_path: Path, callee: str, floats: int) -> None:
    """Of functions with any number of arguments al tells; of unknown ones all are taken for arguments."""
    cfg, _ = cfg_of(tmp_path, callee)
    (after,) = [e for loop in cfg.loops if loop.parent is None for _, e in loop.exits]
    live = {number for kind, number in Liveness(cfg).at_start[after] if kind == "v"}
    assert live == set(range(floats))


PROGRAM = """
void scale(double *x, long n, int steps, double a)
{
    for (int s = 0; s < steps; s++) {
        for (long i = 0; i < n; i++)
            x[i] *= a;
        a += 1;
    }
}
"""


def test_both_lanes_of_the_lifted_loop_have_the_same_factor(tmp_path: Path) -> None:
    (tmp_path / "scale.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O3", "-shared", "-fPIC", "-o", tmp_path / "scale.so", tmp_path / "scale.c"], check=True)
    function = ElfBinary.open_module(tmp_path / "scale.so").region("scale", 0)
    blocks = build_cfg(function).blocks.values()
    hot = next(i.address for block in blocks for i in block.insns if i.mnemonic == "mulpd")
    inner = list(hottest_nests(function, {hot: 1}))[-1]
    assert isinstance(inner, LoopNest)
    region = inner.region(function)

    def arriving_in_both_lanes(known: Known) -> list[int]:
        live_ins = lift(region, known=known).live_ins
        lanes = {live.location for live in live_ins if isinstance(live.location, Lane)}
        return [place.number for place in lanes if place.index == 0 and Lane(place.number, 1) in lanes]

    assert arriving_in_both_lanes(())
    assert not arriving_in_both_lanes(inner.known)
