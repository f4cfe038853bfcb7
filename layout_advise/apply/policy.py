"""The limits of applying a layout."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ApplyPolicy:
    """Units and reasons in ``docs/decisions/0064``."""

    rounds: int = 5
    """Processes of each program that are timed, in turn, at least."""
    most_rounds: int = 40
    timing_seconds: float = 60.0
    """As long as their interval is wider than the predicted one: up to so many, and so long."""
    slower: float = 0.95
    """The rewritten program is slower where it surely runs less than so many times as fast."""
    fewest_rounds: int = 3
    """Of fewer processes nothing is sure."""
    stretches: int = 4
    """From so many places of the run calls of the region are timed, where there are more than one stretch."""
    other_calls: float = 0.01
    """The new program may call the region more or less often by this part."""
    interrupted: float = 4.0
    """A call that takes so many times as long as it usually does, in the other processes, was interrupted ..."""
    interrupted_ns: float = 100.0
    """... where it is so many ns more."""
    format_seconds: float = 60.0
    """So long formatting a file may take."""
    largest_tree: int = 2_000_000_000
    """Bytes of a source tree that is copied."""
    build_seconds: float = 1800.0
    run_seconds: float = 600.0
    """So long the project's build, and one run of the program, may take."""
    most_layouts: int = 4
    """So many are tried where places in the source stand in the way and none is named."""
    macro_rounds: int = 4
    """So often uses of macros are expanded, as what they expand to may have others in the way of more."""
    shown_output: int = 400
    """Characters of a build's messages that an error repeats."""


APPLY = ApplyPolicy()
