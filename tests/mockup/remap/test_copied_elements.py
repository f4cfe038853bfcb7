"""Elements that ``rep movs`` copies, in layouts that have their fields elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.mockup.evidence.evidence import Evidence
from layout_advise.mockup.evidence.kept_calls import strings_of
from layout_advise.mockup.ir.lifted import Lifted
from layout_advise.mockup.lift.lift import lift
from layout_advise.mockup.machine.image import open_image
from layout_advise.mockup.rewrite.passes import rewrite
from layout_advise.observe.observe import Observation
from layout_advise.propose.stage import with_strings_as_loops
from tests.support.mockups.case import Case
from tests.support.mockups.native import Native

SOURCE = """
struct state { double x, y, z, u, v, w; long id, rest; };
void step(struct state *p, const int *order, long n)
{
    for (long i = 0; i < n; i++) {
        void *to = &p[i]; const void *from = &p[n + order[i]]; long words = 8;
        __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
        p[i].x += 0.5 * p[i].u;
    }
}
"""


class Copying(Native):
    """With its string operations as loops."""

    def lifted(self) -> Lifted:
        return lift(self.region, result="none", loops=strings_of(self.kept()))

    def kept(self, strings: frozenset[int] = frozenset()) -> Lifted:
        return lift(self.region, result="none", opaque=True, loops=strings)


def states(where: Path, flags: tuple[str, ...]) -> Case:
    case = Case(SOURCE, "step", flags, where, made=Copying)
    data, order = np.random.default_rng(5).random((58, 8)), np.random.default_rng(6).permutation(29).astype(np.int32)
    case.arrays, case.integers = [data, order], [data.ctypes.data, order.ctypes.data, 29]
    fields = tuple(
        Field(name, 8 * k, 8, "double", 29, 29) for k, name in enumerate(("x", "y", "z", "u", "v", "w", "id", "rest"))
    )
    case.structures = (Structure("s0", "p", data.ctypes.data, data.nbytes, (Dim(58, 64),), fields, (), data.ctypes.data),)
    case.prepare()
    return case


@pytest.mark.parametrize("flags", [("-O1",), ("-O2",)])
def test_copied_elements_go_where_the_new_layout_has_their_fields(flags: tuple[str, ...], tmp_path: Path) -> None:
    case = states(tmp_path, flags)
    image = open_image(case.native.region.path, case.native.region.load_base)
    case.lifted = rewrite(case.lifted, Evidence.of(case.trace, case.structures, image.read), {}, verify=True).elements
    candidates = explore(list(case.structures), lanes=(16,))
    assert {"soa", "split", "aosoa"} <= {name for c in candidates for name in c.families}
    for candidate in candidates:
        found, done = case.run(candidate, candidate.id, check=True)
        assert found == case.expected
        assert done.mismatches == 0
        assert done.remapped > 0


def test_only_what_reaches_structures_becomes_a_loop(tmp_path: Path) -> None:
    """And the instruction stays in what has to be like the original."""
    case = states(tmp_path, ("-O2",))
    assert isinstance(case.native, Copying)
    kept, again = case.native.kept(), case.native.kept
    seen = cast(Observation, SimpleNamespace(trace=case.trace, structures=case.structures))
    loops = with_strings_as_loops(kept, seen, again)
    assert isinstance(loops, Lifted)
    assert not strings_of(loops)
    assert loops.as_pointers is not None
    assert strings_of(loops.as_pointers)
    elsewhere = replace(case.structures[0], base=case.structures[0].base + (1 << 30), block_base=0)
    seen = cast(Observation, SimpleNamespace(trace=case.trace, structures=(elsewhere,)))
    assert with_strings_as_loops(kept, seen, again) is kept
