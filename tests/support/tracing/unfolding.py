"""Folded orders of execution, written out again."""

from __future__ import annotations

from layout_advise.layoutalgebra.sets.nests import expand
from layout_advise.tracer.trace.trace import Control


def unfolded(control: Control) -> list[int]:
    assert control.nodes is not None
    return [
        site for piece in expand(control.nodes) for site in range(control.pieces[piece][0], control.pieces[piece][1] + 1)
    ]


def partition(control: Control, references: int) -> None:
    """Every reference is in exactly one piece."""
    assert [site for first, last in control.pieces for site in range(first, last + 1)] == list(range(references))
