"""The parts of the clone: how operands are classified, what is refused, where it may stand, what a whole trace holds."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Self, cast
from unittest.mock import patch

import numpy as np
import pytest

from layout_advise.errors import TraceError
from layout_advise.layoutalgebra.sets.nests import FoldedStream, expand
from layout_advise.tracer.backends.clone.address import CLONE_ROOM, choose_address
from layout_advise.tracer.backends.clone.image import build_clone
from layout_advise.tracer.backends.clone.record import trace_call
from layout_advise.tracer.backends.step.single_steps import trace_by_steps
from layout_advise.tracer.code.instructions import decode
from layout_advise.tracer.code.region import Region
from layout_advise.tracer.process.ptraced import PtracedProgram
from layout_advise.tracer.process.stopped_program import CloneImage, StoppedProgram
from layout_advise.tracer.trace.trace import Allocation, Mapping, Registers
from tests.support.clone_programs import PROGRAMS, build, region_of
from tests.support.tracing.assembled import BASE, assemble
from tests.support.tracing.ptraced_clone import run_clone


@pytest.mark.parametrize(
    ("text", "accesses"),
    [
        ("mov rax, [rdi]", ["read 8"]),
        ("mov byte ptr [rdi], 3", ["write 1"]),
        ("add dword ptr [rdi + rcx * 4], eax", ["both 4"]),
        ("cmp word ptr [rdi], 5", ["read 2"]),
        ("movlps [rdi], xmm1", ["write 8"]),
        ("vmovss dword ptr [rdi], xmm1", ["write 4"]),
        ("movss xmm1, dword ptr [rdi]", ["read 4"]),
        ("vmovhpd qword ptr [rdi], xmm3", ["write 8"]),
        ("vmovhpd xmm3, xmm4, qword ptr [rdi]", ["read 8"]),
        ("vmaskmovpd [rdi], ymm1, ymm2", ["write 8"] * 4),
        ("vpmaskmovd ymm1, ymm2, [rdi]", ["read 4"] * 8),
        ("vmovntpd [rdi], ymm1", ["write 32"]),
        ("vextractf128 [rdi], ymm1, 1", ["write 16"]),
        ("vbroadcastsd ymm1, qword ptr [rdi]", ["read 8"]),
        ("vinsertf128 ymm1, ymm1, [rdi], 1", ["read 16"]),
        ("vcvtps2ph [rdi], ymm1, 0", ["write 16"]),
        ("vpmovzxbd ymm1, [rdi]", ["read 8"]),
        ("pextrd dword ptr [rdi], xmm1, 2", ["write 4"]),
        ("ucomisd xmm1, qword ptr [rdi]", ["read 8"]),
        ("sete byte ptr [rdi]", ["write 1"]),
        ("imul qword ptr [rdi]", ["read 8"]),
        ("neg qword ptr [rdi]", ["both 8"]),
        ("xchg [rdi], eax", ["both 4"]),
        ("lock cmpxchg [rdi], rcx", ["both 8"]),
        ("fld qword ptr [rdi]", ["read 8"]),
        ("fstp tbyte ptr [rdi]", ["write 10"]),
        ("fistp dword ptr [rdi]", ["write 4"]),
        ("stmxcsr [rdi]", ["write 4"]),
        ("push rbx", ["write 8"]),
        ("push 3", ["write 8"]),
        ("push qword ptr [rdi]", ["read 8", "write 8"]),
        ("pop rbx", ["read 8"]),
        ("leave", ["read 8"]),
        ("ret", ["read 8"]),
        ("call qword ptr [rdi]", ["read 8", "write 8"]),
        ("movsq", ["write 8", "read 8"]),
        ("rep stosd", ["write 4"]),
        ("cmpsb", ["read 1", "read 1"]),
        ("vgatherdpd ymm1, [rdi + xmm2 * 8], ymm3", ["read 8"] * 4),
        ("vgatherqps xmm1, [rdi + ymm2 * 4], xmm3", ["read 4"] * 4),
        ("vgatherdpd zmm1{k1}, [rdi + ymm2 * 8]", ["read 8"] * 8),
        ("vpscatterqd [rdi + zmm2 * 4]{k1}, ymm1", ["write 4"] * 8),
        ("vgatherpf0dps [rdi + zmm2 * 4]{k1}", []),
        ("vmovupd zmm1, [rdi + 64]", ["read 64"]),
        ("vmovdqu8 [rdi]{k1}, zmm1", ["write 1"] * 64),
        ("vaddpd zmm1, zmm2, qword ptr [rdi]{1to8}", ["read 8"]),
        ("lea rax, [rdi]", []),
        ("vcompresspd zmm1{k1}, zmm2", []),
        ("nop word ptr [rax + rax]", []),
        ("prefetcht0 [rdi]", []),
    ],
)
def test_accesses(tmp_path: Path, text: str, accesses: list[str]) -> None:
    first = decode(assemble(tmp_path, text + "\nret"))[BASE]
    assert [f"{a.kind} {a.bytes}" for a in first.accesses] == accesses
    assert [a.operand for a in first.accesses] == list(range(len(accesses)))


@pytest.mark.parametrize(
    "text", ["enter 16, 0", "xlatb", "mov rax, gs:[8]", "bts [rdi], rax", "xsave [rdi]", "vmaskmovdqu xmm1, xmm2",
             "pop [rsp + 8]", "vgatherdpd zmm1{k1}, fs:[rdi + ymm2 * 8]", "vgatherqps xmm1, [edi + ymm2 * 4], xmm3",
             "vpscatterdd [edi + xmm2 * 4]{k1}, xmm1", "insb"],
)  # fmt: skip
def test_what_cannot_be_copied_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(TraceError, match=text.split()[0]):
        build_clone(assemble(tmp_path, text + "\nret"), BASE + (64 << 20))


def test_garbage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not decode"):
        build_clone(assemble(tmp_path, "jmp 1f\n1: .byte 6, 6, 6"), BASE + (64 << 20))


def test_data_behind_the_code_is_left_alone(tmp_path: Path) -> None:
    assert len(decode(assemble(tmp_path, "jmp 1f\n .byte 6, 6, 6, 6\n1: mov rax, [rdi]\nret"))) >= 3


def test_the_place_is_free_and_near() -> None:
    taken = tuple(Mapping(at, at + (20 << 20), "r-xp", 0, "") for at in range(1 << 20, 300 << 20, 40 << 20))
    place = choose_address(taken, 0x401000)
    assert place % 4096 == 0
    assert abs(place - 0x401000) < 1 << 30
    assert all(m.end <= place or place + CLONE_ROOM <= m.start for m in taken)
    with pytest.raises(TraceError, match="no place"):
        choose_address((Mapping(0, 1 << 46, "r-xp", 0, ""),), 1 << 40)


class Ptraced:
    """The part of :class:`StoppedProgram` that tracing needs, without the agent: every fork is a new, equal process."""

    others_ran = False

    def __init__(self, program: Path, call: int) -> None:
        self.program, self.call = program, call
        self.process = PtracedProgram([str(program)])
        self.region = region_of(program, self.process.load_base(program))
        self.process.run_to(self.region.entry, call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.close()

    def registers(self) -> Registers:
        now = self.process.registers()
        return Registers((now.rax,), now.rip, now.eflags, 0, now.fs_base)

    def mappings(self) -> tuple[Mapping, ...]:
        return self.process.mappings()

    def allocations(self) -> tuple[Allocation, ...]:
        return ()

    def live_blocks(self) -> tuple[Allocation, ...]:
        return ()

    def read(self, address: int, size: int) -> bytes:
        return self.process.read(address, size)

    def fork(self) -> Ptraced:
        return Ptraced(self.program, self.call)

    def trace(self, image: CloneImage, records: Path, capacity: int) -> tuple[int, bool]:
        found, full, _ = run_clone(self.process, image, min(capacity, 1 << 20))
        if capacity < 10:
            raise TraceError("broken on purpose")
        found.tofile(records)
        return len(found), full


def test_a_whole_trace_is_that_of_single_stepping(tmp_path: Path) -> None:
    program = build(tmp_path, "triangle", "-O2")
    work = tmp_path / "work"
    work.mkdir()
    with Ptraced(program, 3) as stopped:
        trace = trace_call(cast(StoppedProgram, stopped), stopped.region, 3, folder=work)
        steps = trace_by_steps(stopped.process, stopped.region)
    assert not list(work.iterdir())
    assert (trace.symbol, trace.call, trace.backend, trace.truncated) == ("hot", 3, "clone", False)
    assert trace.accesses == len(steps) > 400
    for reference, stream in zip(trace.references, trace.streams, strict=True):
        expected = [s.address for s in steps if (s.pc, s.operand) == (reference.pc, reference.operand)]
        assert (list(expand(stream.nodes)) if isinstance(stream, FoldedStream) else []) == expected


def test_nothing_is_left_behind_when_tracing_fails(tmp_path: Path) -> None:
    program = build(tmp_path, "particles", "-O2")
    work = tmp_path / "work"
    work.mkdir()
    with Ptraced(program, 1) as stopped, pytest.raises(TraceError, match="on purpose"):
        trace_call(cast(StoppedProgram, stopped), stopped.region, 1, cap=5, folder=work)
    assert not list(work.iterdir())


def test_a_cap_makes_a_truncated_trace(tmp_path: Path) -> None:
    with Ptraced(build(tmp_path, "particles", "-O2"), 1) as stopped:
        trace = trace_call(cast(StoppedProgram, stopped), stopped.region, 1, cap=300, folder=tmp_path)
    assert trace.truncated
    assert 250 < trace.accesses <= 300


def test_a_jump_to_no_known_instruction_is_told(tmp_path: Path) -> None:
    """The middle of one: control leaves the clone there, which is no lack of room."""
    source = """
