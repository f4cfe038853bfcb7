"""Whether the code tells in which row of a grid it goes to an element."""

from __future__ import annotations

from layout_advise.errors import LayoutAdviseError, RowsError
from layout_advise.layoutalgebra.derive.structure import Candidate, Structure
from layout_advise.layoutalgebra.explore.plans import Group, LayoutPlan, whole
from layout_advise.layoutalgebra.explore.relayout import relayout
from layout_advise.mockup.evidence.binding import Binding
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.remap.plan import plan


def tells_rows(structure: Structure, lifted: Lifted, binding: Binding) -> bool:
    """Tells whether the accesses to a grid say in which row they are: tried with its dimensions in another order, in which
    the element behind a row's end lies elsewhere. Where they do not, only layouts of all its elements in one row can be
    reached."""
    turned = Group(tuple(range(len(structure.fields))), tuple(reversed(whole(structure))))
    try:
        plan(lifted, Candidate("rows", (relayout(structure, LayoutPlan((turned,)), checked=False),), (), ()), binding)
    except RowsError:
        return False
    except LayoutAdviseError:  # what stops all layouts is told with each of them
        return True
    return True
