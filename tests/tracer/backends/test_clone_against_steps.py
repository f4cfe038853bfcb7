"""The clone's records are those of single-stepping, one by one, on programs compiled in several ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from layout_advise.tracer.backends.clone.address import choose_address
from layout_advise.tracer.backends.clone.image import build_clone
from layout_advise.tracer.backends.step.single_steps import trace_by_steps
from layout_advise.tracer.code.instructions import decode
from layout_advise.tracer.process.ptrace import UserRegisters
from layout_advise.tracer.process.ptraced import PtracedProgram
from layout_advise.tracer.process.stopped_program import CloneImage
from tests.support.clone_programs import PROGRAMS, WIDE_PROGRAMS, build, region_of
from tests.support.tracing.processor import HAS_WIDE
from tests.support.tracing.ptraced_clone import run_clone

FLAGS = {
    "O2": ("-O2",),
    "O3": ("-O3", "-march=haswell"),
    "O1-static": ("-O1", "-fno-pic", "-no-pie"),
    "Ofast-static": ("-Ofast", "-march=haswell", "-fno-pic", "-no-pie"),
}
WIDE = ("-O3", "-march=skylake-avx512", "-mprefer-vector-width=512")
QUICK = ("particles", "switch", "recursion", "strings", "conditional")  # loops, jumps, calls, repeated and conditional moves
Accesses = list[tuple[int, int, int]]


def clone_run(program: Path, call: int, capacity: int) -> tuple[Accesses, bool, UserRegisters, CloneImage]:
    with PtracedProgram([str(program)]) as process:
        base = process.load_base(program) if region_of(program, 0).load_base == 0 and is_pie(program) else 0
        region = region_of(program, base)
        process.run_to(region.entry, call)
        image = build_clone(region, choose_address(process.mappings(), region.entry))
        records, full, after = run_clone(process, image, capacity)
    sites = [(r.pc, r.operand) for r in image.references]
    numbers, addresses = (records >> np.uint64(48)).tolist(), (records & np.uint64((1 << 48) - 1)).tolist()
    return [(*sites[n], a) for n, a in zip(numbers, addresses, strict=True)], full, after, image


def is_pie(program: Path) -> bool:
    return program.read_bytes()[16] == 3


def step_run(program: Path, call: int) -> tuple[Accesses, UserRegisters]:
    with PtracedProgram([str(program)]) as process:
        region = region_of(program, process.load_base(program) if is_pie(program) else 0)
        process.run_to(region.entry, call)
        steps = trace_by_steps(process, region)
        return [(s.pc, s.operand, s.address) for s in steps], process.registers()


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        pytest.param(name, flags, marks=[pytest.mark.slow] * (name not in QUICK and flags.endswith("static")))
        for name in PROGRAMS
        for flags in FLAGS
    ],
)
def test_same_accesses_and_result(tmp_path: Path, name: str, flags: str) -> None:
    compare_runs(build(tmp_path, name, *FLAGS[flags]))


@pytest.mark.skipif(not HAS_WIDE, reason="this processor has no AVX-512 (avx512f, bw, dq, vl, cd)")
@pytest.mark.parametrize(
    "name", [*(pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in PROGRAMS), *WIDE_PROGRAMS]
)
def test_same_accesses_and_result_with_avx512(tmp_path: Path, name: str) -> None:
    compare_runs(build(tmp_path, name, *WIDE))


@pytest.mark.parametrize(
    "name", [*(pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in PROGRAMS), *WIDE_PROGRAMS]
)
def test_avx512_code_can_be_copied(tmp_path: Path, name: str) -> None:
    """Also where it cannot be run."""
    region = region_of(build(tmp_path, name, *WIDE), 0x555555554000)
    assert build_clone(region, 0x555555554000 + (64 << 20)).references


def compare_runs(program: Path) -> None:
    expected, stepped = step_run(program, 2)
    recorded, full, after, _ = clone_run(program, 2, len(expected) + 48)
    assert len(expected) > 20  # fewer where the vectors are longer
    assert recorded == expected
    assert not full
    assert (after.rax, after.rsp, after.rbx, after.rbp, after.r12, after.r13, after.r14, after.r15) == (
        stepped.rax, stepped.rsp, stepped.rbx, stepped.rbp, stepped.r12, stepped.r13, stepped.r14, stepped.r15,
    )  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in PROGRAMS])
def test_a_full_buffer_cuts_the_trace_and_nothing_else(tmp_path: Path, name: str) -> None:
    program = build(tmp_path, name, "-O2", "-march=haswell")
    whole, _, result, _ = clone_run(program, 1, 100_000)
    for capacity in (0, 1, len(whole) // 3, len(whole) - 1):
        part, full, after, _ = clone_run(program, 1, capacity)
        assert full
        assert capacity - 48 <= len(part) <= capacity
        assert part == whole[: len(part)]
        assert (after.rax, after.rsp, after.rbx) == (result.rax, result.rsp, result.rbx)


@pytest.mark.parametrize(
    ("name", "flags", "wanted"),
    [
        ("switch", "O2", "jump-indirect"),
        ("switch", "O1-static", "jump-indirect"),
        ("goto", "O2", "jump-indirect"),
        ("pointer", "O2", "call-indirect"),
        ("recursion", "O2", "call"),
        ("flags", "O2", "loop"),
        ("gather", "O3", "vgatherdpd"),
        ("gather", "O3", "vgatherdps"),
        ("gather", "O3", "vgatherqpd"),
        ("gather", "O3", "vgatherqps"),
        ("gather", "O3", "vmaskmovps"),
        ("strings", "O2", "movsq"),
        ("tail", "O2", "jump-indirect"),
        ("x87", "O2", "fmul"),
        ("x87", "O2", "fistp"),
        ("x87", "O2", "fldcw"),
        ("atomics", "O2", "cmpxchg16b"),
        ("atomics", "O2", "cmpxchg"),
        ("atomics", "O2", "xadd"),
        ("atomics", "O2", "btc"),
        ("atomics", "O2", "bt"),
        ("masked", "O3", "vmaskmovpd"),
        ("masked", "O3", "vpmaskmovq"),
        ("masked", "O3", "vpmaskmovd"),
        *(("wide-gather", "WIDE", name) for name in ("vgatherdpd", "vpgatherqq", "vscatterdps", "vpscatterqd")),
        *(("wide-masked", "WIDE", name) for name in ("vmovupd", "vmovdqu8", "vaddpd", "vpcompressd", "vexpandpd")),
    ],
)
def test_the_programs_have_what_they_are_for(tmp_path: Path, name: str, flags: str, wanted: str) -> None:
    code = decode(region_of(build(tmp_path, name, *(FLAGS | {"WIDE": WIDE})[flags]), 0))
    assert wanted in {insn.flow for insn in code.values()} | {insn.name for insn in code.values()}
