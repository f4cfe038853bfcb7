"""The third of the field that is held back: of each three programs in a row of the list, one is drawn by a fixed seed.

Programs are added at the list's end, so that what was drawn stays drawn. ``python benchmarks/field/held_back.py`` prints
them, ``--others`` the rest, as ``layout-advise farm --only`` takes them.
"""

from __future__ import annotations

import random
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

LIST = Path(__file__).resolve().parent / "field.toml"
SEED = 23
GROUP = 3


def names() -> list[str]:
    """All programs, in the order of the list."""
    return [row["name"] for row in tomllib.loads(LIST.read_text())["program"]]


def held_back(programs: Sequence[str]) -> list[str]:
    """Those drawn; an incomplete group at the end has none yet."""
    groups = [programs[start : start + GROUP] for start in range(0, len(programs) - GROUP + 1, GROUP)]
    return [group[random.Random(f"{SEED}:{number}").randrange(GROUP)] for number, group in enumerate(groups)]


if __name__ == "__main__":
    everything = names()
    drawn = held_back(everything)
    print(",".join([name for name in everything if name not in drawn] if "--others" in sys.argv else drawn))