static long m[64]; static void prepare(void) { m[3] = 1; }
NOINLINE long hot(long n) { for (long i = 0; i < n; i++) m[i] += n;
    __asm__ volatile("leaq 1f+1(%%%%rip), %%%%rax; jmp *%%%%rax; 1: .byte 0xb8, 0x90, 0x90, 0x90, 0x90" : : : "rax");
    for (long i = 0; i < n; i++) m[i] ^= n; return m[5]; }
"""
    with patch.dict(PROGRAMS, {"middle": source}):
        program = build(tmp_path, "middle", "-O1")
    with Ptraced(program, 1) as stopped:
        trace = trace_call(cast(StoppedProgram, stopped), stopped.region, 1, folder=tmp_path)
        steps = trace_by_steps(stopped.process, stopped.region)
    assert trace.truncated
    assert trace.accesses == 20 < 40 < len(steps)
    assert trace.limits == ("cut after 20 accesses: an indirect jump led to where no instruction is known",)


def lackey_accesses(program: Path, region: Region) -> list[tuple[str, int, int]]:
    """(kind, address, bytes) of lackey between instructions of the region, neighbouring halves of one access merged."""
    command = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-file=/dev/stdout", str(program)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found: list[tuple[str, int, int]] = []
    inside = False
    for line in lines:
        if line[:2] in ("I ", " L", " S", " M"):
            kind, place = line.split()
            address, size = (int(part, 16 if n == 0 else 10) for n, part in enumerate(place.split(",")))
            if kind == "I":
                inside = region.contains(address)
            elif inside:
                found.append((kind, address, size))
    return found


def test_lackey_sees_the_same(tmp_path: Path) -> None:
    program = build(tmp_path, "triangle", "-O2", "-fno-pic", "-no-pie")
    with PtracedProgram([str(program)]) as process:
        region = region_of(program, 0)
        process.run_to(region.entry)
        image = build_clone(region, choose_address(process.mappings(), region.entry))
        records, _, _ = run_clone(process, image, 100_000)
    letters = {"read": "L", "write": "S", "both": "M"}
    mine: list[tuple[str, int, int]] = []
    for record in records.tolist():
        reference: Any = image.references[record >> 48]
        mine.append((letters[reference.kind], record & (1 << 48) - 1, reference.bytes))
    theirs = lackey_accesses(program, region)
    # three calls follow each other in lackey; the matrix is global, so its addresses are the same under Valgrind
    low, high = 0x400000, 0x500000
    ours = [a for a in mine if low <= a[1] < high]
    assert len(ours) > 400
    assert [a for a in theirs if low <= a[1] < high][: len(ours)] == ours


def test_a_large_function_is_copied_whole(tmp_path: Path) -> None:
    body = "\n".join(f"mov rax, [rdi + {8 * k}]\nadd [rsi + rax * 4], ecx\ncmp rax, {k}\nje .L{k % 7}" for k in range(900))
    labels = "\n".join(f".L{k}: dec rcx" for k in range(7))
    region = assemble(tmp_path, f"{body}\n{labels}\nret")
    image = build_clone(region, BASE + (64 << 20))
    assert len(image.references) == 1801
    assert [r.pc for r in image.references] == sorted(r.pc for r in image.references)
    assert np.frombuffer(image.code[:24], dtype=np.uint64).sum() == 0
