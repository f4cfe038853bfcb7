"""Control-flow graphs of compiled functions: blocks, loops, jump tables, calls, refusals."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.effects import PrefetchEffect
from layout_advise.mockup.machine.cfg import Branch, Cfg, IndirectJump, Ret, TailCall, build_cfg
from layout_advise.mockup.machine.disassembly import Immediate, decode
from layout_advise.mockup.machine.semantics import semantics
from layout_advise.tracer.code.region import CodeRange, Region

SOURCE = """
#include <math.h>
int pick(int x, const int *p) {
    switch (x) {
    case 0: return p[1]; case 1: return p[7] * 3; case 2: return p[3] - 8; case 3: return p[8] ^ 5; case 4: return 99;
    case 5: return p[4] / 3; case 7: return p[3] % 7; }
    return -1;
}
void walk(const unsigned char *s, long n, long *c) {
    for (long i = 0; i < n; i++) switch (s[i]) {
    case 0: c[0]++; break; case 1: c[1] += c[0]; break; case 2: c[2] ^= i; break; case 3: c[3] *= 3; break;
    case 4: c[5] -= c[2]; break; case 5: c[7] = i; break; case 6: c[1] |= c[7]; break; default: c[8]++; }
}
double total(const double *a, int n) { double s = 0; for (int i = 0; i < n; i++) s += exp(a[i]); return s; }
void nest(double *a, const double *b, long n, long m) {
    for (long i = 0; i < n; i++) for (long j = 0; j < m; j++) if (b[j] > 0) a[i * m + j] += b[j];
}
void apply(void (*f)(int), int n) { for (int i = 0; i < n; i++) f(i); }
double tail(double x) { return sin(x + 1); }
int every(unsigned x, const int *p) { /* no other values: gcc and clang leave the bounds check out */
    switch (x) {
    case 0: return p[1]; case 1: return p[7] * 3; case 2: return p[3] - 8; case 3: return p[8] ^ 5; case 4: return 99;
    case 5: return p[4] / 3; case 6: return p[2] + p[5]; case 7: return p[3] % 7; default: __builtin_unreachable(); }
}
long interpret(const unsigned char *code, long x)
{
    static const void *const table[4] = {&&halt, &&inc, &&twice, &&neg};
    goto *table[*code];
inc: x++; goto *table[*++code];
twice: x *= 2; goto *table[*++code];
neg: x = -x; goto *table[*++code];
halt: return x;
}
long masked(const unsigned *code, long *stack)
{
    static const void *const table[5] = {&&halt, &&push, &&add, &&swap, &&drop};
    long now = 0;
    unsigned which;
#define NEXT do { which = *code++; goto *table[which & 7]; } while (0)
    NEXT;
push: stack[now++] = which >> 3; NEXT;
add: stack[now - 2] += stack[now - 1]; now--; NEXT;
swap: { long top = stack[now - 1]; stack[now - 1] = stack[now - 2]; stack[now - 2] = top; } NEXT;
drop: now -= (long)(which >> 3); NEXT;
halt: return stack[now - 1];
}
struct methods { long fill; long (*all[4])(long); };
long through(const struct methods *m, int which, long x) { return m->all[which](x + 1); }
"""


@pytest.fixture(scope="module", params=["gcc -O2", "gcc -O3 -march=haswell", "clang -O2", "clang -O3 -march=haswell"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cfg")
    (folder / "code.c").write_text(SOURCE)
    command = [*request.param.split(), "-shared", "-fPIC", "-o", str(folder / "code.so"), str(folder / "code.c"), "-lm"]
    subprocess.run(command, check=True)
    return folder / "code.so"


def region(path: Path, name: str, base: int = 0x7F0000000000) -> Region:
    with path.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        (symbol,) = table.get_symbol_by_name(name) or []
        section = elf.get_section(symbol["st_shndx"])
        at = symbol["st_value"] - section["sh_addr"]
        code = section.data()[at : at + symbol["st_size"]]
    start = base + symbol["st_value"]
    return Region(name, "function", start, (CodeRange(start, code),), str(path), base)


def ends(cfg: Cfg, kind: type) -> list[object]:
    return [block.terminator for block in cfg.blocks.values() if isinstance(block.terminator, kind)]


def test_switch_reaches_every_case(library: Path) -> None:
    cfg = build_cfg(region(library, "pick"))
    constants = {insn.text for block in cfg.blocks.values() for insn in block.insns}
    assert any("0x63" in text for text in constants)  # case 4: return 99
    jumps = [t for t in ends(cfg, IndirectJump) if isinstance(t, IndirectJump)]
    for jump in jumps:
        assert set(jump.targets) <= set(cfg.blocks)
        assert len(jump.targets) >= 6
        assert (jump.value is None) != (jump.load is None)
    assert jumps or len(ends(cfg, Branch)) >= 6  # without a table the cases are compared one by one
    assert ends(cfg, Ret)
    assert not cfg.loops


def test_a_switch_in_a_loop_reaches_every_case(library: Path) -> None:
    """clang loads the address of the table before the loop."""
    cfg = build_cfg(region(library, "walk"))
    (jump,) = (t for t in ends(cfg, IndirectJump) if isinstance(t, IndirectJump))
    assert len(jump.targets) == 8 or (len(jump.targets) == 7 and len(ends(cfg, Branch)) >= 2)
    assert len(cfg.loops) == 1
    assert all(target in cfg.loops[0].blocks for target in jump.targets)


def test_a_switch_without_other_values_has_its_whole_table(library: Path) -> None:
    cfg = build_cfg(region(library, "every"))
    jumps = [t for t in ends(cfg, IndirectJump) if isinstance(t, IndirectJump)]
    assert jumps or len(ends(cfg, Branch)) >= 6
    for jump in jumps:
        assert len(jump.targets) >= 7
    assert any("0x63" in insn.text for block in cfg.blocks.values() for insn in block.insns)


def test_computed_goto_reaches_its_labels(library: Path) -> None:
    """Its table is written by the loader: addresses in a shared library."""
    cfg = build_cfg(region(library, "interpret"), strict=False)
    jumps = [t for t in ends(cfg, IndirectJump) if isinstance(t, IndirectJump)]
    assert jumps
    for jump in jumps:
        assert len(jump.targets) >= 4
    texts = [insn.mnemonic for block in cfg.blocks.values() for insn in block.insns]
    assert "neg" in texts
    assert ends(cfg, Ret)


def test_an_interpreter_is_a_loop_with_one_head(library: Path) -> None:
    """lua: its index is masked, ``& 127``, its table has 83 entries, and copies of the jump were as many ways into the loop:
    it had none that was hot."""
    cfg = build_cfg(region(library, "masked"), strict=False)
    jumps = [t for t in ends(cfg, IndirectJump) if isinstance(t, IndirectJump)]
    assert all(len(jump.targets) == 5 for jump in jumps)
    if len(jumps) == 1:  # clang's copies go by different registers
        assert cfg.graph.second_entry() is None
        assert sum(target in cfg.loops[0].blocks for target in jumps[0].targets) == 4


def test_copies_of_a_computed_goto_are_one(tmp_path: Path) -> None:
    (tmp_path / "code.c").write_text(SOURCE)
    flags = ["-O2", "-fno-gcse", "-fno-crossjumping", "-shared", "-fPIC", "-lm"]
    subprocess.run(["gcc", *flags, "-o", tmp_path / "code.so", tmp_path / "code.c"], check=True)
    function = region(tmp_path / "code.so", "masked")
    code = decode(function).values()
    copies = [insn for insn in code if insn.mnemonic == "jmp" and not isinstance(insn.operands[0], Immediate)]
    cfg = build_cfg(function)
    assert len(copies) > len(ends(cfg, IndirectJump)) == 1
    assert len(cfg.loops[0].latches) >= 1


def test_a_jump_to_the_function_that_a_table_in_memory_names(library: Path) -> None:
    with pytest.raises(NotLiftedError):
        build_cfg(region(library, "through"))
    cfg = build_cfg(region(library, "through"), indirect_calls=True)
    assert [t.name for t in ends(cfg, TailCall) if isinstance(t, TailCall)] == [None]


def test_calls_have_their_names(library: Path) -> None:
    cfg = build_cfg(region(library, "total"))
    assert [called.name for called in cfg.calls.values()] == ["exp"]
    assert len(cfg.loops) == 1
    assert [t.name for t in ends(build_cfg(region(library, "tail")), TailCall) if isinstance(t, TailCall)] == ["sin"]


def test_loops_nest_and_dominate(library: Path) -> None:
    cfg = build_cfg(region(library, "nest"))
    inner = [loop for loop in cfg.loops if loop.parent is not None]
    assert inner
    for loop in cfg.loops:
        assert all(cfg.graph.dominates(loop.head, block) for block in loop.blocks)
        assert all(inside in loop.blocks and outside not in loop.blocks for inside, outside in loop.exits)
        assert all(loop.head in cfg.blocks[latch].successors for latch in loop.latches)
    for loop in inner:
        (parent,) = [outer for outer in cfg.loops if outer.head == loop.parent]
        assert loop.blocks < parent.blocks


def test_blocks_cover_what_the_sweep_decodes_but_padding(library: Path) -> None:
    where = region(library, "nest")
    cfg = build_cfg(where)
    reached = [insn.address for block in cfg.blocks.values() for insn in block.insns]
    assert len(reached) == len(set(reached))
    left = [insn for at, insn in decode(where).items() if at not in set(reached)]
    assert {insn.mnemonic for insn in left} <= {"nop", "xchg", "int3"}
    for block in cfg.blocks.values():
        for insn in block.insns:
            assert semantics(insn).effects is not None


def test_indirect_calls_are_refused(library: Path) -> None:
    with pytest.raises(NotLiftedError, match="indirect call"):
        build_cfg(region(library, "apply"))


def assembled(text: str, folder: Path) -> Region:
    (folder / "x.s").write_text(f".intel_syntax noprefix\n{text}\n")
    subprocess.run(["gcc", "-c", "x.s", "-o", "x.o"], cwd=folder, check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", "x.o", "x.bin"], cwd=folder, check=True)
    return Region("x", "function", 0x5000, (CodeRange(0x5000, (folder / "x.bin").read_bytes()),), "", 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("test edi, edi\nje 2f\n1: dec eax\n2: dec ecx\njne 1b\nret", "irreducible"),
        ("jmp rax", "indirect jump"),
        ("1: loop 1b\nret", "loop-count"),
    ],
)
def test_refused_control_flow(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(NotLiftedError, match=reason):
        build_cfg(assembled(text, tmp_path))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("vrcp14pd zmm0, zmm1", "AVX-512"), ("vcompresspd xmm16{k1}, xmm1", "AVX-512"), ("fistp qword ptr [rax]", "x87"),
        ("fsin", "x87"), ("fnstcw [rdi]", "x87"), ("lock bts dword ptr [rax], ecx", "lock"), ("rep movsq", "string"),
        ("syscall", "system call"), ("cpuid", "cpuid"), ("rdtsc", "time stamp"),
        ("mov rax, gs:[0x28]", "thread-local"), ("cmpsd", "string"),
        ("scasq", "rule"), ("std", "rule"),
        ("rcpps xmm1, xmm2", "approximation"), ("emms", "MMX"),
        ("paddw mm0, mm1", "MMX"), ("call rax", "indirect call"), 
        ("pdep eax, ebx, ecx", "rule"),
        ("mov eax, [edi]", "32-bit address"), ("bt [rdi], eax", "memory"), ("ldmxcsr [rdi]", "rounding mode"),
    ],
)  # fmt: skip
def test_instructions_refused_by_name(text: str, reason: str, tmp_path: Path) -> None:
    (insn,) = decode(assembled(text, tmp_path)).values()
    with pytest.raises(NotLiftedError, match=reason) as caught:
        semantics(insn)
    assert caught.value.address == 0x5000


def test_prefetch_and_rep_ret_are_lifted(tmp_path: Path) -> None:
    cfg = build_cfg(assembled("prefetcht0 [rdi+512]\nrep ret", tmp_path))
    ahead, ends = (semantics(i).effects for i in cfg.blocks[0x5000].insns)
    assert [effect.hint for effect in ahead if isinstance(effect, PrefetchEffect)] == ["t0"]
    assert (len(ahead), ends) == (1, ())
