"""The outputs of runs compared: with an ordinary run, but for what differs between two of these."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORD = re.compile(rb"\S+|\s+")
MOST_BYTES = 64 << 20
"""Longer outputs are not compared."""


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """``same``: the output is that of an ordinary run. ``own`` words of it differ between ordinary runs already, and were
    not compared; None where these differ in more than single words, so that nothing could be."""

    same: bool
    own: int | None = 0


def compare_output(one: bytes, other: bytes, tried: bytes) -> OutputComparison:
    """``tried`` against two ordinary runs, ``one`` and ``other``."""
    if one == other:
        return OutputComparison(tried == one)
    words, second, third = (_WORD.findall(text) for text in (one, other, tried))
    if len(words) != len(second):
        return OutputComparison(False, None)
    own = [a != b for a, b in zip(words, second, strict=True)]
    if len(words) != len(third):
        return OutputComparison(False, sum(own))
    return OutputComparison(all(o or a == b for o, a, b in zip(own, words, third, strict=True)), sum(own))
