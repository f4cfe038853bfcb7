"""Write a layout that was tried as declarations and accessors to paste, in C, C++ and other languages.

  layout-advise emit app.layout --as c
  layout-advise emit app.layout --as std-mdspan --candidate c4 -o particles.hpp
  layout-advise emit app.layout --as numpy

c, c++, zig and odin compute the address of each value and take every layout; std-mdspan and numpy make strided views;
llama, kokkos and rust-soa_derive use the library's own name of the layout, and refuse where it has none. Buffers have the
sizes of the run: they are to be aligned to 64 bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from layout_advise.commands import common
from layout_advise.emit.languages import WRITERS, emitted
from layout_advise.emit.pick import pick
from layout_advise.rundir import write_atomically


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``emit``."""
    parser.add_argument("run", metavar="RUN", help="a run directory")
    parser.add_argument(
        "--as", dest="language", choices=tuple(WRITERS), required=True, metavar="LANGUAGE", help=", ".join(WRITERS)
    )
    parser.add_argument("--candidate", metavar="ID", help="the layout (default: the advised one, else the best one)")
    parser.add_argument("-o", "--output", metavar="FILE", help="write it to FILE (default: standard output)")


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``emit``."""
    picked = pick(common.existing(arguments.run), arguments.candidate)
    text = emitted(picked.layouts, arguments.language)
    note = f": {picked.note}" if picked.note else ""
    print(f"{picked.candidate.id}{note}", file=sys.stderr)
    if arguments.output:
        write_atomically(Path(arguments.output), text.encode())
    else:
        sys.stdout.write(text)
    return 0
