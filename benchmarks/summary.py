"""What the rows of ``accuracy.py`` say of the targets: identity, errors, choices, changes that gain nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

NEAR = 0.05
"""How far the identity may be off, and the layout that is predicted to be the fastest behind the one that is."""
GAIN = 1.03
"""Where no hand-written version gains that much, no change may be advised."""
DOUBTED = frozenset(("identity-off", "not-in-situ"))
"""Reasons of the tool's for which none of a run's figures counts."""
Row = dict[str, Any]


def configurations(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Rows by example, size and flags."""

    def key(row: Row) -> tuple[str, str, str]:
        return row["example"], row["size"], row["flags"]

    return {name: list(group) for name, group in groupby(sorted(rows, key=key), key)}


def is_near_the_best(rows: Sequence[Row]) -> bool | None:
    """Whether the version with the greatest predicted speedup, or the original where none is predicted to gain, is by hand
    within ``NEAR`` of the fastest one that has a prediction; None where none has."""
    known = [(row["predicted"], row["hand"]) for row in rows if row["predicted"]]
    if not known:
        return None
    known.append((1.0, 1.0))
    return bool(max(known)[1] >= (1 - NEAR) * max(hand for _, hand in known))


def summary(rows: Sequence[Row]) -> list[str]:
    """One line a target."""
    groups = configurations(rows)
    firsts = {name: group[0] for name, group in groups.items()}
    off = [name for name, row in firsts.items() if row["identity"] is None or abs(row["identity"] - 1) > NEAR]
    errors = [abs(row["error"]) for row in rows if row["error"] is not None]
    choices = {name: is_near_the_best(group) for name, group in groups.items()}
    missed = [name for name, good in choices.items() if good is False]
    wrong = [n for n, row in firsts.items() if row["verdict"] == "change" and max(r["hand"] for r in groups[n]) < GAIN]
    judged = sum(good is not None for good in choices.values())
    off_, missed_ = _listed(off, "not "), _listed(missed, "not ")
    lines = [f"identity within {NEAR:.0%}: {len(groups) - len(off)} of {len(groups)}{off_}"]
    if errors:
        lines.append(f"predicted against hand-written: {_spread(errors)}")
        told = [abs(row["error"]) for row in rows if row["error"] is not None and row["reason"] not in DOUBTED]
        if 0 < len(told) < len(errors):
            lines.append(f"without the runs in which the tool itself says that no figure counts: {_spread(told)}")
    lines.append(f"the layout chosen is within {NEAR:.0%} of the best: {judged - len(missed)} of {judged}{missed_}")
    lines.append(f"changes advised where nothing gains {GAIN - 1:.0%}: {len(wrong)}{_listed(wrong)}")
    return lines


def _spread(errors: Sequence[float]) -> str:
    median, tenth = np.percentile(errors, (50, 90))
    return f"median {median:.1%}, 90th percentile {tenth:.1%} of {len(errors)} rows"


def _listed(names: Sequence[tuple[str, ...]], before: str = "") -> str:
    return f" ({before}{', '.join(' '.join(name) for name in names)})" if names else ""
