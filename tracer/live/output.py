"""The outputs of runs compared: with an ordinary run, but for what differs between two of these."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(rb"\S+|\s+")
MOST_BYTES = 64 << 20
"""Longer outputs are compared as a whole."""


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """``same``: the output is that of an ordinary run. ``own`` words of it differ between ordinary runs already, and were
    not compared; None where these differ in more than single words, so that nothing could be."""

    same: bool
    own: int | None = 0


def compare_output(one: bytes, other: bytes, tried: bytes) -> OutputComparison:
    """``tried`` against two ordinary runs, ``one`` and ``other``."""
    if one == other or max(len(one), len(other)) > MOST_BYTES:
        return OutputComparison(tried in (one, other), 0 if one == other else None)
    words, second, third = (_WORD.findall(text) for text in (one, other, tried))
    if len(words) != len(second):
        return OutputComparison(False, None)
    own = [a != b for a, b in zip(words, second, strict=True)]
    if len(words) != len(third):
        return OutputComparison(False, sum(own))
    return OutputComparison(all(o or a == b for o, a, b in zip(own, words, third, strict=True)), sum(own))
