"""Real files to damage: the recorded run that comes with the tool, and small programs with debugging information."""

from __future__ import annotations

import io
import shutil
import subprocess
import tomllib
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from elftools.elf.elffile import ELFFile

from tests.support.fuzzing.chunked import Chunks, chunks_of
from tests.support.fuzzing.elf_fields import ElfFields, of_file
from tests.support.paths import ROOT

RECORDED = ROOT / "examples" / "recorded" / "demo.zip"
PROGRAM = """\
#include <stdlib.h>
struct particle { double x, v; int id : 5; unsigned kind : 3; union { float f; int n; } u; struct particle *next; };
static struct particle *all, spare[4];
static inline double moved(const struct particle *p, double dt) { return p->x + dt * p->v; }
__attribute__((noinline)) void step(int n, double dt) { for (int i = 0; i < n; i++) all[i].x = moved(&all[i], dt); }
int main(int c, char **v) { all = calloc(99, sizeof *all); step(99, c); spare[c & 3] = *all; return v == 0 || spare[0].id; }
"""
TEMPLATES = """\
#include <vector>
namespace n { struct cell { float a, b; virtual ~cell() {} }; template <class T> struct box : cell { T items[3]; }; }
std::vector<n::box<double>> all(9);
__attribute__((noinline)) double sum() { double s = 0; for (auto &one : all) s += one.items[1] + one.a; return s; }
int main() { return sum() > 1; }
"""
BUILDS = (
    ("gcc", "c", ("-g", "-O2")),
    ("gcc", "c", ("-gdwarf-2", "-gstrict-dwarf", "-O1", "-no-pie")),
    ("clang", "c", ("-g", "-O2")),
    ("g++", "cpp", ("-gdwarf-4", "-O2")),
    ("gcc", "c", ("-O2", "-s")),
)
"""Compiler, language and flags of the programs; a compiler that is not there is left out."""

GUARD = """\
format = "layout-advise.guard/1"
program = "app"
written = "2026-11-24"
cpu = "a processor"
[[region]]
name = "step"
symbol = "step"
uses = ["particle.x"]
verdict = "keep"
gain = [1.2, 1.1, 1.3]
over = "old"
[[type]]
name = "particle"
file = "app.c"
bytes = 40
members.x = { at = 0, bytes = 8, type = "double" }
members.id = { at = 16, bytes = 4, type = "int", first_bit = 128, bits = 5 }
[[variable]]
name = "spare"
type = "struct particle[4]"
"""
KERNEL = """\
typedef struct { float x, v; int n; } P;
__kernel void step(__global P *p, __global const float *f, __local float *s, float dt, int n) {
    int i = get_global_id(0); if (i < n) p[i].x += dt * p[i].v + f[i]; }
"""
SPEC = """\
kernel = "step"
global = [64]
local = [16]
options = "-DN=64"
calls = 10
args = [{buffer = "p", count = 64, fill = "random", low = 0, high = 2}, {buffer = "f", bytes = 256, fill = 1.5},
        {local = 64}, {value = 0.5}, {value = 64}]
"""
FARM = """\
[defaults]
language = "C"
limit = 60
[[program]]
name = "bzip2"
version = "1.0"
fetch = "cp"
build = "make CFLAGS=$FLAGS"
run = "$BUILD/bzip2 -k $CASE"
flags = { O2 = "-O2", O3 = "-O3 -march=native" }
inputs = { text = "$INPUT/a", zeros = "$INPUT/b" }
environment = { A = "1" }
[[program]]
name = "list"
run = "./list 10"
stdin = "in"
options = "--restores 5"
"""
COMPILE_COMMANDS = """\
[{"directory": "/x", "file": "a.c", "command": "cc -O2 -DN=1 -I inc -c a.c"},
 {"directory": "/x", "file": "b.c", "arguments": ["cc", "-std=c11", "-c", "b.c"]}]
"""
TERMS = ("S_{0,1;2} ⊗ A_1000", "A_3 ⊗ (S_{0,2;4} + S_{1,3;4}) ⊗ A_7", "A_{4} x S_{0;3} x A_8", "I_5 ⊗ A_4")


@dataclass(frozen=True)
class Samples:
    """The files. ``run`` is the folder of the recorded run, ``programs`` the compiled ones; the rest is read already."""

    folder: Path
    run: Path
    programs: tuple[Path, ...]
    report: dict[str, Any]
    candidates: list[Any]
    trace: Chunks
    elf: tuple[ElfFields, ...]
    guard: dict[str, Any]
    farm: dict[str, Any]
    spec: dict[str, Any]

    @property
    def region(self) -> Path:
        """The folder of the run's region."""
        return next((self.run / "regions").iterdir())


@cache
def samples(folder: Path) -> Samples:
    """All samples, made in ``folder``."""
    run = folder / "run"
    with zipfile.ZipFile(RECORDED) as archive:
        archive.extractall(run)
    programs = tuple(_programs(folder))
    region = next((run / "regions").iterdir())
    return Samples(
        folder,
        run,
        programs,
        msgspec.json.decode((run / "report.json").read_bytes()),
        msgspec.json.decode((region / "candidates.json").read_bytes()),
        chunks_of(region / "trace.lat"),
        tuple(of_file(data, ELFFile(io.BytesIO(data))) for data in (path.read_bytes() for path in programs)),
        tomllib.loads(GUARD),
        tomllib.loads(FARM),
        tomllib.loads(SPEC),
    )


def _programs(folder: Path) -> list[Path]:
    (folder / "app.c").write_text(PROGRAM)
    (folder / "app.cpp").write_text(TEMPLATES)
    (folder / "step.cl").write_text(KERNEL)
    made = []
    for number, (compiler, language, flags) in enumerate(BUILDS):
        if shutil.which(compiler) is None:
            continue
        path = folder / f"app{number}"
        subprocess.run([compiler, *flags, "-o", path, folder / f"app.{language}"], check=True)
        made.append(path)
    return made
