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
_STATE = struct.Struct(f"<16Q64QQ{MEMORY_BYTES}s")
_RSP = 4

_HARNESS = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
struct state { uint64_t gpr[16]; uint64_t ymm[16][4]; uint64_t flags; unsigned char memory[512]; };
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
    """A whole machine state: 16 general registers, 16 vector registers of four lanes, rflags, memory at ``MEMORY``."""

    gpr: tuple[int, ...]
    lanes: tuple[int, ...]
    flags: int
    memory: bytes

    def flag(self, name: str) -> bool:
        """One of the flags b (carry), e (zero), s, o, p."""
        return bool(self.flags >> FLAG_BITS[name] & 1)


def _assembly(forms: list[str]) -> str:
    order = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"]
    saved = ("rbx", "rbp", "r12", "r13", "r14", "r15")
    lines = [".intel_syntax noprefix", ".text", ".globl la_run", "la_run:", *(f"push {r}" for r in saved)]
    lines += ["mov [rip+la_rsp], rsp", "push [rip+la_now+640]", "popfq"]
    lines += [f"vmovups ymm{i}, [rip+la_now+{128 + 32 * i}]" for i in range(16)]
    lines += [f"mov {r}, [rip+la_now+{8 * i}]" for i, r in enumerate(order)]
    lines += ["jmp [rip+la_stub]", "la_done:"]
    lines += [f"mov [rip+la_now+{8 * i}], {r}" for i, r in enumerate(order)]
    lines += [f"vmovups [rip+la_now+{128 + 32 * i}], ymm{i}" for i in range(16)]
    lines += ["mov rsp, [rip+la_rsp]", "pushfq", "pop [rip+la_now+640]", "cld"]
    lines += [*(f"pop {r}" for r in reversed(saved)), "vzeroupper", "ret"]
    for i, form in enumerate(forms):
        lines += [f"form_{i}:", form, "jmp la_done"]
    lines += [".data", "la_rsp: .quad 0", ".globl la_stubs", "la_stubs:", *(f".quad form_{i}" for i in range(len(forms)))]
    return "\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""])


def build(forms: list[str], folder: Path) -> tuple[Path, list[tuple[int, bytes]]]:
    """Assembles one stub per form; gives the program, and (address, bytes from there on) of each instruction."""
    source, stubs, program = folder / "harness.c", folder / "stubs.s", folder / "harness"
    source.write_text(_HARNESS)
    stubs.write_text(_assembly(forms))
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


def run(program: Path, cases: list[tuple[int, Native]], folder: Path) -> list[Native]:
    """The state after each (form number, state before)."""
    given, got = folder / "cases.bin", folder / "results.bin"
    with given.open("wb") as file:
        for number, state in cases:
            file.write(struct.pack("<Q", number) + _STATE.pack(*state.gpr, *state.lanes, state.flags, state.memory))
    subprocess.run([str(program), str(given), str(got)], check=True, timeout=60)
    results = []
    for words in _STATE.iter_unpack(got.read_bytes()):
        results.append(Native(words[:16], words[16:80], words[80], words[81]))
    assert len(results) == len(cases)
    return results
