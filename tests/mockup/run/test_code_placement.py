"""The identity's hot loop is put where the original has it; objdump says where that is."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from layout_advise.build.mockups import Mockup, better_kept, place_identity
from layout_advise.layoutalgebra.sets.nests import FoldedStream
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.cfg import build_cfg
from layout_advise.mockup.run.code_placement import (
    NATURAL,
    InnerLoop,
    grown,
    hot_loop,
    likeness,
    needs_placing,
    same_loops,
    shift_to,
)
from layout_advise.mockup.timing.variants import IDENTITY, IDENTITY_UNROLLED
from layout_advise.propose.compiler import Compiled
from layout_advise.propose.recipes import Code, Recipe, recipes
from layout_advise.propose.source import Source
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.trace.trace import Reference, Registers, Trace

FLAGS = ("-O2", "-fvisibility=default")
SOURCE = """
__attribute__((noinline, visibility("default"))) void axpy(double *y, const double *x, long n, double a)
{
    for (long i = 0; i < n; i++)
        y[i] += a * x[i];
}
__attribute__((noinline, visibility("default"))) long rare(const long *p, long n)
{
    long s = 0;
    for (long i = 0; i < n; i++)
        s ^= p[i] >> 3;
    return s;
}
"""


def compiled(folder: Path, name: str, *flags: str) -> Path:
    (folder / "axpy.c").write_text(SOURCE)
    path = folder / name
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", *flags, "-o", str(path), str(folder / "axpy.c")], check=True)
    return path


def loop_start(path: Path, symbol: str) -> int:
    """Target of the function's backward jump."""
    text = subprocess.run(
        ["objdump", "-d", f"--disassemble={symbol}", str(path)], capture_output=True, text=True, check=True
    ).stdout
    jumps = re.findall(r"^\s*([0-9a-f]+):.*\bj\w+\s+([0-9a-f]+)", text, re.MULTILINE)
    return next(int(to, 16) for at, to in jumps if int(to, 16) < int(at, 16))


def loop_of(path: Path, symbol: str = "axpy") -> InnerLoop:
    """As the tool finds it: a trace in which one instruction of the loop ran 100 times, one outside of it 5000 times."""
    code = ElfBinary.open_module(path).region(symbol, 0)
    start = loop_start(path, symbol)
    references = (Reference(0, start, 0, "read", 8), Reference(1, code.entry, 0, "read", 8))
    streams = (FoldedStream((), 100), FoldedStream((), 5000))
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    found = hot_loop(code, Trace(symbol, 1, "clone", references, streams, 5100, False, registers, (), ()))
    assert found is not None
    return found


@pytest.mark.parametrize("place", [0, 5, 16, 37, 63])
def test_the_loop_gets_the_original_place(place: int, tmp_path: Path) -> None:
    original = compiled(tmp_path, "original.so", *grown(place))
    loop = loop_of(original)
    assert loop.start == loop_start(original, "axpy")
    identity = Mockup(Recipe(IDENTITY), SOURCE, compiled(tmp_path, "identity.so"), None, None, flags=FLAGS)
    made = place_identity(identity, loop, "axpy", Compiled("gcc", FLAGS))
    if loop.start % 32 == 0:
        assert made is None
        return
    assert made is not None
    assert made.path is not None
    assert loop_start(made.path, "axpy") % 64 == loop.start % 64


def test_an_earlier_program_does_not_disturb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text in the same process, in another folder: what the first attempt became is not taken for it."""
    monkeypatch.setattr("layout_advise.mockup.run.build._built", {})
    for place in (5, 16, 37):
        folder = tmp_path / str(place)
        folder.mkdir()
        test_the_loop_gets_the_original_place(place, folder)


def test_aligned_loops_stay(tmp_path: Path) -> None:
    loop = loop_of(compiled(tmp_path, "aligned.so", "-falign-functions=64", "-falign-loops=32"))
    assert not needs_placing(loop)


def test_another_loop_is_not_taken_for_it(tmp_path: Path) -> None:
    natural = compiled(tmp_path, "natural.so", *NATURAL)
    loop = loop_of(natural)
    assert shift_to(loop, natural, "axpy") == 0
    assert shift_to(loop, natural, "rare") is None
    assert shift_to(loop, natural, "absent") is None


def test_nothing_is_left_where_it_cannot_be_placed(tmp_path: Path) -> None:
    loop = InnerLoop(0x1007, 30, Counter({"vpdpbusd": 7}))
    identity = Mockup(Recipe(IDENTITY), SOURCE, compiled(tmp_path, "identity.so"), None, None, flags=FLAGS)
    assert place_identity(identity, loop, "axpy", Compiled("gcc", ("-O2",))) is None
    assert not list(tmp_path.glob("identity-placed*"))


def test_a_hotspot_without_traced_loop_has_none(tmp_path: Path) -> None:
    code = ElfBinary.open_module(compiled(tmp_path, "plain.so")).region("axpy", 0)
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    assert hot_loop(code, Trace("axpy", 1, "clone", (), (), 0, False, registers, (), ())) is None


TWO_ENTRIES = """
.globl f
.type f, @function
f:
    test %rsi, %rsi
    je 2f
