"""Retries: a study of a region may end, instead of in an answer, in a typed request to take it up again in another way."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.observe.find_kinds import Kinds


@dataclass(frozen=True, slots=True)
class AnotherKind:
    """The calls differ, and a call of another kind has to stand for them."""

    kinds: Kinds


@dataclass(frozen=True, slots=True)
class SmallerRegion:
    """One call makes more accesses than are recorded: a loop in it may make fewer."""


@dataclass(frozen=True, slots=True)
class InBatches:
    """The same call repeated is quicker than the program's calls, which depend on data: several in a row may not be."""


Retry = AnotherKind | SmallerRegion | InBatches
