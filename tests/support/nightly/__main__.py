"""``make nightly``: the exit code is 1 where something differs.

python -m tests.support.nightly --forms 1000000 --functions 10000 --seed 1
python -m tests.support.nightly --again wide.37                     one round again, which is not counted

What was done is kept in a file, by seed and commit, and is not done again: pieces of several days add up to a campaign.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.support.campaigns.ledger import ROOT, Entry, Ledger, commit_of
from tests.support.compilers import HAS_AVX512
from tests.support.killable import EndedError, FailedError, in_child
from tests.support.lifting.random_states import prepare
from tests.support.lifting.runner import build_runner
from tests.support.nightly.rounds import Tally, builds, form_round, function_round, wide_round

SIZES = {"forms": 2000, "wide": 2000, "functions": 24}
"""How many are tried in a round of each part; ``wide`` are the forms of AVX-512."""
LONGEST = 1800.0
"""Seconds that a round may take, a hundred times what it needs."""
RESULTS = ROOT / "benchmarks" / "results" / "nightly.json"
TRIED = ("mockup", "tracer/code", "tests/support/lifting", "tests/support/nightly")
"""What the commit of a result is of."""


def main() -> int:
    """Rounds of forms and of functions, turn about, until there were enough or the time is up."""
    options = argparse.ArgumentParser(prog="python -m tests.support.nightly")
    options.add_argument("--forms", type=int, default=1_000_000)
    options.add_argument("--functions", type=int, default=10_000)
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no further round after so many")
    options.add_argument("--seed", default="1")
    options.add_argument("--results", type=Path, default=RESULTS, help="the file in which the counts are kept")
    options.add_argument("--again", metavar="PART.TURN", help="one round again")
    chosen = options.parse_args()
    prepare()
    with tempfile.TemporaryDirectory(prefix="layout-advise-nightly-") as work:
        if chosen.again:
            part, _, turn = chosen.again.partition(".")
            found = apart(part, chosen.seed, int(turn), build_runner(Path(work)))
            print("\n".join(found.differing) or "nothing differs")
            return int(bool(found.differing))
        ledger = Ledger(chosen.results)
        wanted = {"forms": chosen.forms, "wide": 0, "functions": chosen.functions}
        if HAS_AVX512:
            wanted |= {"forms": chosen.forms - chosen.forms // 4, "wide": chosen.forms // 4}
        differing = pieces(ledger, chosen.seed, wanted, time.monotonic() + chosen.seconds, build_runner(Path(work)))
    for part in SIZES:
        told(part, ledger.of(part, chosen.seed))
    return int(differing)


def pieces(ledger: Ledger, seed: str, wanted: dict[str, int], end: float, runner: Path) -> bool:
    """Rounds until there are as many as wanted in the ledger; whether something differed."""
    commit, differing = commit_of(*TRIED), False
    while left := [part for part in SIZES if ledger.inputs(part, seed) < wanted[part]]:
        for part in left:
            if time.monotonic() > end:
                return differing
            turn = ledger.next_turn(part, seed)
            tally = apart(part, seed, turn, runner)
            print("".join(f"{part}.{turn}: {line}\n" for line in tally.differing), end="", flush=True)
            entry = ledger.entry(part, seed, commit)
            entry.inputs += tally.inputs
            entry.states += tally.states
            entry.refused += tally.refused
            entry.found += [f"{part}.{turn}: {line}" for line in tally.differing]
            entry.by_kind += tally.by_kind
            ledger.done(entry, turn)
            differing = differing or bool(tally.differing)
    return differing


def apart(part: str, seed: str, turn: int, runner: Path) -> Tally:
    """A round, in a process that is killed where it does not end: that counts as one that differs."""
    count = SIZES[part]
    with tempfile.TemporaryDirectory(prefix="layout-advise-nightly-") as work:
        one_round: Callable[[], Tally]
        if part == "functions":
            compiler, flags = builds()[turn % len(builds())]
            one_round = partial(function_round, f"{seed}.{turn}", count, compiler, flags, Path(work), runner)
        else:
            one_round = partial(wide_round if part == "wide" else form_round, f"{seed}.{turn}", count, Path(work))
        try:
            return in_child(one_round, LONGEST)
        except (EndedError, FailedError) as error:
            return Tally(inputs=count, differing=[f"the round {error}"])


def told(part: str, entries: list[Entry]) -> None:
    """What the ledger has of a part, on stdout."""
    kinds, refused = Counter[str](), Counter[str]()
    for entry in entries:
        kinds += entry.by_kind
        refused += entry.refused
        counts = f"{entry.inputs:,}, on {entry.states:,} states, {sum(entry.refused.values()):,} refused"
        print(f"{part} at {entry.commit}: {counts}, {len(entry.found)} differ; turns {entry.turns}")
    print("  " + " ".join(f"{kind}:{count}" for kind, count in sorted(kinds.items())) + f"\n  kinds: {len(kinds)}")
    print("".join(f"  refused {count}: {reason}\n" for reason, count in refused.most_common(20)), end="")


if __name__ == "__main__":
    sys.exit(main())
