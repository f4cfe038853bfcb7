"""``rep`` operations that are written as loops over their elements, against the instruction."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from layout_advise.mockup.evidence.kept_calls import strings_of
from layout_advise.mockup.ir.effects import Gpr, Lane
from layout_advise.mockup.ir.lifted import Lifted, LiftedLoop, everything
from layout_advise.mockup.lift.lift import lift
from layout_advise.tracer.program.binary import ElfBinary
from tests.support.lifting.kernel_library import ARGUMENTS, NativeMemory
from tests.support.lifting.run_lifted import run_lifted

RSP, SIZE = 4, 512
SIZES = {"movsb": 1, "movsw": 2, "movsd": 4, "movsq": 8, "stosb": 1, "stosq": 8}
SOURCE = r"""
#define MOVE(name, code, ...) long name(char *to, const char *from, long n) \
    { long odd; __asm__ volatile("cmpq $3, %2\n " code "\n setg %b3\n movzbl %b3, %k3" \
      : "+D"(to), "+S"(from), "+c"(n), "=&q"(odd) : __VA_ARGS__ : "memory", "cc"); \
      return (long)to * 3 + (long)from * 5 + n + odd; }
MOVE(movsb, "rep movsb", "a"(0L))
MOVE(movsw, "rep movsw", "a"(0L))
MOVE(movsd, "rep movsl", "a"(0L))
MOVE(movsq, "rep movsq", "a"(0L))
MOVE(stosb, "rep stosb", "a"(0x1122334455667788L))
MOVE(stosq, "rep stosq", "a"(0x1122334455667788L))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("strings") / "lib.so"
    command = ["gcc", "-O2", "-g", "-shared", "-fPIC", "-x", "c", "-", "-o", str(path)]
    subprocess.run(command, input=SOURCE.encode(), check=True)
    return path


def code_of(built: Path, name: str) -> tuple[Lifted, Lifted]:
    binary = ElfBinary.open_module(built)
    region = binary.region(binary.find(name), 0, callees=True)
    kept = lift(region, opaque=True, result="int")
    return kept, lift(region, result="int", loops=strings_of(kept))


@pytest.mark.parametrize("count", [0, 1, 3, 17])
@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_a_loop_over_elements_does_what_the_instruction_does(built: Path, name: str, size: int, count: int) -> None:
    """The pointers and the count that it leaves, too, and the flags before it, which it keeps."""
    kept, loops = code_of(built, name)
    assert strings_of(kept)
    assert not strings_of(loops)
    assert any(isinstance(item, LiftedLoop) for item in everything(loops.body))
    native = getattr(ctypes.CDLL(str(built)), name)
    native.restype, native.argtypes = ctypes.c_long, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
    start = bytes(k * 7 % 251 for k in range(SIZE))
    memory, stack = ctypes.create_string_buffer(start, SIZE), ctypes.create_string_buffer(4096)
    to = ctypes.addressof(memory)
    for source in (to + 20 * size, to + 2 * size):  # apart; and overlapping upwards
        expected, after = native(to, source, count), bytes(memory)
        ctypes.memmove(memory, start, SIZE)
        at: dict[Gpr | Lane, int] = {Gpr(r): v for r, v in zip(ARGUMENTS, (to, source, count), strict=False)}
        at[Gpr(RSP)] = (ctypes.addressof(stack) + 2048 & ~15) - 8
        outs = run_lifted(loops, at, NativeMemory(), budget=10_000)
        assert outs[Gpr(0)] == expected % 2**64
        assert bytes(memory) == after
        ctypes.memmove(memory, start, SIZE)
