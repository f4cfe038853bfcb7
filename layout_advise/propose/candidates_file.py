"""Candidates as the run directory keeps them: ``candidates.json``."""

from __future__ import annotations

from typing import Any

import msgspec

from layout_advise.layoutalgebra.derive.structure import Candidate, Relayout


def plain(candidate: Candidate) -> dict[str, Any]:
    """A candidate as JSON-ready data."""
    return {
        "id": candidate.id,
        "families": candidate.families,
        "block": candidate.block,
        "derivation": candidate.derivation,
        "cost": candidate.cost,
        "proposers": candidate.proposers,
        "relayouts": [_plain_layout(r) for r in candidate.relayouts],
    }


def _plain_layout(layout: Relayout) -> dict[str, Any]:
    """Without the bitmap of chosen elements, and with the first of the blocks that elements lie in only: both can be as long
    as the rest of the file."""
    data: dict[str, Any] = msgspec.to_builtins(layout)
    data["structure"]["blocks"] = data["structure"]["blocks"][:1]
    if data["chosen"] is not None:
        del data["chosen"]["bits"]
    return data
