"""``make fuzz``: damaged input for all that reads files. The exit code is 1 where there was a fault.

python -m tests.support.fuzzing --inputs 1000000
python -m tests.support.fuzzing --only elf --again 4711     one input again, which is not counted

What was done is kept in a file, by seed and commit, and is not done again: pieces of several days add up to a campaign.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support.campaigns.ledger import ROOT, Ledger
from tests.support.fuzzing.campaign import campaign, fed, limited, told
from tests.support.fuzzing.readers import READERS
from tests.support.fuzzing.samples import samples

RESULTS = ROOT / "benchmarks" / "results" / "fuzz.json"


def main() -> int:
    """Run a campaign, or one of its inputs again."""
    options = argparse.ArgumentParser(prog="python -m tests.support.fuzzing")
    options.add_argument("--inputs", type=int, default=1_000_000)
    options.add_argument("--seconds", type=float, default=float("inf"), help="begin no further batch after so many")
    options.add_argument("--seed", default="1")
    options.add_argument("--only", default="", help=f"readers, of {', '.join(READERS)}")
    options.add_argument("--again", type=int, metavar="NUMBER", help="one input of the reader given by --only")
    options.add_argument("--results", type=Path, default=RESULTS, help="the file in which the counts are kept")
    chosen = options.parse_args()
    only = tuple(name for name in chosen.only.split(",") if name)
    if chosen.again is None:
        kept = Ledger(chosen.results)
        found = campaign(chosen.inputs, chosen.seed, only, chosen.seconds, kept)
        faults = told(found, lambda text: print(text, flush=True))
        whole = [entry for name in READERS for entry in kept.of(name, chosen.seed)]
        for commit in dict.fromkeys(entry.commit for entry in whole):
            at = [entry for entry in whole if entry.commit == commit]
            inputs, failed = sum(entry.inputs for entry in at), sum(len(entry.found) for entry in at)
            print(f"seed {chosen.seed} at {commit}, in all pieces: {inputs:,} inputs, {failed:,} faults")
        return int(faults > 0)
    with tempfile.TemporaryDirectory(prefix="layout-advise-fuzz-") as work:
        known = samples(Path(work))
        limited()
        how = fed(only[0], chosen.again, known, chosen.seed)
    print("read" if how is None else how or "refused")
    return int(bool(how))


if __name__ == "__main__":
    sys.exit(main())
