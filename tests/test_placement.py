"""The identity's hot loop is put where the original has it; objdump says where that is."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from layout_advise.layoutalgebra.nests import FoldedStream
from layout_advise.mockup.placement import NATURAL, InnerLoop, grown, hot_loop, needs_placing, shift_to
from layout_advise.stages.mockups import Compiled, Made, Recipe, place_identity
from layout_advise.tracer.binary import Binary
from layout_advise.tracer.trace import Reference, Registers, Trace

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
    code = Binary.open_module(path).region(symbol, 0)
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
    identity = Made(Recipe("identity", None, "plain"), SOURCE, compiled(tmp_path, "identity.so"), None, None)
    made = place_identity(identity, loop, "axpy", Compiled("gcc", ("-O2", "-fvisibility=default")))
    if loop.start % 32 == 0:
        assert made is None
        return
    assert made is not None
    assert made.mockup is not None
    assert loop_start(made.mockup, "axpy") % 64 == loop.start % 64


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
    identity = Made(Recipe("identity", None, "plain"), SOURCE, compiled(tmp_path, "identity.so"), None, None)
    assert place_identity(identity, loop, "axpy", Compiled("gcc", ("-O2",))) is None
    assert not list(tmp_path.glob("identity-placed*"))


def test_a_hotspot_without_traced_loop_has_none(tmp_path: Path) -> None:
    code = Binary.open_module(compiled(tmp_path, "plain.so")).region("axpy", 0)
    registers = Registers((0,) * 16, 0, 0, 0, 0)
    assert hot_loop(code, Trace("axpy", 1, "clone", (), (), 0, False, registers, (), ())) is None
