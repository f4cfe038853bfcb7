"""Print, rewrite and draw a term of the layout algebra.

A_n is an array of n, S_{I;d} a piece of d places of which those in I are accessed, ⊗ nests (left slowest), ⊕ unites:

  layout-advise layout 'A_256 ⊗ S_{0,1;4}'       256 structures of four, two members used
  layout-advise layout 'A[256] * S[0,1;4]'       the same in ASCII (--ascii and --latex choose what is printed)
  layout-advise layout 'S_{0:1000:2;1000}'       every other one of 1000

--rule NUMBER@FACTOR[:PARAMETER] rewrites, in the order given; factors count from 0, after every step anew:

  layout-advise layout 'A_256 ⊗ S_{0,1;4}' --rule 4@0                          structure of arrays
  layout-advise layout 'A_256 ⊗ S_{0,1;4}' --rule 4@0 --rule 7@0               ... without the unused members
  layout-advise layout 'A_256 ⊗ S_{0,1;4}' --rule 5@0:4 --rule 4@1 --rule 7@1  blocks of four for SIMD

  1@k:p  S_{I;n·p} → S_{J;n} ⊗ A_p   whole blocks of p      5@k:m  A_{n·m} → A_n ⊗ A_m
  2@k:p  S_{I;n·p} → A_n ⊗ S_{J;p}   repeats every p        6@k    S_{I;n} ⊗ S_{J;m} → one S
  3@k:n  S_{I;m·n} → S_{J;m} ⊗ S_{r;n}, one remainder by n  7@k    S_{I;d} → A_#I, drops what is unused
  4@k    L ⊗ L' → L' ⊗ L                                    8@k:d  pads the factor to d places
  9@k:i,j,...  two structures one behind the other: the offsets with index i, j, ... in the factor, then the others

--map says where every accessed place has gone, after all rules together, as a formula, as C or for sympy:

  layout-advise layout 'A_256 ⊗ S_{0,1;4}' --rule 4@0 --rule 7@0 --map c

A rule that does not apply is refused with the condition that failed. The drawing has one letter for each accessed place:
letters are the members of the first term, dots are unused.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from layout_advise.errors import AlgebraError
from layout_advise.layoutalgebra.draw.term_stages import Stage, draw_svg, draw_text, first_stage, next_stage
from layout_advise.layoutalgebra.rules import rules
from layout_advise.layoutalgebra.rules.index_map import IndexMap
from layout_advise.layoutalgebra.rules.map_printing import to_c, to_sympy
from layout_advise.layoutalgebra.sets.index_set import index_set
from layout_advise.layoutalgebra.terms.notation import shorten
from layout_advise.layoutalgebra.terms.simplify import simplify
from layout_advise.layoutalgebra.terms.term import Leaf, Term, factors_of, terms_of
from layout_advise.layoutalgebra.terms.text import parse
from layout_advise.rundir import write_atomically

FIRST = 12
"""Accessed offsets that are listed."""

PLAIN: dict[str, type[rules.Rule]] = {"4": rules.Permute, "6": rules.Fuse, "7": rules.Compact}
WITH_PARAMETER: dict[str, Callable[[int, int], rules.Rule]] = {
    "1": rules.CutBlocks,
    "2": rules.CutPeriods,
    "3": rules.CutStride,
    "5": rules.SplitArray,
    "8": rules.Pad,
}
_RULE = re.compile(r"(?P<number>\d+)@(?P<position>\d+)(?::(?P<parameter>\d+(?:,\d+)*))?")
MAPS: dict[str, Callable[[IndexMap], str]] = {"text": str, "c": to_c, "sympy": lambda mapping: str(to_sympy(mapping))}


def rule(text: str) -> rules.Rule:
    """``5@0:4`` as a rule, for argparse."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no rule: write NUMBER@FACTOR or NUMBER@FACTOR:PARAMETER, as 5@0:4")
    number, position, parameter = found["number"], int(found["position"]), found["parameter"]
    if number in PLAIN:
        if parameter is not None:
            raise argparse.ArgumentTypeError(f"rule {number} takes no parameter: write {number}@{position}")
        return PLAIN[number](position)
    if number not in (*WITH_PARAMETER, "9"):
        raise argparse.ArgumentTypeError(f"no rule {number}: there are {', '.join(sorted({*PLAIN, *WITH_PARAMETER, '9'}))}")
    if parameter is None:
        raise argparse.ArgumentTypeError(f"rule {number} needs a parameter: write {number}@{position}:N")
    if number == "9":
        return rules.Divide(position, index_set(map(int, parameter.split(","))))
    if "," in parameter:
        raise argparse.ArgumentTypeError(f"rule {number} takes one number: write {number}@{position}:N")
    return WITH_PARAMETER[number](position, int(parameter))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``layout``."""
    parser.add_argument("term", metavar="TERM", help="a term, Unicode or ASCII (quote it for the shell)")
    parser.add_argument(
        "--rule", type=rule, action="append", default=[], dest="rules", metavar="RULE", help="apply a rule, as 4@0 or 5@0:4"
    )
    notation = parser.add_mutually_exclusive_group()
    notation.add_argument(
        "--ascii", dest="show", action="store_const", const=Term.ascii, default=str, help="print terms in ASCII"
    )
    notation.add_argument("--latex", dest="show", action="store_const", const=Term.latex, help="print terms in LaTeX")
    parser.add_argument("--map", choices=MAPS, help="print where the accessed places have gone")
    parser.add_argument("--svg", metavar="FILE", help="write the drawing of every step to FILE")
    parser.add_argument("-q", "--quiet", action="store_true", help="print the last term only")


def stages(term: Term, applied: list[rules.Rule]) -> list[Stage]:
    """The term and what each rule makes of it. Raises :class:`AlgebraError` where a rule does not apply."""
    found = [first_stage("", term)]
    flat = all(isinstance(f, Leaf) for part in terms_of(term) for f in factors_of(part))
    if applied and not flat:
        found.append(first_stage("multiplied out", simplify(term)))
    for step in applied:
        rewrite = step.apply(found[-1].term)
        title = f"rule {step.number} at factor {step.position}"
        found.append(next_stage(title, rewrite.new, found[-1], rewrite.place))
    return found


def describe(stage: Stage, show: Callable[[Term], str]) -> list[str]:
    """The lines that are printed for one stage."""
    term = stage.term
    try:
        count = term.count
        accessed = f"{count:,} accessed ({100 * count / term.size:.3g} %)"
    except AlgebraError as error:  # overlapping terms beyond what may be written out
        accessed = f"accessed offsets not counted ({error.what})"
    offsets = [offset for offset, _ in zip(term.iter_offsets(), range(FIRST + 1), strict=False)]
    shown = " ".join(map(str, offsets[:FIRST])) + (" …" if len(offsets) > FIRST else "")
    head = f"{stage.title}: " if stage.title else ""
    lines = [
        head + shorten(show(term), 2000),
        f"  domain   {term.size:,}, {accessed}",
        f"  offsets  {shown}",
        f"  drawing  {draw_text(stage)}",
    ]
    return [line.replace("…", "...") for line in lines] if show is Term.ascii else lines


def run(arguments: argparse.Namespace) -> int:
    """Carry out ``layout``."""
    found = stages(parse(arguments.term), arguments.rules)
    if arguments.svg:
        titled = [Stage(" ".join(f"{s.title} {shorten(str(s.term), 80)}".split()), s.term, s.members) for s in found]
        write_atomically(Path(arguments.svg), draw_svg(titled).encode())
    shown = [] if arguments.quiet else ["\n".join(describe(stage, arguments.show)) for stage in found]
    if arguments.map:
        flat = found[len(found) - len(arguments.rules) - 1].term
        shown.append(MAPS[arguments.map](rules.rewrite(flat, arguments.rules).map).rstrip())
    elif arguments.quiet:
        shown.append(arguments.show(found[-1].term))
    print("\n\n".join(shown))
    return 0
