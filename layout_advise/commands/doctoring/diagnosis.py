"""One finding of ``doctor``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One line of the answer; ``needed`` without it there is no advice at all. ``packages`` of Debian and its like bring it,
    where there are some."""

    name: str
    ok: bool
    needed: bool
    text: str
    hint: str = ""
    packages: tuple[str, ...] = ()
