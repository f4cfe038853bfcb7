"""Write temporary structures of arrays around annotated loops of C++ source.

  layout-advise views particles.cpp -o particles_views.cpp
  layout-advise views particles.cpp -o particles_views.cpp --times -- -std=c++17 -Iinclude
  layout-advise views --from app.layout particles.cpp -o particles_annotated.cpp

A loop is annotated by attributes directly before it, which compilers ignore:

  [[clang::soa_conversion]]                        before a range-based for over a container
  [[clang::soa_conversion_target("p")]]            before another loop: the array, vector or pointer p
  [[clang::soa_conversion_target_size("n")]]       how many elements a pointer leads to, where the loop does not tell
  [[clang::soa_conversion_hoist(1)]]               converted before the loop around it
  [[clang::soa_conversion_offload_compute]]        a range-based for computed on a device (OpenMP)

Members that the loop and the functions called in it read are copied into arrays before it, those that are written are
copied back behind it. What cannot be done safely is refused with file and line, and nothing is written. With --from the
annotations themselves are written, before the loops of a run's regions over the structures for which a temporary layout
paid. After -- stand the flags that the file is compiled with.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from layout_advise.apply.rewrite.parse import parse
from layout_advise.apply.sources import reading_flags
from layout_advise.commands import common
from layout_advise.errors import UsageError
from layout_advise.reports.model.contract import read_report
from layout_advise.rundir import write_atomically
from layout_advise.views.check import check
from layout_advise.views.proposal import annotated, regions_of
from layout_advise.views.rewrite import Viewed, rewrite

SUFFIXES = (".cc", ".cpp", ".cxx", ".C", ".c++", ".hpp", ".hh", ".h")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``views``."""
    parser.add_argument("file", metavar="FILE", help="a C++ source file")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the new source to OUT (default: standard output)")
    parser.add_argument("--openmp", action="store_true", help="members are converted by all OpenMP threads")
    parser.add_argument(
        "--times", action="store_true", help="the program tells at its end what converting and computing took"
    )
    parser.add_argument("--from", dest="run_folder", metavar="RUN", help="write annotations into FILE, as this run proposes")
    parser.add_argument("--candidate", metavar="ID", help="with --from: of this layout, also where it was not shown to pay")
    parser.set_defaults(flags=())


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``views``."""
    path = common.existing(arguments.file).resolve()
    if arguments.candidate and not arguments.run_folder:
        raise UsageError("--candidate names a layout of a run", "", "give the run with --from")
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path.name} is no C++ source", "attributes of loops are C++", f"name it {path.stem}.cpp")
    output = Path(arguments.output) if arguments.output else None
    if output is not None and output.resolve() == path:
        raise UsageError("will not write over the source", str(path), "name another file with -o")
    flags, folder = tuple(reading_flags(arguments.flags)), Path.cwd()
    if arguments.run_folder:
        return _from_run(arguments, path, output, flags, folder)
    viewed = rewrite(parse(path, flags, folder), openmp=arguments.openmp, timed=arguments.times)
    check(viewed.text, path, flags, folder)
    _tell(viewed, path)
    _write(viewed.text, output)
    return 0


def _from_run(arguments: argparse.Namespace, path: Path, output: Path | None, flags: tuple[str, ...], folder: Path) -> int:
    """Writes the source with annotations."""
    report = read_report(common.existing(arguments.run_folder))
    regions = regions_of(report, path, arguments.candidate)
    found = annotated(parse(path, flags, folder), regions, flags, folder)
    for region in regions:
        costs = region.candidate.conversion
        ins, outs = (", ".join(some) or "nothing" for some in ((costs.copied_in, costs.copied_out) if costs else ((), ())))
        name = region.hotspot.name or region.hotspot.symbol
        print(f"{name}, {region.candidate.id}: the run copied in {ins}; back {outs}", file=sys.stderr)
    for text in found.refused:
        print(f"not annotated: {text}", file=sys.stderr)
    _tell(found.viewed, path)
    _write(found.text, output)
    return 0


def _tell(viewed: Viewed, path: Path) -> None:
    for view, members in viewed.views:
        ins, outs = (", ".join(some) or "nothing" for some in (members.reads, members.writes))
        print(f"{path.name}:{view.loop.line}: {view.container}: in {ins}; back {outs}", file=sys.stderr)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("latin-1"))
    else:
        write_atomically(output, text.encode("latin-1"))
