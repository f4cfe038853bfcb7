"""Write temporary structures of arrays around annotated loops of C++ source.

  layout-advise views particles.cpp -o particles_views.cpp
  layout-advise views particles.cpp -o particles_views.cpp --times -- -std=c++17 -Iinclude

A loop is annotated by attributes directly before it, which compilers ignore:

  [[clang::soa_conversion]]                        before a range-based for over a container
  [[clang::soa_conversion_target("p")]]            before another loop: the array, vector or pointer p
  [[clang::soa_conversion_target_size("n")]]       how many elements a pointer leads to, where the loop does not tell
  [[clang::soa_conversion_hoist(1)]]               converted before the loop around it

Members that the loop and the functions called in it read are copied into arrays before it, those that are written are
copied back behind it. What cannot be done safely is refused with file and line, and nothing is written. After -- stand the
flags that the file is compiled with.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.sources import reading_flags
from layout_advise.commands import common
from layout_advise.errors import UsageError
from layout_advise.rundir import write_atomically
from layout_advise.views.check import check
from layout_advise.views.rewrite import rewrite

SUFFIXES = (".cc", ".cpp", ".cxx", ".C", ".c++", ".hpp", ".hh", ".h")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``views``."""
    parser.add_argument("file", metavar="FILE", help="a C++ source file")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the new source to OUT (default: standard output)")
    parser.add_argument("--openmp", action="store_true", help="members are converted by all OpenMP threads")
    parser.add_argument(
        "--times", action="store_true", help="the program tells at its end what converting and computing took"
    )
    parser.set_defaults(flags=())


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``views``."""
    path = common.existing(arguments.file).resolve()
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path.name} is no C++ source", "attributes of loops are C++", f"name it {path.stem}.cpp")
    output = Path(arguments.output) if arguments.output else None
    if output is not None and output.resolve() == path:
        raise UsageError("will not write over the source", str(path), "name another file with -o")
    flags, folder = tuple(reading_flags(arguments.flags)), Path.cwd()
    viewed = rewrite(parse(path, flags, folder), openmp=arguments.openmp, timed=arguments.times)
    check(viewed.text, path, flags, folder)
    for view, members in viewed.views:
        ins, outs = (", ".join(some) or "nothing" for some in (members.reads, members.writes))
        print(f"{path.name}:{view.loop.line}: {view.container}: in {ins}; back {outs}", file=sys.stderr)
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(viewed.text.encode("latin-1"))
    else:
        write_atomically(output, viewed.text.encode("latin-1"))
    return 0
