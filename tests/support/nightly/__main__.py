"""``make nightly``: the exit code is 1 where something differs.

python -m tests.support.nightly --forms 1000000 --functions 10000 --seed 20261124
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.support.killable import EndedError, FailedError, in_child
from tests.support.nightly.rounds import Tally, builds, form_round, function_round

FORMS, FUNCTIONS = 2000, 24
"""Of one round."""
LONGEST = 1800.0
"""Seconds that a round may take, a hundred times what it needs."""


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
                count = min(FORMS, chosen.forms - forms.inputs)
                _kept(forms, apart(seed, count, partial(form_round, seed, count, Path(work))))
            if functions.inputs < chosen.functions:
                compiler, flags = builds()[turn % len(builds())]
                count = min(FUNCTIONS, chosen.functions - functions.inputs)
                round_ = partial(function_round, seed, count, compiler, flags, Path(work))
                _kept(functions, apart(f"{seed} {compiler} {flags}", count, round_))
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


def apart(seed: str, count: int, one_round: Callable[[], Tally]) -> Tally:
    """A round, in a process that is killed where it does not end: that counts as one that differs."""
    try:
        return in_child(one_round, LONGEST)
    except (EndedError, FailedError) as error:
        return Tally(inputs=count, differing=[f"{seed}: the round {error}"])


def _kept(whole: Tally, part: Tally) -> None:
    for line in part.differing:
        print(line, flush=True)
    whole.add(part)


if __name__ == "__main__":
    sys.exit(main())
