"""The limits of a stage: how many layouts each way of proposing contributes."""

from __future__ import annotations

from dataclasses import dataclass

from layout_advise.mockup.timing.policy import limit


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposePolicy:
    """How many layouts each way of proposing contributes."""

    most_clustered_fields: int = limit(64, "fields", "Fields of a structure with more are not clustered.", 71)
    most_clusterings: int = limit(
        4, "count", "At most so many clusterings of a field graph are tried, the coarsest ones.", 71
    )


PROPOSE = ProposePolicy()
