"""``make applying``: random C programs in random layouts print the same; the exit code is 1 where one does not.

python -m tests.support.applying --programs 1000 --seed 1
python -m tests.support.applying --again 3                     one round again, which is not counted

What was done is kept in a file, by seed and commit, and is not done again: pieces of several days add up to a campaign.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from subprocess import SubprocessError
from zlib import crc32

from hypothesis import HealthCheck, Phase, given, seed, settings

from layout_advise.errors import LayoutAdviseError
from tests.support.applying.record_programs import RecordProgram, programs
from tests.support.applying.rewritten import SANITIZED, WARNINGS, changed, output
from tests.support.campaigns.ledger import ROOT, Ledger, commit_of
from tests.support.compilers import HAS_CLANG

ROUND = 26
"""Programs of a round; the first of each is the simplest one, and is not counted."""
PART = "apply"
BUILDS = {
    "gcc -O1": ("gcc", WARNINGS),
    "gcc -O2": ("gcc", (*WARNINGS, "-O2")),
    "gcc with sanitizers": ("gcc", SANITIZED),
    **({"clang -O2": ("clang", (*WARNINGS, "-O2"))} if HAS_CLANG else {}),
}
FAULTS = (AssertionError, SubprocessError, LayoutAdviseError)
RESULTS = ROOT / "benchmarks" / "results" / "applying.json"
TRIED = ("layout_advise/apply", "tests/support/applying")
"""What the commit of a result is of."""


def main() -> int:
    """Rounds of random programs until there were enough or the time is up."""
    options = argparse.ArgumentParser(prog="python -m tests.support.applying")
    options.add_argument("--programs", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no further round after so many")
    options.add_argument("--seed", default="1")
    options.add_argument("--results", type=Path, default=RESULTS, help="the file in which the counts are kept")
    options.add_argument("--again", type=int, metavar="TURN", help="one round again")
    chosen = options.parse_args()
    if chosen.again is not None:
        kinds, found = one_round(f"{chosen.seed}.{chosen.again}")
        print("\n".join(found) or f"{kinds.total()} programs, nothing differs")
        return int(bool(found))
    ledger, end = Ledger(chosen.results), time.monotonic() + chosen.seconds
    commit = commit_of(*TRIED)
    while ledger.inputs(PART, chosen.seed) < chosen.programs and time.monotonic() < end:
        turn = ledger.next_turn(PART, chosen.seed)
        kinds, found = one_round(f"{chosen.seed}.{turn}")
        print("".join(f"{PART}.{turn}: {line}\n" for line in found), end="", flush=True)
        entry = ledger.entry(PART, chosen.seed, commit)
        entry.inputs += kinds.total()
        entry.by_kind += kinds
        entry.found += [f"{PART}.{turn}: {line}" for line in found]
        ledger.done(entry, turn)
    for entry in ledger.of(PART, chosen.seed):
        kinds = entry.by_kind
        print(f"at {entry.commit}: {entry.inputs} programs, {len(entry.found)} differ; {dict(sorted(kinds.items()))}")
    return int(any(entry.found for entry in ledger.of(PART, chosen.seed)))


def one_round(of: str) -> tuple[Counter[str], list[str]]:
    """How many programs were tried by each build, and of the first that fails how, and its text; the round ends there."""
    kinds, last = Counter[str](), list[RecordProgram]()
    names = list(BUILDS)

    @seed(of)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def tried(program: RecordProgram) -> None:
        name = names[crc32(program.text.encode()) % len(names)]  # the same when hypothesis runs a failing one again
        kinds[name] += bool(last) and program != last[0]
        last[:] = [program]
        same(program, name)

    try:
        tried()
    except FAULTS as error:
        failed = last[0]
        return kinds if kinds.total() else Counter({names[0]: 1}), [
            f"{error!s:.300} of {failed.groups} in blocks of {failed.blocks}:\n{failed.text}"
        ]
    return kinds, []


def same(program: RecordProgram, build: str) -> None:
    """Raises AssertionError where a program in its layout prints something else, or SubprocessError where it does not
    compile without warnings, or does not run."""
    compiler, flags = BUILDS[build]
    with tempfile.TemporaryDirectory(prefix="layout-advise-applying-") as name:
        folder = Path(name)
        new = changed(
            {"p.c": program.text}, "item", program.groups, folder, guard=True, blocks=program.blocks, apart=program.apart
        )
        assert output(new, flags, compiler) == output(folder / "old", flags, compiler), f"it prints something else ({build})"


if __name__ == "__main__":
    sys.exit(main())