1:  add $8, %rdi
2:  inc %rsi                # this loop is entered here and above
    cmp $9, %rsi
    jne 1b
    mov $50, %ecx
3:  add (%rdi,%rcx,8), %rax
    dec %rcx
    jne 3b
    ret
.size f, .-f
"""


def test_a_loop_with_two_entries_elsewhere_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "f.s").write_text(TWO_ENTRIES)
    subprocess.run(["gcc", "-shared", "-o", tmp_path / "f.so", tmp_path / "f.s"], check=True)
    code = ElfBinary.open_module(tmp_path / "f.so").region("f", 0)
    (at,) = [i.address for b in build_cfg(code, strict=False).blocks.values() for i in b.insns if "rdi + rcx" in i.text]
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    trace = Trace("f", 1, "clone", (Reference(0, at, 0, "read", 8),), (FoldedStream((), 50),), 50, False, registers, (), ())
    found = hot_loop(code, trace)
    assert found is not None
    assert found.start == at
    assert hot_loop(code, trace, longest=4) is None


def test_likeness_is_that_of_the_most_similar_loop(tmp_path: Path) -> None:
    path = compiled(tmp_path, "plain.so")
    loop = loop_of(path)
    assert likeness(loop, path, "axpy") == 1.0
    assert likeness(loop, path, "rare") < 0.8
    assert likeness(loop, path, "absent") == 0.0


QUOTIENTS = """
void f(double *y, const double *x, long n, double a)
{
    for (long i = 0; i < n; i++)
        y[i] = a / x[i];
}
"""


@pytest.mark.parametrize("vectorised", [False, True])
def test_what_was_not_put_into_vectors_is_built_so(tmp_path: Path, vectorised: bool) -> None:
    """At the flags of the mock-up its loop is vectorised; whether the original's was decides."""
    (tmp_path / "f.c").write_text(QUOTIENTS)
    flags = ["-O3", "-shared", "-fPIC", *([] if vectorised else ["-fno-tree-vectorize"])]
    subprocess.run(["gcc", *flags, "-o", tmp_path / "f.so", tmp_path / "f.c"], check=True)
    code = ElfBinary.open_module(tmp_path / "f.so").region("f", 0)
    insns = [i for block in build_cfg(code).blocks.values() for i in block.insns]
    at = next(i.address for i in insns if i.mnemonic == ("divpd" if vectorised else "divsd"))
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    references, streams = (Reference(0, at, 0, "read", 8),), (FoldedStream((), 9),)
    loop = hot_loop(code, Trace("f", 1, "clone", references, streams, 9, False, registers, (), ()))
    assert loop is not None
    lifted = lift(code, result="none")
    both = Code(lifted, lifted)
    untraced = Trace("f", 1, "clone", (), (), 0, False, registers, (), ())
    source = Source(both, lifted, untraced, (), Compiled("gcc", ("-O3",)), long_loop=loop)
    kept = better_kept(source, source.compiler, tmp_path)
    made = {r.variant: r for r in recipes((), both, kept)}
    assert kept is not vectorised
    assert (IDENTITY_UNROLLED in made) is kept
    if kept:
        assert made[IDENTITY_UNROLLED].kept
        assert not made[IDENTITY_UNROLLED].checked


def test_the_same_instructions_in_another_place_are_the_same_loops(tmp_path: Path) -> None:
    """``scan``: with the loops left alone gcc had the operands of one comparison the other way round, and the layouts were
    said to be measured in another form of the loop."""
    plain, moved = compiled(tmp_path, "plain.so"), compiled(tmp_path, "moved.so", *grown(24))
    wide = compiled(tmp_path, "wide.so", "-O3", "-mavx2")
    assert same_loops(plain, moved, "axpy")
    assert not same_loops(plain, wide, "axpy")
    assert not same_loops(plain, moved, "absent")
