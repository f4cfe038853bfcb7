"""The passes over the lifted form, in the order in which they run.

Every pass is a function of the lifted hotspot and the evidence of one traced call. It may assume a valid form
(:mod:`layout_advise.mockup.ir.verify`), leaves a valid one, and computes the same on the traced call. Where its conditions
do not hold it returns the form unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.gather_objects import gathered
from layout_advise.mockup.evidence.pointer_tables import PointerTable
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.ir.verify import verify_form
from layout_advise.mockup.rewrite.hoist_pointer_loads import hoist_pointer_loads
from layout_advise.mockup.rewrite.reload_carried_values import reload_carried_values
from layout_advise.mockup.rewrite.reroll import reroll
from layout_advise.mockup.rewrite.statement_order import sink_operations
from layout_advise.mockup.rewrite.stop_behind_loops import stop_behind_loops
from layout_advise.mockup.rewrite.unroll_field_loops import unroll_field_loops
from layout_advise.mockup.rewrite.whole_fields import whole_fields
from layout_advise.tracer.trace.trace import Trace


class Pass(Protocol):
    """A function from a form to another one that computes the same on the traced call."""

    __name__: str

    def __call__(self, lifted: Lifted, evidence: Evidence, /) -> Lifted:
        """Returns ``lifted`` rewritten."""
        ...


SOURCE_PASSES: tuple[Pass, ...] = (hoist_pointer_loads, reload_carried_values, whole_fields)
"""Undo what the compiler did to loads, so that addresses and fields are those of the source."""
LOOP_PASSES: tuple[Pass, ...] = (unroll_field_loops, stop_behind_loops, reroll, sink_operations)
"""Bring loops into the form of one element an iteration."""
PASSES: tuple[Pass, ...] = SOURCE_PASSES + LOOP_PASSES
"""All of them."""


@dataclass(frozen=True, slots=True)
class RewrittenForms:
    """The forms of one hotspot that mock-ups in new layouts are made of.

    ``elements`` has run through all passes. ``rolled`` is the same with the loops over the fields of an element kept; None
    where there are none. ``gathered`` holds, by ids of structures that are reached through pointers, the elements and the
    trace with these structures taken for arrays.
    """

    elements: Lifted
    rolled: Lifted | None
    gathered: Mapping[frozenset[str], tuple[Lifted, Trace]]


def run_passes(lifted: Lifted, evidence: Evidence, passes: Sequence[Pass] = PASSES, *, verify: bool = False) -> Lifted:
    """Returns ``lifted`` rewritten by ``passes``, one after the other.

    With ``verify`` the form is checked before the first pass and after each. Raises InvalidFormError, which names the pass.
    """
    if verify:
        verify_form(lifted, "the lifter")
    for one in passes:
        lifted = one(lifted, evidence)
        if verify:
            verify_form(lifted, one.__name__)
    return lifted


def rewrite(
    lifted: Lifted, evidence: Evidence, tables: Mapping[str, PointerTable] | None = None, *, verify: bool = False
) -> RewrittenForms:
    """Returns all forms of ``lifted`` for one set of structures; ``tables`` are arrays of pointers, by structure id.

    What the forms have in common is computed once.
    """
    source = run_passes(lifted, evidence, SOURCE_PASSES, verify=verify)
    unrolled = run_passes(source, evidence, (unroll_field_loops,), verify=verify)
    kept = tuple(one for one in LOOP_PASSES if one is not unroll_field_loops)
    elements = run_passes(unrolled, evidence, kept, verify=verify)
    rolled = None if unrolled == source else run_passes(source, evidence, kept, verify=verify)
    return RewrittenForms(elements, rolled, _gathered_forms(source, evidence, tables or {}, verify=verify))


def _gathered_forms(
    source: Lifted, evidence: Evidence, tables: Mapping[str, PointerTable], *, verify: bool
) -> dict[frozenset[str], tuple[Lifted, Trace]]:
    """The elements with each of the structures behind ``tables`` taken for an array, and with all of them."""
    bases = {s.id: s.base for s in evidence.structures}
    sets = {frozenset((name,)) for name in tables} | ({frozenset(tables)} if tables else set())
    found = {}
    for names in sets:
        form, trace = source, evidence.trace
        for name in sorted(names):
            form, trace = gathered(form, trace, tables[name], bases[name])
        moved = Evidence.of(trace, evidence.structures, evidence.constant)
        found[names] = run_passes(form, moved, LOOP_PASSES, verify=verify), trace
    return found
