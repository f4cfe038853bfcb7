"""The members that a view converts in (A_in) and back (A_out), from what a walk found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from layout_advise.apply.rewrite.syntax import Edit, Syntax
from layout_advise.views.annotations import LoopView, refused


@dataclass(frozen=True, slots=True)
class MemberAccess:
    """``view`` None: the record's member, but not through a view. ``certain``: each element is written for sure."""

    view: LoopView | None
    member: str
    record: str
    reads: bool
    writes: bool
    certain: bool
    at: Syntax


@dataclass(frozen=True, slots=True)
class Copy:
    """A function of which the new source has a copy. ``taken``: the positions of elements among its parameters; ``on``: the
    view whose elements it is a method of (0: of none)."""

    function: str
    taken: tuple[int, ...] = ()
    on: int = 0


@dataclass(slots=True)
class Walked:
    """All that walks through a file's regions found. ``edits`` has those in a copy of a function, under None those in
    the annotated loops; ``copies`` the functions' definitions."""

    accesses: list[MemberAccess] = field(default_factory=list)
    edits: dict[Copy | None, set[Edit]] = field(default_factory=dict)
    copies: dict[Copy, Syntax] = field(default_factory=dict)
    compared: set[int] = field(default_factory=set)

    def name_of(self, copy: Copy) -> str:
        """The copy's name."""
        return f"soa_copy_{list(self.copies).index(copy) + 1}_{self.copies[copy].name}"


@dataclass(frozen=True, slots=True)
class ConvertedMembers:
    """A view's members: converted in, and back."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def members(self) -> tuple[str, ...]:
        """All that have an array in the view."""
        return tuple(dict.fromkeys((*self.reads, *self.writes)))


def converted(view: LoopView, accesses: Iterable[MemberAccess]) -> ConvertedMembers:
    """A_in and A_out, from all accesses in a view's region. Raises SourceError where accesses of other ways to the same
    members would see old values, or be overwritten."""
    accesses = tuple(accesses)
    own = [access for access in accesses if access.view is view]
    order = dict.fromkeys(access.member for access in own)
    firsts: dict[str, MemberAccess] = {}
    for access in own:
        firsts.setdefault(access.member, access)
    ins = {member for member, first in firsts.items() if not first.certain}
    outs = {access.member for access in own if access.writes}
    for other in (a for a in accesses if a.view is not view and a.record == view.record.record):
        if (other.writes and other.member in ins | outs) or (other.reads and other.member in outs):
            how = f"through the view of {other.view.container}" if other.view is not None else "not through it"
            raise refused(other.at, f"{other.member} is converted for {view.container} and used in the same loop {how}")
    if not order:
        raise refused(view.loop, f"no member of {view.record.text} is used in the loop")
    return ConvertedMembers(tuple(m for m in order if m in ins), tuple(m for m in order if m in outs))
