"""What a view copies: fields that are only written, in every element, are not copied in; anything else is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from layout_advise.layoutalgebra.derive.structure import Candidate, Dim, Field, Structure
from layout_advise.mockup.evidence.binding import Access, accesses, bind
from layout_advise.mockup.ir.lifted import Store
from layout_advise.mockup.remap.conversion_view import View, view
from layout_advise.mockup.remap.plan import plan
from tests.support.mockups.case import FLAGS, Case
from tests.support.mockups.native import candidate, relayout

SOURCE = """
struct body { double x, v, e, f; };
void energies(struct body *p, long n) {
    for (long i = 0; i < n; i++) {
        p[i].e = 0.5 * p[i].v * p[i].v;
        if (SOME) p[i].f = p[i].x;
    }
}"""
N = 33


def studied(some: str, flags: tuple[str, ...], where: Path) -> tuple[Case, Candidate]:
    """The function over N elements in which f is written where ``some`` holds; kinds and counts as a real trace has them."""
    case = Case(SOURCE.replace("SOME", some), "energies", flags, where)
    data = np.random.default_rng(3).random((N, 4))
    case.arrays, case.integers = [data], [data.ctypes.data, N]
    uses = {"x": (N, 0), "v": (N, 0), "e": (0, N), "f": (0, 1)}
    fields = tuple(Field(name, 8 * k, 8, "double", *uses[name]) for k, name in enumerate(uses))
    shape = Structure("s0", "bodies", data.ctypes.data, data.nbytes, (Dim(N, 32),), fields)
    case.structures = (shape,)
    case.prepare()
    written = {e.origin.pc for e in _stores(case)}
    kinds: dict[bool, Literal["read", "write"]] = {True: "write", False: "read"}
    references = tuple(replace(r, kind=kinds[r.pc in written]) for r in case.trace.references)
    case.trace = replace(case.trace, references=references)
    return case, candidate(relayout(shape, "soa", 0))


def _stores(case: Case) -> list[Access]:
    return [a for a in accesses(case.lifted.body) if isinstance(a, Store)]


def seen(case: Case, chosen: Candidate) -> View:
    binding = bind(case.lifted, case.trace, case.structures)
    return view(chosen, binding, plan(case.lifted, chosen, binding))


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_what_is_only_written_everywhere_is_not_copied_in(flags: tuple[str, ...], tmp_path: Path) -> None:
    case, chosen = studied("1", flags, tmp_path)
    found = seen(case, chosen)
    assert found.names(chosen, found.inward) == ("x", "v")
    assert found.names(chosen, found.outward) == ("e", "f")
    assert case.run(chosen, "view")[0] == case.expected  # its buffers hold a pattern before


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS)
def test_what_is_written_in_some_elements_is_copied_in(flags: tuple[str, ...], tmp_path: Path) -> None:
    case, chosen = studied("i != 7", flags, tmp_path)
    found = seen(case, chosen)
    assert {"x", "v", "f"} <= set(found.names(chosen, found.inward))
    assert case.run(chosen, "view")[0] == case.expected


def test_what_is_read_too_is_copied_in(tmp_path: Path) -> None:
    case, chosen = studied("1", ("-O2",), tmp_path)
    (layout,) = chosen.relayouts
    fields = tuple(replace(f, reads=1) if f.name == "e" else f for f in layout.structure.fields)
    structure = replace(layout.structure, fields=fields)
    case.structures, chosen = (structure,), replace(chosen, relayouts=(replace(layout, structure=structure),))
    assert "e" in seen(case, chosen).names(chosen, seen(case, chosen).inward)
