"""Gathers, scatters and masked moves in the clone, as far as a processor without AVX-512 can check them.

What is added to the code is disassembled by objdump. Run is it with the few AVX-512 instructions taken out and what they
would store put where they would store it.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from layout_advise.tracer.backends.clone.assembler import Assembler
from layout_advise.tracer.backends.clone.header import HEADER_BYTES
from layout_advise.tracer.backends.clone.image import build_clone
from layout_advise.tracer.backends.clone.lane_code import INDEX_AT, MASK_AT, LaneCode
from layout_advise.tracer.code.decoder import GPR_NAMES
from layout_advise.tracer.code.instructions import Instruction, decode
from layout_advise.tracer.code.operands import MaskedElements
from layout_advise.tracer.process.ptrace import UserRegisters
from layout_advise.tracer.process.ptraced import PtracedProgram
from layout_advise.tracer.process.stopped_program import CloneImage
from layout_advise.tracer.process.xstate import Components, avx512_vector, opmask
from layout_advise.tracer.watch.faulting import Operands
from tests.support.clone_programs import build
from tests.support.tracing.assembled import BASE, assemble
from tests.support.tracing.ptraced_clone import run_clone

VECTORS = {16: "xmm", 32: "ymm", 64: "zmm"}
INDEXED = [
    f"{start}{kind}{index}{element}"
    for start, elements in (("v", ("ps", "pd")), ("vp", ("d", "q")))
    for kind in ("gather", "scatter")
    for index in "dq"
    for element in elements
]


def indexed_forms(seed: int) -> Iterator[str]:
    """Every gather and scatter of every vector length, with all kinds of addresses."""
    r = random.Random(seed)
    for name in INDEXED:
        index_bytes, element_bytes = sizes(name)
        for length in VECTORS:
            lanes = length // max(index_bytes, element_bytes)
            index, data = r.sample(range(32), 2)
            base = r.choice(["rdi", "rax", "r9", "r12", "r13", "rbp", "r11", "rbx"])
            disp = r.choice(["", " + 8", " - 8", " + 64", " - 256", " + 0x1230", " + 4", " + 1"])
            vectors = [VECTORS[max(16, lanes * size)] for size in (index_bytes, element_bytes)]
            memory = f"[{base} + {vectors[0]}{index} * {r.choice([1, 2, 4, 8])}{disp}]"
            k = f"{{k{r.randrange(1, 8)}}}"
            data_operand = f"{vectors[1]}{data}"
            yield f"{name} {memory}{k}, {data_operand}" if "scatter" in name else f"{name} {data_operand}{k}, {memory}"


def sizes(name: str) -> tuple[int, int]:
    """Bytes of an index and of an element."""
    return (8 if re.split("gather|scatter", name)[1][0] == "q" else 4), (8 if name.endswith(("pd", "q")) else 4)


MASKED = {
    "vmovupd [rdi + 64]{k1}, zmm20": (8, [1 << k for k in range(8)]),
    "vmovups ymm3{k2}{z}, [r13 - 32]": (4, [1 << k for k in range(8)]),
    "vmovdqu8 [rip + 4096]{k3}, zmm1": (1, [1 << k for k in range(64)]),
    "vmovdqu16 ymm9{k3}, [rax + rcx * 2 + 6]": (2, [1 << k for k in range(16)]),
    "vmovdqa64 [r12]{k4}, ymm1": (8, [1, 2, 4, 8]),
    "vmovss [rdi + 4]{k1}, xmm3": (4, [1]),
    "vmovsd xmm3{k7}, [rdi + 8]": (8, [1]),
    "vaddpd zmm1{k5}, zmm2, [rsi + 128]": (8, [1 << k for k in range(8)]),
    "vaddps ymm1{k5}, ymm2, dword ptr [rsi + 4]{1to8}": (4, [255]),
    "vfmadd231ss xmm1{k5}, xmm2, [rsi]": (4, [1]),
    "vcmpps k1{k2}, xmm2, [rsi], 1": (4, [1, 2, 4, 8]),
    "vpcmpub k1{k2}, ymm2, [rsi], 1": (1, [1 << k for k in range(32)]),
    "vpternlogq zmm1{k2}, zmm2, [rsi], 1": (8, [1 << k for k in range(8)]),
    "vpmovusqb [rdi]{k2}, zmm1": (1, [1 << k for k in range(8)]),
    "vpmovdw [rdi]{k2}, xmm1": (2, [1, 2, 4, 8]),
    "vpmovzxbd zmm1{k2}, [rdi + 16]": (1, [1 << k for k in range(16)]),
    "vcvtps2pd zmm1{k2}, [rdi + 32]": (4, [1 << k for k in range(8)]),
    "vcvtpd2ps ymm1{k2}, zmmword ptr [rdi]": (8, [1 << k for k in range(8)]),
    "vcvtdq2pd zmm1{k2}, dword ptr [rdi + 4]{1to8}": (4, [255]),
    "vcvtps2ph [rdi]{k2}, zmm1, 0": (2, [1 << k for k in range(16)]),
    "vpbroadcastw zmm1{k2}, [rdi]": (2, [(1 << 32) - 1]),
    "vbroadcastf32x4 ymm1{k2}, [rdi]": (16, [255]),
    "vextractf64x2 [rdi]{k2}, zmm1, 3": (8, [1, 2]),
    "vpsrld ymm1{k2}, [rdi], 3": (4, [1 << k for k in range(8)]),
    "vpsrld ymm1{k2}, ymm3, [rdi]": (16, None),
    "vpermd zmm1{k2}, zmm3, [rdi]": (64, None),
    "vpmaddwd zmm1{k2}, zmm3, [rdi]": (64, None),
    "vmovupd zmm1, [rdi]": (64, None),
}  # fmt: skip
COUNTED = {
    "vcompresspd [rdi + 8]{k1}, zmm1": (8, 8),
    "vpcompressd [rdi + 8]{k1}, xmm21": (4, 4),
    "vpexpandd zmm1{k2}, [rdi + 4]": (4, 16),
    "vpexpandb zmm1{k2}, [rdi + 4]": (1, 64),
}  # fmt: skip


def first_of(tmp_path: Path, text: str) -> Instruction:
    return decode(assemble(tmp_path, text + "\nret"))[BASE]


def disassembled(code: bytes, address: int, tmp_path: Path) -> list[str]:
    """objdump's text of every instruction, with one blank and without comments."""
    flat = tmp_path / "flat.bin"
    flat.write_bytes(code)
    command = [
        "objdump",
        "-D",
        "-b",
        "binary",
        "-m",
        "i386:x86-64",
        "-M",
        "intel",
        "-w",
        f"--adjust-vma={address}",
        str(flat),
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s*[0-9a-f]+:\t[0-9a-f ]+\t(.*)$", text, re.M)
    return [_absolute(re.sub(r"\s+", " ", line).strip()) for line in found]


def _absolute(line: str) -> str:
    """With the address in the place of the distance to it."""
    text, _, address = line.partition(" # ")
    return re.sub(r"\[rip.*?\]", f"[{address}]", text).removeprefix("rex ").strip()


def test_operands_are_those_that_objdump_sees(tmp_path: Path) -> None:
    forms = [form for seed in range(12) for form in indexed_forms(seed)]
    region = assemble(tmp_path, "\n".join(forms) + "\nret")
    seen = disassembled(region.ranges[0].code, BASE, tmp_path)
    assert len(forms) == 12 * 16 * 3
    for insn, text in zip(decode(region).values(), seen[:-1], strict=False):
        name = text.split()[0]
        found = re.search(r"\[(\w+)\+([xyz]mm)(\d+)\*(\d)(?:([+-]0x[0-9a-f]+))?\]", text)
        assert found is not None
        base, index_vector, index, scale, disp = found.groups()
        data = re.findall(r"[xyz]mm", text.replace(found[0], ""))[0]
        index_bytes, element_bytes = sizes(name)
        width = {name: size for size, name in VECTORS.items()}
        lanes = insn.lanes
        assert lanes is not None
        assert lanes.opmask
        assert f"{{k{lanes.mask}}}" in text
        count = min(width[index_vector] // index_bytes, width[data] // element_bytes)
        assert (lanes.index, lanes.index_bytes, lanes.bits) == (int(index), index_bytes, tuple(1 << k for k in range(count)))
        assert lanes.vector_bytes >= count * index_bytes
        assert len(insn.accesses) == count
        for access in insn.accesses:
            assert (access.kind, access.bytes) == ("write" if "scatter" in name else "read", element_bytes)
            assert (GPR_NAMES[access.memory.base or 0], access.memory.scale) == (base, int(scale))
            assert access.memory.disp == (int(disp, 16) if disp else 0)


@pytest.mark.parametrize("text", [*MASKED, *COUNTED])
def test_a_mask_says_which_elements_are_accessed(tmp_path: Path, text: str) -> None:
    """As an emulator with AVX-512 accesses them."""
    insn = first_of(tmp_path, text)
    if text in COUNTED:
        size, count = COUNTED[text]
        bits: list[int] | None = [1 << k for k in range(count)]
    else:
        size, bits = MASKED[text]
    assert [a.bytes for a in insn.accesses] == [size] * len(bits or [0])
    assert (None if insn.lanes is None else list(insn.lanes.bits)) == bits
    assert insn.lanes is None or insn.lanes.counted == (text in COUNTED)
    starts = [access.memory.effective([0] * 16, 0) for access in insn.accesses]
    assert starts == [starts[0] + k * size for k in range(len(starts))]
    assert {a.kind for a in insn.accesses} == {"write" if text.split()[1].startswith("[") else "read"}


def test_which_accesses_are_made_by_counting_them() -> None:
    lanes = MaskedElements(1, True, (1, 2, 4, 8), 4, counted=True)
    assert lanes.made(0b1111_1010) == [True, True, False, False]
    assert lanes.made(0) == [False] * 4
    assert MaskedElements(1, True, (1, 2, 4, 8), 4).made(0b1111_1010) == [False, True, False, True]
    assert MaskedElements(1, True, (255,), 4).made(0x100) == [False]


@pytest.mark.parametrize("number", [0, 5, 8, 15, 16, 23, 24, 31])
@pytest.mark.parametrize("size", [16, 32, 64])
def test_what_is_added_is_what_it_should_be(tmp_path: Path, number: int, size: int) -> None:
    header = 0x500000
    for other in (1, 7, 8, 11, 15):
        for mask, bits in ((1, (1, 2, 4, 8)), (7, tuple(1 << k for k in range(32))), (3, (0xFF,))):
            out = Assembler(header + HEADER_BYTES)
            constants: dict[int, int] = {}
            code = LaneCode(out, header, constants, MaskedElements(mask, True, bits, 4, False, number, 4, size), other)
            code.look()
            code.made(0)
            seen = disassembled(out.finish(), out.address, tmp_path)
            wide, narrow = GPR_NAMES[other], GPR_NAMES[other].replace("r", "e", 1) if other < 8 else f"{GPR_NAMES[other]}d"
            vector = f"{VECTORS[size].upper()}WORD PTR [{header + INDEX_AT:#x}],{VECTORS[size]}{number}"
            assert seen[0] == f"vmovdqu64 {vector}"
            store, load = ("kmovq QWORD", f"mov {wide},QWORD") if len(bits) == 32 else ("kmovw WORD", f"movzx {narrow},WORD")
            assert seen[1] == f"{store} PTR [{header + MASK_AT:#x}],k{mask}"
            assert seen[2] == f"{load} PTR [{header + MASK_AT:#x}]"
            assert seen[3] == f"pext {wide},{wide},QWORD PTR [{header + constants[bits[0]]:#x}]"
            if bits == (0xFF,):
                assert seen[4:] == [
                    f"pext {wide},{wide},{wide}",
                    f"pext {wide},{wide},QWORD PTR [{header + constants[1]:#x}]",
                ]


# ---- the code that is added, run ----


@dataclass(frozen=True)
class Case:
    insn: Instruction
    image: CloneImage
    mask: int
    index: bytes
    gpr: tuple[int, ...]

    def expected(self) -> list[tuple[int, int]]:
        """(number of the access, address), lane by lane."""
        lanes = self.insn.lanes
        assert lanes is not None
        if lanes.counted:
            made = [k < sum(self.mask >> n & 1 for n in range(len(lanes.bits))) for k in range(len(lanes.bits))]
        else:
            made = [self.mask & bits != 0 for bits in lanes.bits]
        found = []
        for number, access in enumerate(self.insn.accesses):
            address = access.memory.effective(list(self.gpr), 0)
            if lanes.index is not None:
                at = number * lanes.index_bytes
                index = int.from_bytes(self.index[at : at + lanes.index_bytes], "little", signed=True)
                address += index * access.memory.scale
            if made[number]:
                found.append((number, address & (1 << 48) - 1))
        return found


def prepared(image: CloneImage, tmp_path: Path, mask: int, index: bytes, size: int) -> CloneImage:
    """The image with nothing instead of AVX-512 instructions, and the mask and the index stored already."""
    code = bytearray(image.code)
    code[INDEX_AT : INDEX_AT + 64] = index
    code[MASK_AT : MASK_AT + 8] = mask.to_bytes(8, "little")
    flat = tmp_path / "image.bin"
    flat.write_bytes(code[HEADER_BYTES:])
    command = ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-w", str(flat)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    gone = 0
    for place, raw, name in re.findall(r"^\s*([0-9a-f]+):\t([0-9a-f ]+)\t(\S+)", listing, re.M):
        if name.startswith("kmov") or raw.startswith("62"):
            start, length = HEADER_BYTES + int(place, 16), len(raw.split())
            code[start : start + length] = b"\x90" * length
            gone += 1
    assert gone == size
    return CloneImage(image.address, bytes(code), image.entry, image.references)


def cases(tmp_path: Path, r: random.Random) -> Iterator[Case]:
    texts = [*indexed_forms(r.randrange(1000)), *(t for t in MASKED if MASKED[t][1] is not None), *COUNTED]
    for number, text in enumerate(texts):
        region = assemble(tmp_path, f"{text}\nlahf\nseto al\nret")
        insn = decode(region)[BASE]
        assert insn.lanes is not None
        choices = [0, r.getrandbits(64), r.getrandbits(64) & r.getrandbits(64), (1 << 64) - 1, 1 << r.randrange(16)]
        mask, index = r.choice(choices), r.randbytes(64)
        gpr = tuple(r.getrandbits(64) for _ in range(16))
        stored = 1 + (insn.lanes.index is not None)
        image = build_clone(region, BASE + (64 << 20) + (number << 20))
        yield Case(insn, prepared(image, tmp_path, mask, index, stored + 2), mask, index, gpr)


@pytest.mark.parametrize("seed", range(2))
def test_the_lanes_that_are_recorded_are_those_of_the_mask(tmp_path: Path, seed: int) -> None:
    """All registers but rax, which has the flags at the end, are what they were."""
    r = random.Random(seed)
    with PtracedProgram([str(build(tmp_path, "flags", "-O1"))]) as process:
        start = process.registers()
        for case in cases(tmp_path, r):
            before = UserRegisters.from_buffer_copy(start)
            for name, value in zip(GPR_NAMES, case.gpr, strict=True):
                if name != "rsp":
                    setattr(before, name, value)
            case = Case(case.insn, case.image, case.mask, case.index, (*case.gpr[:4], start.rsp, *case.gpr[5:]))
            before.eflags = start.eflags & ~0x8D5 | r.getrandbits(12) & 0x8D5
            process.set_registers(before)
            records, full, after = run_clone(process, case.image, 200)
            assert not full
            first = len(case.insn.accesses)  # the return's is the last record
            mine = [(int(record) >> 48, int(record) & (1 << 48) - 1) for record in records]
            assert mine == [*case.expected(), (first, start.rsp)]
            kept = [name for name in GPR_NAMES if name not in ("rax", "rsp")]
            assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
            flags = before.eflags
            assert after.rax & 0xFFFF == (flags & 0xD5 | 2) << 8 | (flags >> 11 & 1)


def test_a_full_buffer_leaves_no_lane_half_recorded(tmp_path: Path) -> None:
    region = assemble(tmp_path, "vmovdqu8 [rdi]{k1}, zmm1\nret")
    image = prepared(build_clone(region, BASE + (64 << 20)), tmp_path, (1 << 64) - 1, bytes(64), 3)
    with PtracedProgram([str(build(tmp_path, "flags", "-O1"))]) as process:
        records, full, _ = run_clone(process, image, 63)
    assert full
    assert not len(records)


# ---- single steps ----


def test_vectors_and_masks_are_found_in_the_saved_state() -> None:
    r = random.Random(4)
    for at in (Components(1088, 1152, 1664), Components(832, 896, 1408)):  # of Intel's and of AMD's processors
        area = bytearray(2696)
        vectors, masks = [r.randbytes(64) for _ in range(32)], [r.getrandbits(64) for _ in range(8)]
        for n, vector in enumerate(vectors[:16]):
            area[160 + 16 * n : 176 + 16 * n] = vector[:16]
            area[576 + 16 * n : 592 + 16 * n] = vector[16:32]
            area[at.zmm_high + 32 * n : at.zmm_high + 32 * n + 32] = vector[32:]
        for n, vector in enumerate(vectors[16:]):
            area[at.high_16 + 64 * n : at.high_16 + 64 * n + 64] = vector
        for n, mask in enumerate(masks):
            area[at.opmask + 8 * n : at.opmask + 8 * n + 8] = mask.to_bytes(8, "little")
        assert [avx512_vector(bytes(area), n, at) for n in range(32)] == vectors
        assert [opmask(bytes(area), n, at) for n in range(8)] == masks


def test_the_processor_says_where_what_is_in_the_saved_state(tmp_path: Path) -> None:
    """Of the upper halves of the ymm registers that is known: 256 bytes at 576."""
    if " avx2 " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2")
    with PtracedProgram([str(build(tmp_path, "flags", "-O1"))]) as process:
        before = process.registers()
        assert process.cpuid(13, 2)[:2] == (256, 576)
        after = process.registers()
    assert bytes(after) == bytes(before)


# ---- what faulted ----


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("vmovupd [rdi]{k1}, zmm1", [("write", 0, 64)]),
        ("vpexpandd ymm1{k1}, [rdi + 32]", [("read", 32, 32)]),
        ("vmaskmovps [rdi], xmm1, xmm2", [("write", 0, 16)]),
        ("vscatterdpd [rdi + ymm2 * 8]{k1}, zmm1", [("write", 40, 1)]),
        ("vgatherdpd ymm1, [rdi + xmm2 * 8], ymm3", [("read", 40, 1)]),
    ],
)
def test_what_faults_is_told_without_its_mask(tmp_path: Path, text: str, places: list[tuple[str, int, int]]) -> None:
    code = assemble(tmp_path, text).ranges[0].code
    registers = UserRegisters(rip=BASE, rdi=0x8000)
    operands = Operands(lambda at, size: code[at - BASE : at - BASE + size])
    found = operands.accesses(registers, 0x8000 + places[0][1])
    assert [(kind, at - 0x8000, size) for kind, at, size in found] == places
