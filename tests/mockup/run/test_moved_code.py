"""Code further into a cache line from one assembly text: the same as when the compiler is asked for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from layout_advise.mockup.run import build as building
from layout_advise.mockup.run.build import build
from layout_advise.mockup.run.moved_code import moved_code
from layout_advise.tracer.process.compiler_run import run_compiler

SOURCE = """
#include <stdlib.h>
static __attribute__((noinline)) double part(const double *x, long n) {
    double sum = 0;
    for (long i = 0; i < n; i++) sum += x[i] > 3 ? x[i] * x[i] : -x[i];
    return sum;
}
long first(long *p) { do { p++; } while (*p); return *p; }
double work(double *x, long n) {
    if (__builtin_expect(n < 0, 0)) abort();
    for (long i = 0; i < n; i++) x[i] = x[i] * 2 + 1;
    return part(x, n) + (double)first((long *)x);
}
"""
COMPILERS = [one for one in ("gcc", "clang") if shutil.which(one)]


ENDBR = b"\xf3\x0f\x1e\xfa"


def functions(path: Path, by: int) -> dict[str, tuple[int, bytes]]:
    """Of each function of the source, and each part of one, its place in a cache line and its bytes behind ``by`` of
    ``nop``, which may be long ones or short ones."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        text, symbols = elf.get_section_by_name(".text"), elf.get_section_by_name(".symtab")
        assert text is not None
        assert isinstance(symbols, SymbolTableSection)
        code, found = text.data(), {}
        for one in symbols.iter_symbols():
            if one.name.split(".")[0] in ("part", "first", "work"):
                begin = one["st_value"] - text["sh_addr"]
                body = code[begin : begin + one["st_size"]].removeprefix(ENDBR)
                found[one.name] = one["st_value"] % 64, body if one.name.endswith(".cold") else body[by:]
    assert len(found) >= 3
    return found


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("flags", [("-O2",), ("-O3", "-march=haswell", "-fcf-protection=full"), ("-O1", "-g")], ids=" ".join)
@pytest.mark.parametrize("by", [16, 48])
def test_code_is_moved_as_the_compiler_moves_it(compiler: str, flags: tuple[str, ...], by: int, tmp_path: Path) -> None:
    if compiler == "gcc":  # which allocates callers' registers as if it did not know the function that is to be patched
        flags = (*flags, "-fno-ipa-ra")
    moved = build(SOURCE, tmp_path / "moved.so", compiler, flags, moved_by=by)
    asked = build(SOURCE, tmp_path / "asked.so", compiler, (*flags, f"-fpatchable-function-entry={by}"))
    own = build(SOURCE, tmp_path / "own.so", compiler, flags)
    assert moved.path is not None, moved.log
    assert asked.path is not None, asked.log
    assert own.path is not None, own.log
    assert functions(moved.path, by) == functions(asked.path, by)
    assert functions(moved.path, 0) != functions(own.path, 0)
    assert f".nops {by} at the entry" in moved.log
    assert sorted(path.suffix for path in tmp_path.iterdir()) == sorted(3 * [".c", ".log", ".so"])


def test_one_text_is_compiled_once_for_all_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, text, run = [], SOURCE + "/* compiled once */", run_compiler

    def counted(command: list[str], folder: Path, seconds: float) -> object:
        compiled.append("-S" in command)
        return run(command, folder, seconds)

    monkeypatch.setattr(building, "run_compiler", counted)
    for by in (0, 16, 32, 48):
        assert build(text, tmp_path / f"at{by}.so", moved_by=by).path is not None
    assert compiled == [True, False, False, False, False]


def test_only_the_newest_texts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "MOST_TEXTS", 2)
    for number in range(3):
        assert build(f"int f(void) {{ return {number}; }}", tmp_path / f"{number}.so").path is not None
        assert len(building._assembly) <= 2


def test_only_functions_are_moved() -> None:
    loop = "\t.type\tf, @function\nf:\n.LFB0:\n\t.cfi_startproc\n.L3:\n\taddq\t$8, %rdi\n\tjne\t.L3\n\tret\n"
    cold = "\t.type\tf.cold, @function\nf.cold:\n.LFSB0:\n\tcall\tabort\n"
    data = "\t.type\tf.data, @object\nf.data:\n\t.zero\t8\n"
    expected = loop.replace("startproc\n", "startproc\n\t.nops\t2\n")
    assert moved_code(loop + cold + data, 2) == expected + cold + data
    assert moved_code(loop, 0) == loop
