"""Runs assembled instructions natively on given machine states: the oracle that the semantics table is compared with."""

from __future__ import annotations

import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

MEMORY = 0x10000000
MEMORY_BYTES = 512
CENTRE = MEMORY + 256
FLAG_BITS = {"b": 0, "p": 2, "e": 6, "s": 7, "o": 11}
_RSP = 4


@dataclass(frozen=True, slots=True)
class Shape:
    """The numbers of vector registers, of 64-bit lanes in each, and of mask registers that are looked at."""

    vectors: int
    lanes: int
    masks: int

    @property
    def masks_at(self) -> int:
        """The offset of the masks in the state."""
        return 128 + 8 * self.vectors * self.lanes

    @property
    def flags_at(self) -> int:
        """The offset of the flags in the state."""
        return self.masks_at + 8 * self.masks

    @property
    def packed(self) -> struct.Struct:
        """The state's bytes."""
        return struct.Struct(f"<16Q{self.vectors * self.lanes}Q{self.masks}QQ{MEMORY_BYTES}s")


PLAIN = Shape(16, 4, 0)
WIDE = Shape(32, 8, 8)
"""With AVX-512."""

_HARNESS = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
struct state { uint64_t gpr[16]; uint64_t vector[VECTORS][LANES]; MASKS uint64_t flags; unsigned char memory[512]; };
struct state la_now;
void (*la_stub)(void);
extern void la_run(void);
extern void (*la_stubs[])(void);
int main(int argc, char **argv)
{
    unsigned char *memory = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL, *out = argc == 3 ? fopen(argv[2], "wb") : NULL;
    uint64_t number;
    if (memory != (void *)0x10000000 || !in || !out)
        return 1;
    while (fread(&number, 8, 1, in) == 1 && fread(&la_now, sizeof la_now, 1, in) == 1) {
        memcpy(memory, la_now.memory, sizeof la_now.memory);
        la_stub = la_stubs[number];
        la_run();
        memcpy(la_now.memory, memory, sizeof la_now.memory);
        fwrite(&la_now, sizeof la_now, 1, out);
    }
    return fclose(out) != 0;
}
"""


@dataclass(frozen=True, slots=True)
class Native:
    """A whole machine state: 16 general registers, the lanes of the vector registers, flags, memory at ``MEMORY``, masks."""

    gpr: tuple[int, ...]
    lanes: tuple[int, ...]
    flags: int
    memory: bytes
    masks: tuple[int, ...] = ()

    @property
    def lanes_each(self) -> int:
        """64-bit lanes of a vector register."""
        return WIDE.lanes if self.masks else PLAIN.lanes

    def flag(self, name: str) -> bool:
        """One of the flags b (carry), e (zero), s, o, p."""
        return bool(self.flags >> FLAG_BITS[name] & 1)


def _assembly(forms: list[str], shape: Shape) -> str:
    order = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"]
    saved = ("rbx", "rbp", "r12", "r13", "r14", "r15")
    lines = [".intel_syntax noprefix", ".text", ".globl la_run", "la_run:", *(f"push {r}" for r in saved)]
    lines += ["mov [rip+la_rsp], rsp", f"push [rip+la_now+{shape.flags_at}]", "popfq"]
    name, size, move = ("zmm", 64, "vmovdqu64") if shape.lanes == 8 else ("ymm", 32, "vmovups")
    lines += [f"{move} {name}{i}, [rip+la_now+{128 + size * i}]" for i in range(shape.vectors)]
    lines += [f"kmovq k{i}, [rip+la_now+{shape.masks_at + 8 * i}]" for i in range(shape.masks)]
    lines += [f"mov {r}, [rip+la_now+{8 * i}]" for i, r in enumerate(order)]
    lines += ["jmp [rip+la_stub]", "la_done:"]
    lines += [f"mov [rip+la_now+{8 * i}], {r}" for i, r in enumerate(order)]
    lines += [f"{move} [rip+la_now+{128 + size * i}], {name}{i}" for i in range(shape.vectors)]
    lines += [f"kmovq [rip+la_now+{shape.masks_at + 8 * i}], k{i}" for i in range(shape.masks)]
    lines += ["mov rsp, [rip+la_rsp]", "pushfq", f"pop [rip+la_now+{shape.flags_at}]", "cld"]
    lines += [*(f"pop {r}" for r in reversed(saved)), "vzeroupper", "ret"]
    for i, form in enumerate(forms):
        lines += [f"form_{i}:", form, "jmp la_done"]
    lines += [".data", "la_rsp: .quad 0", ".globl la_stubs", "la_stubs:", *(f".quad form_{i}" for i in range(len(forms)))]
    return "\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""])


def build(forms: list[str], folder: Path, shape: Shape = PLAIN) -> tuple[Path, list[tuple[int, bytes]]]:
    """Assembles one stub per form; gives the program, and (address, bytes from there on) of each instruction."""
    source, stubs, program = folder / "harness.c", folder / "stubs.s", folder / "harness"
    masks = f"uint64_t masks[{shape.masks}];" if shape.masks else ""
    source.write_text(f"#define VECTORS {shape.vectors}\n#define LANES {shape.lanes}\n#define MASKS {masks}\n{_HARNESS}")
    stubs.write_text(_assembly(forms, shape))
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-no-pie", "-fno-pie", f"-Wl,--defsym=shared={CENTRE}"]
    done = subprocess.run(["gcc", *flags, str(source), str(stubs), "-o", str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    with program.open("rb") as file:
        elf = ELFFile(file)
        text, table = elf.get_section_by_name(".text"), elf.get_section_by_name(".symtab")
        assert text is not None
        assert isinstance(table, SymbolTableSection)
        data, start = text.data(), text["sh_addr"]
        places = {s.name: s["st_value"] for s in table.iter_symbols() if s.name.startswith("form_")}
    code = [(at, data[at - start : at - start + 16]) for at in (places[f"form_{i}"] for i in range(len(forms)))]
    return program, code


def run(program: Path, cases: list[tuple[int, Native]], folder: Path, shape: Shape = PLAIN) -> list[Native]:
    """The state after each (form number, state before)."""
    given, got = folder / "cases.bin", folder / "results.bin"
    packed = shape.packed
    with given.open("wb") as file:
        for number, state in cases:
            file.write(
                struct.pack("<Q", number) + packed.pack(*state.gpr, *state.lanes, *state.masks, state.flags, state.memory)
            )
    subprocess.run([str(program), str(given), str(got)], check=True, timeout=120)
    results = []
    above = 16 + shape.vectors * shape.lanes
    for words in packed.iter_unpack(got.read_bytes()):
        results.append(Native(words[:16], words[16:above], words[-2], words[-1], words[above:-2]))
    assert len(results) == len(cases)
    return results
