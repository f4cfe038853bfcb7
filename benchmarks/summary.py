"""Sums up the rows of ``accuracy.py``: first how many of them have a prediction at all, then how accurate these are.

A row is one hand-written version of an example at one size and one set of flags. A configuration is all rows of one example,
size and set of flags, which share one run of the tool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from cases import CASES, NOT_PROPOSED, WIDER_THAN_SSE, is_wide

NEAR = 0.05
"""How far the identity may be off, and the layout that is predicted to be the fastest behind the one that is."""
LEAST_GAIN = 1.03
"""Where no hand-written version gains that much, no change may be advised."""
CLEAR_GAIN = 1.10
"""Where a hand-written version gains that much, a change is missed if none is advised."""
DOUBTED = frozenset(("identity-off", "not-in-situ"))
"""Reasons of a verdict for which the tool itself says that none of a run's figures counts."""
Row = dict[str, Any]
Name = tuple[str, str, str]
"""Example, size and flags of a configuration."""


def configurations(rows: Iterable[Row]) -> dict[Name, list[Row]]:
    """Rows by example, size and flags."""

    def key(row: Row) -> Name:
        return row["example"], row["size"], row["flags"]

    return {name: list(group) for name, group in groupby(sorted(rows, key=key), key)}


def summary(rows: Sequence[Row]) -> list[str]:
    """One line a figure: coverage, then accuracy."""
    groups = configurations(rows)
    return [*coverage(groups), *accuracy(groups)]


def coverage(groups: Mapping[Name, Sequence[Row]]) -> list[str]:
    """Which rows have a prediction, why the others have none, and where a clear gain got no change advised."""
    rows = [row for group in groups.values() for row in group]
    unpredicted = [
        (why_unpredicted(row, group), row["version"]) for group in groups.values() for row in group if not row["predicted"]
    ]
    lines = [f"hand-written versions with a prediction: {_part(len(rows) - len(unpredicted), len(rows))}"]
    for reason, number in Counter(reason for reason, _ in unpredicted).most_common():
        versions = Counter(version for why, version in unpredicted if why == reason)
        lines.append(f"without one, {reason}: {number} ({', '.join(f'{name} {n}' for name, n in versions.most_common())})")
    gaining = [name for name, group in groups.items() if max(row["hand"] for row in group) >= CLEAR_GAIN]
    missed = [name for name in gaining if groups[name][0]["verdict"] != "change"]
    gain = f"{CLEAR_GAIN - 1:.0%}"
    lines.append(f"configurations in which a hand-written version gains {gain}: {_part(len(gaining), len(groups))}")
    lines.append(f"no change advised in {len(missed)} of these")
    lines += [f"  {line}" for line in _by_verdict(missed, groups)]
    return lines


def why_unpredicted(row: Row, group: Sequence[Row]) -> str:
    """The reason for which a row has no prediction."""
    case = CASES.get(row["example"])
    if case is not None and case.versions.get(row["version"]) is NOT_PROPOSED:
        return "no layout that the tool proposes (a changed loop, merged arrays, another data structure)"
    if row["version"] in WIDER_THAN_SSE and not is_wide(row["flags"]):
        return "vectors wider than the flags allow"
    if row["verdict"] == "change" or any(other["predicted"] for other in group):
        return "other layouts were measured, not this one"
    return f"as all versions in a run that ended {_verdict(row)}"


def accuracy(groups: Mapping[Name, Sequence[Row]]) -> list[str]:
    """Identity, errors of the predictions, the layout chosen, and changes that gain nothing."""
    rows = [row for group in groups.values() for row in group]
    firsts = {name: group[0] for name, group in groups.items()}
    off = [name for name, row in firsts.items() if row["identity"] is None or abs(row["identity"] - 1) > NEAR]
    lines = [f"identity within {NEAR:.0%}: {len(groups) - len(off)} of {len(groups)}{_listed(off, 'not ')}"]
    errors = [abs(row["error"]) for row in rows if row["error"] is not None]
    if errors:
        lines.append(f"predicted against hand-written: {_spread(errors)}")
        believed = [abs(row["error"]) for row in rows if row["error"] is not None and row["reason"] not in DOUBTED]
        if 0 < len(believed) < len(errors):
            lines.append(f"without the runs in which the tool itself says that no figure counts: {_spread(believed)}")
    lines.append(_choices(groups))
    wrong = [n for n, row in firsts.items() if row["verdict"] == "change" and max(r["hand"] for r in groups[n]) < LEAST_GAIN]
    lines.append(f"changes advised where nothing gains {LEAST_GAIN - 1:.0%}: {len(wrong)}{_listed(wrong)}")
    return lines


def is_near_the_best(rows: Sequence[Row]) -> bool | None:
    """Whether the version with the greatest predicted speedup, or the original where none is predicted to gain, is by hand
    within ``NEAR`` of the fastest one that has a prediction; None where none has."""
    known = [(row["predicted"], row["hand"]) for row in rows if row["predicted"]]
    if not known:
        return None
    known.append((1.0, 1.0))
    return bool(max(known)[1] >= (1 - NEAR) * max(hand for _, hand in known))


def _choices(groups: Mapping[Name, Sequence[Row]]) -> str:
    """How often the layout predicted to be the fastest is so by hand, among those that have a prediction."""
    choices = {name: is_near_the_best(group) for name, group in groups.items()}
    missed = [name for name, good in choices.items() if good is False]
    judged = sum(good is not None for good in choices.values())
    right = f"{judged - len(missed)} of {judged}{_listed(missed, 'not ')}"
    return f"the layout chosen is within {NEAR:.0%} of the best that has a prediction: {right}"


def _by_verdict(names: Sequence[Name], groups: Mapping[Name, Sequence[Row]]) -> list[str]:
    """The configurations by their verdict and its reason, each with its fastest hand-written version."""
    found: dict[str, list[str]] = {}
    for name in names:
        best = max(groups[name], key=lambda row: row["hand"])
        found.setdefault(_verdict(best), []).append(f"{' '.join(name)} {best['version']} {best['hand']:.2f}")
    return [f"{verdict}: {len(found[verdict])} ({', '.join(found[verdict])})" for verdict in sorted(found)]


def _verdict(row: Row) -> str:
    return f"{row['verdict']} ({row['reason']})"


def _part(number: int, of: int) -> str:
    return f"{number} of {of} ({number / of:.0%})" if of else "0 of 0"


def _spread(errors: Sequence[float]) -> str:
    median, tenth = np.percentile(errors, (50, 90))
    return f"median {median:.1%}, 90th percentile {tenth:.1%} of {len(errors)} rows"


def _listed(names: Sequence[Name], before: str = "") -> str:
    return f" ({before}{', '.join(' '.join(name) for name in names)})" if names else ""
