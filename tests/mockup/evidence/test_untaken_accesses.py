"""Ways through the hotspot that the traced call does not take: which fields they use, and that these are re-laid rightly."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.accesses import Derived
from layout_advise.layoutalgebra.derive.structure import Dim, Field, Structure
from layout_advise.layoutalgebra.explore.explore import explore
from layout_advise.mockup.evidence.binding import bind
from layout_advise.mockup.evidence.untaken_accesses import unseen
from layout_advise.observe.observe import Observation
from layout_advise.propose.untaken_fields import untaken, with_reachable
from tests.support import slower
from tests.support.mockups.case import Case, f64_fields

PATHS = """
struct path { double spot, vol, knock, out; long hits, first; double rest[2]; };
void step(struct path *p, long n, double dt)
{
    for (long i = 0; i < n; i++) {
        p[i].spot += p[i].vol * dt;
        if (p[i].spot > p[i].knock) {
            p[i].hits++;
            p[i].out = p[i].spot - p[i].knock;
        }
    }
}
"""
SIZE = 64
USED = f64_fields(("spot", 0), ("vol", 8), ("knock", 16))
COLD = (
    Field("out", 24, 8, "double"),
    Field("hits", 32, 8, "long"),
    Field("first", 40, 8, "long"),
    Field("rest[0]", 48, 8, "double"),
    Field("rest[1]", 56, 8, "double"),
)


def options(flags: tuple[str, ...], where: Path) -> tuple[Case, Structure]:
    """Paths of which none is over its barrier at the call that is traced."""
    case = Case(PATHS, "step", flags, where)
    data = np.random.default_rng(3).random((41, 8))
    data[:, 2], data[:, 4] = 9.0, 0.0
    case.arrays, case.integers, case.floats = [data], [data.ctypes.data, len(data)], [0.5]
    used = tuple(replace(f, reads=41) for f in USED)
    structure = Structure("s0", "p", data.ctypes.data, data.nbytes, (Dim(len(data), SIZE),), used, COLD)
    case.structures = (structure,)
    case.prepare()
    return case, structure


@pytest.mark.parametrize("flags", [("-O1",), *slower((("-O2",),)), ("-O2", "-march=haswell")])
def test_what_was_not_come_to_is_used_too_and_goes_where_the_new_layout_has_it(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    case, structure = options(flags, tmp_path)
    binding = bind(case.lifted, case.trace, case.structures)
    found = unseen(case.lifted.body, case.structures, binding.structure_of, binding.streams)
    assert {one.offset for one in found} >= {24, 32}
    region = case.native.region
    seen = Observation(region, case.trace, (Derived(structure, None, 8, 0, False),), (), ())
    (wider,) = with_reachable(seen, case.lifted).structures
    assert [f.name for f in wider.fields] == ["spot", "vol", "knock", "out", "hits"]
    assert [f.name for f in untaken(wider)] == ["out", "hits"]
    assert [f.name for f in wider.cold] == ["first", "rest[0]", "rest[1]"]
    case.structures = (wider,)
    data = case.before[0]
    data[::3, 2] = 0.25  # a later call: some are over it now
    case.restore()
    case.native.function(ctypes.c_int64(case.integers[0]), ctypes.c_int64(len(data)), ctypes.c_double(0.5))
    expected = case.restore()
    assert expected != [data.tobytes()]
    candidates = explore([wider], lanes=(16,))
    assert {"soa", "split", "aosoa"} <= {name for c in candidates for name in c.families}
    for candidate in candidates:
        assert case.run(candidate, candidate.id)[0] == expected, candidate.families
    case.structures = (structure,)  # fields that are not re-laid stay where they are
    for candidate in explore([structure], lanes=(16,))[:2]:
        assert case.run(candidate, f"cold-{candidate.id}")[0] == expected, candidate.families
