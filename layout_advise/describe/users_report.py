"""The other users of a structure, in the report's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from layout_advise.layoutalgebra.derive.structure import Candidate
from layout_advise.observe.other_users import Usage, User, UserPlacement, lines_elsewhere
from layout_advise.reports.model import structure
from layout_advise.reports.model.candidate import CandidateReport, Elsewhere
from layout_advise.reports.model.structure import StructureReport, UserReport


def with_usage(report: StructureReport, found: Usage | None) -> StructureReport:
    """The structure's part of the report with its other users."""
    if found is None:
        return report
    users = tuple(_user(user) for user in found.users)
    return msgspec.structs.replace(report, users=users, users_unknown=found.reason, placement=_placement(found.placement))


def _user(user: User) -> UserReport:
    place = user.where.place
    return UserReport(
        user.where.symbol,
        place.file if place else None,
        place.line if place else None,
        user.where.through,
        user.when,
        user.reads,
        user.writes,
        user.fields,
        user.where.function,
    )


def _placement(found: UserPlacement | None) -> structure.Placement | None:
    if found is None:
        return None
    last, first = found.last_write, found.first_read
    return structure.Placement(
        found.first,
        found.periods,
        found.used,
        last.text() if last else None,
        first.text() if first else None,
        found.gapless,
    )


def with_elsewhere(row: CandidateReport, candidate: Candidate, found: Mapping[str, Usage]) -> CandidateReport:
    """The candidate's part of the report with what its layout means for the others, and how often it would be converted."""
    lines = tuple(Elsewhere(n.symbol, n.structure, n.before, n.after) for n in lines_elsewhere(candidate, found))
    costs = row.conversion
    if costs is not None:
        costs = msgspec.structs.replace(costs, placement=conversions(candidate, found))
    return msgspec.structs.replace(row, elsewhere=lines, conversion=costs)


def conversions(candidate: Candidate, found: Mapping[str, Usage]) -> Literal["once", "each-period"] | None:
    """How often a temporary layout would have to be converted, as far as was seen."""
    known = [found.get(layout.structure.id, Usage()).placement for layout in candidate.relayouts]
    if any(place is not None and place.used for place in known):
        return "each-period"
    return "once" if all(place is not None and place.gapless for place in known) else None
