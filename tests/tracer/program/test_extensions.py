"""What a file was compiled for, where nothing records it: told by its instructions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from layout_advise.mockup.run.build import build, vector_bytes
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.extensions import NARROW, extension_flags
from layout_advise.tracer.program.producer import understood

V3 = {"-mavx", "-mavx2", "-mfma", "-mbmi", "-mbmi2"}
V4 = V3 | {f"-mavx512{part}" for part in ("f", "cd", "dq", "bw", "vl")}
SCALAR = "__attribute__((noinline)) float one(float a, float b) { return a + b; }\n"
VECTORS = (
    "void many(double *restrict a, const double *restrict b) { for (int k = 0; k < 4096; k++) a[k] = a[k] * b[k] + 1.5; }\n"
)
MAIN = "double a[999], b[999]; int main(int n, char **v) { many(a, b); return (int)(one(n, 2) + a[n] + !v); }\n"


def test_instructions_and_what_came_with_them() -> None:
    assert extension_flags([bytes.fromhex("0f58c1c3")]) == ()
    assert extension_flags([bytes.fromhex("c5f858c2")]) == ("-mavx",)  # vaddps
    assert set(extension_flags([bytes.fromhex("c4e271b8c2")])) == V3  # vfmadd231ps: what has it has AVX2 too, seen or not
    assert set(extension_flags([bytes.fromhex("62f17c4858c2")])) == V4  # vaddps zmm
    assert set(extension_flags([bytes.fromhex("62f17c2858c2")])) == {*V4, NARROW}  # with masks, ymm


def compiled(folder: Path, source: str, compiler: str, *flags: str) -> tuple[str, ...]:
    """The flags that the function ``one`` of a program without recorded flags would be compiled with."""
    file, program = folder / "program.c", folder / "program"
    file.write_text(source)
    subprocess.run([compiler, "-g", "-gno-record-gcc-switches", *flags, "-o", program, file], check=True)
    binary = ElfBinary.open(program)
    found = binary.compiler(binary.find("one"))
    assert not found.recorded
    return found.flags[1:]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_hotspot_has_what_its_compile_unit_has(tmp_path: Path, compiler: str) -> None:
    source = SCALAR + VECTORS + MAIN
    assert compiled(tmp_path, source, compiler, "-O3") == ()
    assert set(compiled(tmp_path, source, compiler, "-O3", "-march=haswell")) == V3
    assert set(compiled(tmp_path, source, compiler, "-O3", "-march=skylake-avx512")) >= V3
    wide = compiled(tmp_path, source, compiler, "-O3", "-march=skylake-avx512", "-mprefer-vector-width=512")
    assert set(wide) == V4


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_not_what_another_unit_has(tmp_path: Path, compiler: str) -> None:
    other = tmp_path / "other.o"
    subprocess.run(
        [compiler, "-g", "-O3", "-march=haswell", "-c", "-o", other, "-x", "c", "-"], input=VECTORS.encode(), check=True
    )
    declared = "void many(double *restrict, const double *restrict);\n"
    assert compiled(tmp_path, SCALAR + declared + MAIN, compiler, "-O2", str(other)) == ()


@pytest.mark.parametrize("pie", ["-pie", "-no-pie"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_what_the_linker_left_out_is_not_looked_at(tmp_path: Path, compiler: str, pie: str) -> None:
    """Its ranges begin at 0, where there is nothing, or the file's head."""
    unused = "double unused(double *a) { double s = 0; for (int k = 0; k < 99; k++) s += a[k]; return s; }\n"
    flags = (
        "-O3",
        "-march=haswell",
        "-ffunction-sections",
        "-Wl,--gc-sections",
        pie,
        "-fPIE" if pie == "-pie" else "-fno-pie",
    )
    assert set(compiled(tmp_path, unused + SCALAR + VECTORS + MAIN, compiler, *flags)) == V3


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_functions_for_several_processors_tell_nothing_of_each_other(tmp_path: Path, compiler: str) -> None:
    source = SCALAR + '__attribute__((target("avx2,fma")))\n' + VECTORS + MAIN
    assert compiled(tmp_path, source, compiler, "-O3") == ()
    swapped = '__attribute__((target("avx")))\n' + SCALAR + VECTORS + MAIN
    assert compiled(tmp_path, swapped, compiler, "-O3") == ("-mavx",)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_vectors_are_not_wider_than_the_programs(tmp_path: Path, compiler: str) -> None:
    """With AVX-512 alone compilers take 64 bytes, where ``-march`` of most processors makes them take 32."""
    narrow = understood(compiler, ("-O3", *extension_flags([bytes.fromhex("62f17c2858c2")])))
    assert NARROW in narrow
    assert vector_bytes(compiler, narrow) == 32
    text = {}
    for name, flags in (("narrow", narrow), ("wide", tuple(f for f in narrow if f != NARROW))):
        made = build(VECTORS, tmp_path / f"{name}.so", compiler, flags).path
        assert made is not None
        text[name] = subprocess.run(["objdump", "-d", made], capture_output=True, text=True, check=True).stdout
    assert "%ymm" in text["narrow"]
    assert "%zmm" not in text["narrow"]
    assert "%zmm" in text["wide"]


def test_clang_records_its_flags_where_it_is_told_to(tmp_path: Path) -> None:
    """As the reports advise."""
    file, program = tmp_path / "program.c", tmp_path / "program"
    file.write_text(SCALAR + VECTORS + MAIN)
    subprocess.run(["clang", "-g", "-grecord-command-line", "-O3", "-march=haswell", "-o", program, file], check=True)
    found = ElfBinary.open(program)
    compiler = found.compiler(found.find("one"))
    assert compiler.recorded
    assert {"-O3", "-march=haswell"} <= set(compiler.flags)
