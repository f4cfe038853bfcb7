"""``make nightly``: the exit code is 1 where something differs.

python -m tests.support.nightly --forms 1000000 --functions 10000 --seed 20261124
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.support.nightly.rounds import Tally, builds, form_round, function_round

FORMS, FUNCTIONS = 2000, 24
"""Of one round."""


def main() -> int:
    """Rounds of forms and of functions, turn about, until there were enough or the time is up."""
    options = argparse.ArgumentParser(prog="python -m tests.support.nightly")
    options.add_argument("--forms", type=int, default=1_000_000)
    options.add_argument("--functions", type=int, default=10_000)
    options.add_argument("--seconds", type=float, help="stop after so many")
    options.add_argument("--seed", default="1")
    chosen = options.parse_args()
    forms, functions, begun, turn = Tally(), Tally(), time.monotonic(), 0
    while forms.inputs < chosen.forms or functions.inputs < chosen.functions:
        with tempfile.TemporaryDirectory(prefix="layout-advise-nightly-") as work:
            seed = f"{chosen.seed}.{turn}"
            if forms.inputs < chosen.forms:
                _kept(forms, form_round(seed, min(FORMS, chosen.forms - forms.inputs), Path(work)))
            if functions.inputs < chosen.functions:
                compiler, flags = builds()[turn % len(builds())]
                count = min(FUNCTIONS, chosen.functions - functions.inputs)
                _kept(functions, function_round(seed, count, compiler, flags, Path(work)))
        turn += 1
        if chosen.seconds is not None and time.monotonic() - begun > chosen.seconds:
            break
    for name, found in (("forms", forms), ("functions", functions)):
        refused = sum(found.refused.values())
        print(f"{name}: {found.inputs:,}, on {found.states:,} states, {refused:,} refused, {len(found.differing)} differ")
        print("  " + " ".join(f"{kind}:{count}" for kind, count in sorted(found.by_kind.items())))
        print("".join(f"  refused {count}: {reason}\n" for reason, count in found.refused.most_common(20)), end="")
    print(f"opcodes: {len(forms.by_kind)}")
    return int(bool(forms.differing or functions.differing))


def _kept(whole: Tally, part: Tally) -> None:
    for line in part.differing:
        print(line, flush=True)
    whole.add(part)


if __name__ == "__main__":
    sys.exit(main())
