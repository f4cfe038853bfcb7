"""Sources of one program with the same layout and other builds, or with one pair of members exchanged."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from layout_advise.reports.model import contract
from layout_advise.reports.model.structure import FieldUse
from layout_advise.tracer.program.binary import ElfBinary
from layout_advise.tracer.program.records.find import find_records
from tests.support.sample_report import report

MEMBERS = (
    "double x",
    "double y",
    "float mass",
    "int kind",
    "struct vec vel",
    "long stamp",
    "unsigned char tag[8]",
    "struct cell cells[2]",
    "struct item *next",
    "unsigned low : 3",
    "unsigned high : 9",
    "enum colour hue",
    "double weight[4]",
)
"""Of the record that is guarded; any two of different names may be exchanged."""
HEAD = """
enum colour { RED, GREEN };
struct vec { float u, v, w; };
struct cell { short re; short im; int n; };
"""
CODE = """
{extra}
double use(struct item *p, long n) {{
  double sum = 0; {comment}
  for (long i = 0; i < n; i++) sum += p[i].x * p[i].mass + p[i].cells[1].im + p[i].low + p[i].high + p[i].vel.w;
  return sum;
}}
{main}
"""
FLAGS = ("-O0", "-O1", "-O2", "-O3", "-Os", "-Og")
FURTHER = (
    "-gdwarf-5", "-gdwarf-4", "-gdwarf-3", "-gdwarf-2", "-fdebug-types-section", "-gz", "-ffast-math", "-march=haswell",
    "-fno-inline", "-funroll-loops", "-fomit-frame-pointer", "-fstack-protector-all", "-DNDEBUG", "-std=gnu11", "-fwrapv",
)  # fmt: skip


@dataclass(frozen=True)
class Build:
    """A source and the command that compiles it."""

    source: str
    command: tuple[str, ...]

    def compiled(self, folder: Path, name: str) -> Path:
        """The shared library, with debug information."""
        (folder / f"{name}.c").write_text(self.source)
        command = [*self.command, "-shared", "-fPIC", "-w", "-o", f"{name}.so", f"{name}.c"]
        subprocess.run(command, cwd=folder, check=True)
        return folder / f"{name}.so"


def source(members: Sequence[str] = MEMBERS, extra: str = "", comment: str = "", main: str = "") -> str:
    """The program with these members."""
    body = "".join(f"  {member};\n" for member in members)
    return f"{HEAD}struct item {{ {comment}\n{body}}};\n{CODE.format(extra=extra, comment=comment, main=main)}"


def unchanged(number: int) -> Build:
    """A build with other flags, functions, comments or another compiler, and the same layout."""
    dice = random.Random(number)
    compilers = ["gcc", *(["clang"] if shutil.which("clang") else [])]
    extra = "\n".join(
        f"struct extra{k} {{ char c; double x; }}; static int f{k}(struct extra{k} *e) {{ return e->c + {k}; }}\n"
        f"int g{k}(void) {{ struct extra{k} e = {{1, 2}}; return f{k}(&e); }}"
        for k in range(dice.randrange(4))
    )
    comment = "/* " + "note " * dice.randrange(9) + "*/" + "\n" * dice.randrange(5)
    flags = ["-g", dice.choice(FLAGS), *dice.sample(FURTHER, dice.randrange(4))]
    members = [f"{member} /* {number} */" for member in MEMBERS] if dice.random() < 0.5 else MEMBERS
    return Build(source(members, extra, comment), (dice.choice(compilers), *flags))


def exchanged(number: int) -> tuple[Build, tuple[str, str]]:
    """A build in which two members have changed places, and their names."""
    dice = random.Random(number)
    first, second = dice.sample(range(len(MEMBERS)), 2)
    members = list(MEMBERS)
    members[first], members[second] = members[second], members[first]
    return Build(source(members), ("gcc", "-g", dice.choice(FLAGS))), (_name(MEMBERS[first]), _name(MEMBERS[second]))


def _name(member: str) -> str:
    return member.split(" :")[0].split("[")[0].split(" ")[-1].lstrip("*")


def item_report(program: Path, command: Sequence[str] = ()) -> contract.Report:
    """A report whose one structure is an array of the guarded record of a program."""
    base = report()
    binary = ElfBinary.open_module(program)
    (layout,) = find_records(binary.debug, {"item"})["item"]
    structure = base.hotspots[0].structures[0]
    x = FieldUse("x", "double", 0, 8, 1000, 0)
    structure = replace(structure, name="p", type="item", element_bytes=layout.bytes, fields=(x,), cold_fields=())
    hotspot = replace(base.hotspots[0], structures=(structure,), symbol="use")
    file = contract.Binary(str(program), binary.build_id, None)
    return replace(base, hotspots=(hotspot,), binary=file, command=tuple(command) or (str(program),))
